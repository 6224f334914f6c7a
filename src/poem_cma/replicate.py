"""Many independent runs at once: the same results as one after another, sooner."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import Any, Literal

import numpy as np

from poem_cma._types import Array
from poem_cma.domains.bounds import domain_of
from poem_cma.optimizer import Optimizer
from poem_cma.parameters.nest import structure_of
from poem_cma.parameters.runs import flat, nested, nested_errors, typed
from poem_cma.result import Result
from poem_cma.run.algorithm import Method, Probe
from poem_cma.run.direct import Direct
from poem_cma.run.front import calls_of, direct
from poem_cma.run.joint import JointRuns, can_join, in_step
from poem_cma.run.loop import conclude
from poem_cma.run.oracle import Oracle, in_rows, one_for_each
from poem_cma.run.randomness import make_seed
from poem_cma.run.settings import Problem, Search
from poem_cma.run.vectorized import ROWS_AT_ONCE, ask_rows, joined, tell_rows

__all__ = ["replicate"]


def replicate(
    fun: Callable[..., Any],
    x0: Any,
    *,
    seeds: Iterable[int] = range(32),
    sample: Callable[[np.random.Generator], Any] | None = None,
    paired: bool = True,
    method: str | Method = "auto",
    domain: Any = None,
    scale: Any = None,
    budget: int = 10_000,
    vectorized: bool | Literal["rows"] = False,
    batch: int = 1,
    on_failure: Literal["drop", "raise"] = "drop",
    evaluate: int | None = None,
    bounds: Any = None,
) -> list[Result]:
    """Minimise from many seeds and starting points, with all runs advanced together.

    Parameters
    ----------
    fun, sample, paired, method, domain, scale, budget, batch, on_failure, evaluate, bounds
        As in `minimize`; the budget is that of each run.
    x0 : array_like (d,) or (m, d), or a nest of arrays and numbers
        One starting point or several. A nest, as in `minimize`, is one starting point.
    seeds : iterable of int
        Each seed gives a run from each starting point.
    vectorized : bool or "rows"
        As in `minimize`. With "rows", and with True if there is no `sample`, one call of `fun` serves all runs. With
        False, the runs share all other work.

    Returns
    -------
    list of Result
        In the order of the starting points, and for each in the order of the seeds. The results are equal, bit for bit,
        to those of `minimize` with the same arguments, if the value of a row does not depend on the other rows.

    Examples
    --------
    >>> import numpy as np, poem_cma as pc
    >>> def distance(X):
    ...     return np.abs(X - 1.0).sum(axis=1)
    >>> results = pc.replicate(
    ...     distance, np.zeros(3), seeds=range(5), method="poem", vectorized="rows", budget=2000)
    >>> bool(max(np.abs(r.x - 1.0).max() for r in results) < 0.1)
    True
    """
    problem = Problem(fun, sample, vectorized, on_failure)
    search = Search(x0, method, domain_of(domain, bounds, x0), scale, budget, evaluate, paired, batch=batch)
    return _replicas(problem, search, seeds)


def _replicas(problem: Problem, search: Search, seeds: Iterable[int]) -> list[Result]:
    """The runs from all starting points and seeds, advanced together."""
    if (form := structure_of(search.x0)) is not None:
        form = typed(form, search)
        with nested_errors(form):
            return [nested(result, form) for result in _replicas(*flat(form, problem, search), seeds)]
    x0, seeds = search.x0, [make_seed(seed) for seed in seeds]
    starts = np.atleast_2d(np.asarray(x0)) if np.ndim(x0) == 2 else [x0]
    calls = calls_of(search)
    runs = [direct(problem, search._replace(x0=start, seed=seed), calls) for start in starts for seed in seeds]
    shared = problem.vectorized == "rows" or (problem.vectorized is True and problem.sample is None)
    while active := [run for run in runs if not run.opt.done]:
        _go_on(active, problem.fun, shared)
    return [conclude(run.opt, run, calls) for run in runs]


Runs = Sequence[Direct]


def _go_on(runs: Runs, fun: Callable[..., Any], shared: bool) -> None:
    """Advance those together that can be, once all others have come to where they can be, too, or to their end."""
    opts = [run.opt for run in runs]
    if unable := [run for run in runs if not can_join(run.opt)]:
        _one_round(unable, fun, shared)
        return
    alone, calls = set(range(len(runs))), sum(opt.nfev for opt in opts)
    for group in in_step(opts):
        JointRuns([opts[i] for i in group]).advance(_Evaluate(fun, [runs[i].oracle for i in group], shared))
        alone -= set(group)
    if sum(opt.nfev for opt in opts) == calls:
        alone = set(range(len(runs)))
    if alone:
        _one_round([runs[i] for i in sorted(alone)], fun, shared)


def _one_round(runs: Runs, fun: Callable[..., Any], shared: bool) -> None:
    """Every run asks what it can ask now; then all are told."""
    if not shared:
        for run in runs:
            run.step()
        return
    asked: list[tuple[Optimizer, Oracle, list[Probe]]] = []
    numbers = 0
    for run in runs:
        if numbers < ROWS_AT_ONCE and (probes := ask_rows(run.opt)):
            asked.append((run.opt, run.oracle, probes))
            numbers += sum(probe.points.size for probe in probes)
    values = _values(fun, [(oracle, *joined(probes)) for _, oracle, probes in asked])
    for k, (opt, oracle, probes) in enumerate(asked):
        if values is not None:
            tell_rows(opt, probes, values[k])
        elif oracle.by_row:  # in one call what is one call of a run alone: if it raises, all of it has failed
            tell_rows(opt, probes, oracle.evaluate(*joined(probes)))
        else:
            for probe in probes:
                opt.tell(probe, oracle.evaluate(probe.points, probe.numbers))


def _values(fun: Callable[..., Any], asked: list[tuple[Oracle, Array, list[int]]]) -> list[list[float]] | None:
    """The values of points of many runs, from one call; None if that does not go well."""
    xi = [one for oracle, _, numbers in asked for one in oracle.draw(numbers)]
    points = np.concatenate([points for _, points, _ in asked])
    values = _in_one_call(fun, points, in_rows(xi)) if xi else _in_one_call(fun, points)
    if values is None:
        return None
    parts = []
    told = values.tolist()
    for oracle, _, numbers in asked:
        oracle.nfev += len(numbers)
        parts.append(told[: len(numbers)])
        told = told[len(numbers) :]
    return parts


def _in_one_call(fun: Callable[..., Any], points: Array, *xi: Any) -> Array | None:
    """The values of rows that belong to many runs; None where one failed: then each run sees to its own failures."""
    try:
        out = fun(points, *xi)
    except Exception:
        return None
    values = one_for_each(points, out)
    finite = np.vdot(values, values) < inf or np.isfinite(values).all()  # the first is quicker; squares may overflow
    return values if finite else None


class _Evaluate:
    """The values of runs in step with each other: points (m of shape (n, d)) to values (m, n, 1)."""

    def __init__(self, fun: Callable[..., Any], oracles: Sequence[Oracle], shared: bool) -> None:
        self._fun = fun
        self._oracles = oracles
        self._shared = shared
        self._calls = 0  # that the oracles have not counted

    def __call__(self, points: list[Array], numbers: list[int]) -> Array:
        m, n = len(points), len(self._oracles)
        if self._shared:
            F = _in_one_call(self._fun, np.concatenate(points), *self._draw(numbers))
            if F is not None:
                self._calls += m
                return F.reshape(m, n, 1)
        for oracle in self._oracles:
            oracle.nfev += self._calls
        self._calls = 0
        each = [oracle.evaluate((P[i] for P in points), numbers) for i, oracle in enumerate(self._oracles)]
        return np.array(each).T.reshape(m, n, 1)

    def _draw(self, numbers: list[int]) -> tuple[Any, ...]:
        """The xi's of all runs for the first point, then for the next; nothing where there is nothing to draw."""
        if not self._oracles[0].samples:
            return ()
        first, *others = numbers
        if any(number != first for number in others):
            return (in_rows([oracle.xi(number) for number in numbers for oracle in self._oracles]),)
        xi = in_rows([oracle.xi(first) for oracle in self._oracles])  # as a rule: the points of a probe share theirs
        return (np.concatenate([xi] * len(numbers)) if isinstance(xi, np.ndarray) else xi * len(numbers),)
