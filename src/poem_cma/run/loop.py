"""The loop of every run: evaluate, tell, look for a reason to stop; at the end measure the result.

How values are found is the business of an `Evaluator`: `run.direct` calls the function where the loop runs, and
`run.dispatch` hands the calls to workers and keeps them in a store. The outcome is the same, bit for bit.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, NamedTuple, Protocol

import numpy as np

from poem_cma._types import Array
from poem_cma.optimizer import Optimizer
from poem_cma.result import Result, Status
from poem_cma.run.in_flight import budget_of
from poem_cma.run.measure import POINTS, summarise
from poem_cma.run.oracle import EvaluationError
from poem_cma.run.stops import Watch
from poem_cma.run.verdict import judge

__all__ = ["Calls", "Evaluator", "conclude", "perform"]


class Calls(NamedTuple):
    """How many calls a run may make in all, and how many of them are kept to measure the result and x0."""

    budget: int
    final: int


class Evaluator(Protocol):
    """What finds the values that an optimiser asks for."""

    crew: Any  # the workers, for those who show them; or None

    @property
    def measured(self) -> tuple[int, int]:
        """Calls that measured a result so far, and how many of them failed."""

    @property
    def first_failure(self) -> str | None:
        """Why the first call that failed did."""

    def step(self) -> bool:
        """Evaluate what is asked and tell it, or a part of it; False at the end of the run."""

    def measure(self, points: list[Array], wanted: int, most: int) -> Array:
        """Values (points, samples) on common fresh samples, by at most so many calls; those known before are used."""

    def pause(self) -> None:
        """The run is interrupted: keep what was found so far."""


def perform(opt: Optimizer, evaluator: Evaluator, watch: Watch, calls: Calls, progress: bool) -> Result:
    """Run to the end, or to a reason to stop, and measure the result."""
    with _progress_bar(opt, calls, evaluator) if progress else nullcontext() as bar:
        try:
            status, message = _until_it_stops(opt, evaluator, watch, calls, bar)
            result = conclude(opt, evaluator, calls, status, message)
            if bar is not None:
                bar.finish(result.nfev)
            return result
        except KeyboardInterrupt:
            evaluator.pause()
            return _counted(opt, evaluator, Status.INTERRUPTED, "interrupted; this is the result so far")
        except EvaluationError as error:
            evaluator.pause()
            error.result = opt.result(Status.FAILURES, str(error))
            raise


def _until_it_stops(
    opt: Optimizer, evaluator: Evaluator, watch: Watch, calls: Calls, show: Any
) -> tuple[int | None, str]:
    """The status and message of a stop that was asked for; (None, "") at the end of the budget."""
    watched, step = watch.begin(opt, calls.final, show), evaluator.step
    while step():
        if watched and (stop := watch(opt)) is not None:
            return stop
    return None, ""


def conclude(
    opt: Optimizer, evaluator: Evaluator, calls: Calls, status: int | None = None, message: str = ""
) -> Result:
    """The result of a run that is over, measured by calls that are left in the budget."""
    result = opt.result(status, message)
    if calls.final and result.status != Status.FAILURES:
        left = calls.budget - opt.nfev - evaluator.measured[0]
        points = [result.x] if np.array_equal(result.x, opt.start) else [result.x, opt.start]
        summarise(result, evaluator.measure(points, calls.final // POINTS, left), opt.start, opt.sign)
        judge(result, opt)
    # The optimiser's own budget leaves out the calls that measure the result.
    result.message = result.message.replace(
        f"the budget of {budget_of(opt)} calls", f"the budget of {calls.budget} calls"
    )
    return _with_counts(result, evaluator)


def _counted(opt: Optimizer, evaluator: Evaluator, status: int, message: str) -> Result:
    return _with_counts(opt.result(status, message), evaluator)


def _with_counts(result: Result, evaluator: Evaluator) -> Result:
    """The result with the calls that measured it, or an earlier one, and with the reason of the first failure."""
    nfev, failures = evaluator.measured
    result.nfev += nfev
    result.failures += failures
    if evaluator.first_failure is not None and result.status == Status.FAILURES:
        result.message = f"{evaluator.first_failure}; {result.message}"
    elif evaluator.first_failure is not None:
        result.message += f" ({result.failures} calls failed; the first: {evaluator.first_failure})"
    return result


def _progress_bar(opt: Optimizer, calls: Calls, evaluator: Evaluator) -> Any:
    from poem_cma.run.progress import Bar

    return Bar(opt, calls.budget, evaluator.crew)
