"""The loop of every run: evaluate, tell, look for a reason to stop; at the end measure the result.

How values are found is the business of an `Evaluator`: `run.direct` calls the function where the loop runs, and
`run.dispatch` hands the calls to workers and keeps them in a store. One run goes on `alone`; many are
advanced by `run.replicas`, with calls that they share. The outcome is the same, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from poem_cma._types import Array
from poem_cma.optimizer import Optimizer
from poem_cma.result import Result, Status
from poem_cma.run.in_flight import budget_of
from poem_cma.run.measure import POINTS, summarise
from poem_cma.run.oracle import EvaluationError
from poem_cma.run.stops import Watch
from poem_cma.run.verdict import judge

__all__ = ["Advance", "Calls", "Evaluator", "alone", "perform"]


class Calls(NamedTuple):
    """How many calls a run may make in all, and how many of them are kept to measure the result and x0."""

    budget: int
    final: int


class Evaluator(Protocol):
    """What finds the values that an optimiser asks for."""

    opt: Optimizer
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


R = TypeVar("R", bound=Evaluator)

#: Takes some runs on, by a step or more, and returns those that had not ended before.
Advance = Callable[[Sequence[R]], Sequence[R]]


def alone(runs: Sequence[R]) -> Sequence[R]:
    """Take a run a step on; no other is among them."""
    return runs if runs and runs[0].step() else ()


def perform(runs: Sequence[R], advance: Advance[R], watch: Watch, calls: Calls, progress: bool = False) -> list[Result]:
    """Take all runs to their end, or to a reason to stop, and measure their results; the progress of the first."""
    results: list[Result] = []
    with _progress_bar(runs[0], calls) if progress else nullcontext() as bar:
        try:
            stops = _until_they_stop(runs, advance, watch, calls, bar)
            for run in runs:
                results.append(_concluded(run, calls, *stops.get(run.opt, (None, ""))))
            if bar is not None:
                bar.finish(results[0].nfev)
        except KeyboardInterrupt:
            for run in runs[len(results) :]:
                run.pause()
                results.append(_counted(run, Status.INTERRUPTED, "interrupted; this is the result so far"))
        except EvaluationError as error:
            for run in runs:
                run.pause()
            failed = next((run for run in runs if run.first_failure is not None), runs[0])
            error.result = failed.opt.result(Status.FAILURES, str(error))
            raise
    return results


def _until_they_stop(
    runs: Sequence[R], advance: Advance[R], watch: Watch, calls: Calls, show: Any
) -> dict[Optimizer, tuple[int, str]]:
    """The status and message of each stop that was asked for; the other runs are at the end of their budget."""
    stops: dict[Optimizer, tuple[int, str]] = {}
    watched = watch.begin([run.opt for run in runs], calls.final, show)
    while runs := advance(runs):
        if watched:
            stops |= {run.opt: stop for run in runs if (stop := watch(run.opt)) is not None}
            runs = [run for run in runs if run.opt not in stops]
    return stops


def _concluded(run: Evaluator, calls: Calls, status: int | None, message: str) -> Result:
    """The result of a run that is over, measured by calls that are left in the budget."""
    opt = run.opt
    result = opt.result(status, message)
    if calls.final and result.status != Status.FAILURES:
        left = calls.budget - opt.nfev - run.measured[0]
        points = [result.x] if np.array_equal(result.x, opt.start) else [result.x, opt.start]
        summarise(result, run.measure(points, calls.final // POINTS, left), opt.start, opt.sign)
        judge(result, opt)
    # The optimiser's own budget leaves out the calls that measure the result.
    result.message = result.message.replace(
        f"the budget of {budget_of(opt)} calls", f"the budget of {calls.budget} calls"
    )
    return _with_counts(result, run)


def _counted(run: Evaluator, status: int, message: str) -> Result:
    return _with_counts(run.opt.result(status, message), run)


def _with_counts(result: Result, run: Evaluator) -> Result:
    """The result with the calls that measured it, or an earlier one, and with the reason of the first failure."""
    nfev, failures = run.measured
    result.nfev += nfev
    result.failures += failures
    if run.first_failure is not None and result.status == Status.FAILURES:
        result.message = f"{run.first_failure}; {result.message}"
    elif run.first_failure is not None:
        result.message += f" ({result.failures} calls failed; the first: {run.first_failure})"
    return result


def _progress_bar(run: Evaluator, calls: Calls) -> Any:
    from poem_cma.run.progress import Bar

    return Bar(run.opt, calls.budget, run.crew)
