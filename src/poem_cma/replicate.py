"""Many independent runs at once: the same results as one after another, sooner."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

import numpy as np

from poem_cma.domains.bounds import domain_of
from poem_cma.parameters.nest import structure_of
from poem_cma.parameters.runs import flat, nested, nested_errors, typed
from poem_cma.result import Result
from poem_cma.run.algorithm import Method
from poem_cma.run.front import calls_of, direct
from poem_cma.run.loop import perform
from poem_cma.run.randomness import make_seed
from poem_cma.run.replicas import SharedCalls
from poem_cma.run.settings import Problem, Search, Stops
from poem_cma.run.stops import Watch

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
    callback: Callable[..., Any] | None = None,
    target: float | None = None,
    time_limit: float | None = None,
    evaluate: int | None = None,
    bounds: Any = None,
) -> list[Result]:
    """Minimise from many seeds and starting points, with all runs advanced together.

    Parameters
    ----------
    fun, sample, paired, method, domain, scale, budget, batch, on_failure, target, evaluate, bounds
        As in `minimize`; the budget is that of each run.
    callback : callable, optional
        As in `minimize`, after each step of each run; ``intermediate_result.seed`` says of which. Raising
        StopIteration ends this run, and no other.
    time_limit : float, optional
        Stop all runs after so many seconds, the final evaluations included.
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
        Ctrl-C ends the runs with their results so far.

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
    return _replicas(problem, search, Stops(callback, target, time_limit), seeds)


def _replicas(problem: Problem, search: Search, stops: Stops, seeds: Iterable[int]) -> list[Result]:
    """The runs from all starting points and seeds, advanced together."""
    if (form := structure_of(search.x0)) is not None:
        form = typed(form, search)
        with nested_errors(form):
            return [nested(result, form) for result in _replicas(*flat(form, problem, search, stops), seeds)]
    x0, seeds = search.x0, [make_seed(seed) for seed in seeds]
    starts = np.atleast_2d(np.asarray(x0)) if np.ndim(x0) == 2 else [x0]
    watch, calls = Watch(stops), calls_of(search)
    runs = [direct(problem, search._replace(x0=start, seed=seed), calls) for start in starts for seed in seeds]
    return perform(runs, SharedCalls(problem, one_step=watch.looks), watch, calls)
