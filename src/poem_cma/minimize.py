"""The function most users call: a loop around `Optimizer` that evaluates, records, shows and stops."""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from math import inf, sqrt
from typing import Any, Literal

import numpy as np

from poem_cma._types import Array
from poem_cma.optimizer import Optimizer, optimizer_for
from poem_cma.parameters.nest import structure_of
from poem_cma.result import Result, Status
from poem_cma.run.algorithm import Method
from poem_cma.run.oracle import EvaluationError, Oracle
from poem_cma.run.randomness import Stream, Streams, make_seed
from poem_cma.run.vectorized import ROWS_AT_ONCE, ask_rows, joined, tell_rows

__all__ = ["check_evaluate", "finished", "minimize", "wants_result"]

#: `target` is compared with the smoothed value only after so many steps.
STEPS_BEFORE_TARGET = 20


def minimize(
    fun: Callable[..., Any],
    x0: Any,
    *,
    sample: Callable[[np.random.Generator], Any] | None = None,
    paired: bool = True,
    method: str | Method = "auto",
    domain: Any = None,
    scale: Any = None,
    budget: int = 10_000,
    seed: int | None = None,
    vectorized: bool | Literal["rows"] = False,
    workers: Any = None,
    batch: int | Literal["auto"] = 1,
    ahead: int = 0,
    on_failure: Literal["drop", "raise"] = "drop",
    callback: Callable[..., Any] | None = None,
    progress: bool = False,
    store: str | os.PathLike[str] | None = None,
    name: str | None = None,
    target: float | None = None,
    time_limit: float | None = None,
    evaluate: int | None = None,
) -> Result:
    """Minimise the mean of a noisy function from its values alone.

    Parameters
    ----------
    fun : callable
        ``fun(x) -> float``, or ``fun(x, xi) -> float`` where `sample` is given.
    x0 : array_like, or a nest of arrays and numbers
        Where to start. A point outside the domain is projected on it, with a warning. A dictionary, list, tuple, named
        tuple or dataclass of arrays and numbers, nested at will, is given to `fun` in the same form, and so are the
        points of the result; the leaves are real numbers throughout. ``vectorized``: each has a first axis more.
    sample : callable, optional
        ``sample(rng)`` draws xi, whatever it may be, with the `numpy.random.Generator` it is given. The points of one
        probe share their xi, which takes the noise out of their differences.
    paired : bool
        False: every point draws its own xi.
    method : str or Method
        "auto" (the default), "poem-cma", "poem", "tpbco", "tpge", "rsnso", or one made by a constructor in
        `poem_cma.methods`.
    domain : optional
        A `Ball`, `Box`, `Simplex`, `L1Ball`, `scipy.optimize.Bounds`, or any object with `project(x)` and `diameter`.
        None is all of R^d. With ``inside=True`` on a domain no point outside it is ever evaluated. For an x0 that is
        a nest: one for all the numbers in it, or a nest of domains.
    scale : float or array, optional
        The typical size of each variable; the search happens in x / scale. For a nest also a nest of them.
    budget : int
        Oracle calls, everything counted, never exceeded.
    seed : int, optional
        Same seed, same run.
    vectorized : bool or "rows"
        True: ``fun(X[, xi])`` takes points (m, d) and returns (m,), called once for each distinct xi. "rows": one call
        for everything that can be asked at once, `xi` holding one entry for each row.
    workers : int, executor or Workers, optional
        Make the calls elsewhere, many at a time: a number of processes, any `concurrent.futures.Executor`, a Dask
        client, the module ``ray``, or a `Workers` around one of them, which says what is done about calls that hang
        or fail. The result does not depend on the number of workers, nor on the order in which they answer.
    batch : int or "auto"
        How many independent xi's (and directions) a step uses; "auto": one, and as many steps `ahead` as keep the
        workers busy.
    ahead : int
        How many steps are asked before the one under way is complete, each from where the run is then. For many
        workers; without any, the result is the same, and no better than with 0.
    on_failure : "drop" or "raise"
        What to do with a call that raises, or returns no finite number: leave its difference out, or raise an
        `EvaluationError` that carries the point and the result so far.
    callback : callable, optional
        Called after each step as ``callback(intermediate_result=...)`` with a `Result`, or ``callback(x)`` if its
        parameter has another name. Raising StopIteration ends the run.
    progress : bool
        Show calls, value, distance and time left (needs rich: ``pip install "poem-cma[progress]"``).
    store : path, optional
        Keep the run in this SQLite file, call by call. Where the file exists already, the run in it goes on, bit for
        bit, with a larger budget if one is given; a finished one returns its result. Other settings are refused.
    name : str, optional
        Names the function in the store, which refuses to go on with another.
    target : float, optional
        Stop when the smoothed value of recent iterates is below it (by two standard errors).
    time_limit : float, optional
        Stop in time for the final evaluation to end within so many seconds.
    evaluate : int, optional
        How many fresh calls, part of the budget, measure F at the returned point. By default 2% of the budget, at
        most 200; 0 leaves `fun` NaN.

    Returns
    -------
    Result
        With the point to use in ``x``. Ctrl-C also ends with the result so far.

    Examples
    --------
    >>> import numpy as np, poem_cma as pc
    >>> def distance(x, xi):  # noisy, with a kink at its minimum
    ...     return np.abs(x - 1.0).sum() + xi @ x
    >>> result = pc.minimize(distance, np.zeros(3), sample=lambda rng: rng.normal(size=3), method="poem", seed=0)
    >>> bool(np.abs(result.x - 1.0).max() < 0.1)
    True
    """
    if (form := structure_of(x0)) is not None:
        from poem_cma.parameters.runs import flat_run

        return flat_run(
            minimize, form, fun, x0, domain=domain, scale=scale, vectorized=vectorized, callback=callback,
            sample=sample, paired=paired, method=method, budget=budget, seed=seed, workers=workers, batch=batch,
            ahead=ahead, on_failure=on_failure, progress=progress, store=store, name=name, target=target,
            time_limit=time_limit, evaluate=evaluate,
        )  # fmt: skip
    loop = _Loop(callback, target, time_limit)
    final = check_evaluate(evaluate, budget)
    if workers is not None or store is not None or batch == "auto":
        from poem_cma.run.stored import drive

        return drive(
            fun, x0, sample=sample, paired=paired, method=method, domain=domain, scale=scale, budget=budget, seed=seed,
            vectorized=vectorized, workers=workers, batch=batch, ahead=ahead, on_failure=on_failure, loop=loop,
            progress=progress, store=store, name=name, final=final,
        )  # fmt: skip
    seed = make_seed(seed)
    oracle = Oracle(fun, sample, Streams(seed), vectorized, on_failure)
    opt = optimizer_for(
        sample, x0, method=method, domain=domain, scale=scale, budget=budget - final if final else budget,
        paired=paired, seed=seed, batch=batch, ahead=ahead,
    )  # fmt: skip
    loop.final = final
    with _progress_bar(opt, budget) if progress else nullcontext() as bar:
        try:
            status, message = loop.run(opt, oracle, all_at_once=vectorized == "rows", show=bar)
            result = finished(opt, oracle, status, message, final, budget)
            if bar is not None:
                bar.finish(result.nfev)
        except KeyboardInterrupt:
            result = opt.result(Status.INTERRUPTED, "interrupted; this is the result so far")
            _explain(result, oracle)
        except EvaluationError as error:
            error.result = opt.result(Status.FAILURES, str(error))
            raise
    return result


def finished(opt: Optimizer, oracle: Oracle, status: int | None, message: str, final: int, budget: int) -> Result:
    """The result of a run that is over, its point measured by `final` calls."""
    result = opt.result(status, message)
    if final and result.status != Status.FAILURES:
        _measure(result, oracle, final)
    if result.status == Status.BUDGET:  # the optimiser's own budget leaves out the calls that measure the result
        result.message = result.message.replace(f"of {budget - final} calls", f"of {budget} calls")
    _explain(result, oracle)
    return result


def _explain(result: Result, oracle: Oracle) -> None:
    if oracle.first_failure is not None:
        result.message += f" ({result.failures} calls failed; the first: {oracle.first_failure})"


class _Loop:
    """Ask, evaluate, tell, until there is a reason to stop."""

    def __init__(self, callback: Any, target: float | None, time_limit: float | None) -> None:
        if target is not None and not -inf < target < inf:
            raise ValueError(f"target must be a finite number, not {target!r}")
        if time_limit is not None and not time_limit > 0.0:
            raise ValueError(f"time_limit must be a positive number of seconds, not {time_limit!r}")
        self.callback = _scipy_style(callback) if callback is not None else None
        self.target = target
        self.time_limit = time_limit
        self.started = time.monotonic()
        self.final = 0
        self._nit = 0

    def run(self, opt: Optimizer, oracle: Oracle, all_at_once: bool, show: Any) -> tuple[int | None, str]:
        """The status and message of a stop that was asked for; (None, "") at the end of the budget."""
        watched = any(w is not None for w in (self.callback, self.target, self.time_limit, show))
        go_on = partial(_tell_together, opt, oracle) if all_at_once else partial(opt.answer, oracle.evaluate)
        while go_on():
            if watched and (stop := self.stop(opt, show)) is not None:
                return stop
        return None, ""

    def stop(self, opt: Optimizer, show: Any) -> tuple[int, str] | None:
        """Show where the run is, and say whether there is a reason to stop it."""
        if self._late(opt.nfev):
            return Status.TIME, f"the time limit of {self.time_limit:g} s is reached"
        if opt.nit > self._nit:
            self._nit = opt.nit
            if show is not None:
                show()
            if self._on_target(opt):
                return Status.TARGET, f"the smoothed value is below the target of {self.target:g}"
            if self.callback is not None and self.callback(opt):
                return Status.CALLBACK, "the callback stopped the run"
        return None

    def _late(self, nfev: int) -> bool:
        """Whether the final evaluation, at the pace so far, would end after the time limit."""
        if self.time_limit is None:
            return False
        elapsed = time.monotonic() - self.started
        return elapsed * (1.0 + self.final / max(nfev, 1)) >= self.time_limit

    def _on_target(self, opt: Optimizer) -> bool:
        if self.target is None or opt.nit < STEPS_BEFORE_TARGET:
            return False
        value, stderr = opt.value
        return value + 2.0 * stderr <= self.target


def _tell_together(opt: Optimizer, oracle: Oracle) -> bool:
    """Evaluate everything that can be asked now in one call of a function of rows; False at the end of the run."""
    if opt.one_probe:
        return opt.answer(oracle.evaluate)
    probes = ask_rows(opt)
    if not probes:
        return False
    tell_rows(opt, probes, oracle(*joined(probes)))
    return True


def wants_result(callback: Callable[..., Any]) -> bool:
    """Whether a callback has a parameter named intermediate_result."""
    try:
        return "intermediate_result" in inspect.signature(callback).parameters
    except (TypeError, ValueError):
        return False


def _scipy_style(callback: Callable[..., Any]) -> Callable[[Optimizer], bool]:
    """As SciPy does: a parameter named intermediate_result gets the result, any other gets the point."""
    by_name = wants_result(callback)

    def call(opt: Optimizer) -> bool:
        intermediate = opt.result(Status.RUNNING, "the run goes on")
        intermediate.fun, intermediate.fun_stderr = opt.value
        try:
            if by_name:
                callback(intermediate_result=intermediate)
            else:
                callback(intermediate.x)
        except StopIteration:
            return True
        return False

    return call


def _measure(result: Result, oracle: Oracle, final: int) -> None:
    """The mean of F at the returned point over fresh samples, one call each."""
    values = np.empty(final)
    rows = max(1, ROWS_AT_ONCE // len(result.x))
    for n in range(0, final, rows):
        numbers = list(range(n, min(n + rows, final)))
        points = (result.x.copy() for _ in numbers)
        values[numbers] = oracle(points, numbers, Stream.EVALUATION)
    summarise(result, values)


def summarise(result: Result, values: Array) -> None:
    """Put the mean of fresh values at the returned point, and its standard error, into the result."""
    final = len(values)
    result.nfev += final
    finite = values[np.isfinite(values)]
    result.failures += final - len(finite)
    if len(finite):
        result.fun = float(finite.mean())
    if len(finite) > 1:
        size = float(abs(finite - result.fun).max()) or 1.0  # squares of 1e300 would overflow
        result.fun_stderr = size * float(np.std((finite - result.fun) / size, ddof=1)) / sqrt(len(finite))


def check_evaluate(evaluate: int | None, budget: Any) -> int:
    if evaluate is None:
        return min(200, int(budget) // 50) if isinstance(budget, int | float | np.integer) else 0
    if isinstance(evaluate, bool) or not isinstance(evaluate, int | np.integer) or evaluate < 0:
        raise ValueError(f"evaluate must be a whole number of calls, 0 or more, not {evaluate!r}")
    if evaluate >= budget:
        raise ValueError(f"evaluate={evaluate} calls for measuring the result leave nothing of the budget of {budget}")
    return int(evaluate)


def _progress_bar(opt: Optimizer, budget: int) -> Any:
    from poem_cma.run.progress import Bar

    return Bar(opt, budget)
