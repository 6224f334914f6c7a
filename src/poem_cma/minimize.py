"""The function that most users call."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from poem_cma.domains.bounds import domain_of
from poem_cma.result import Result
from poem_cma.run.algorithm import Method
from poem_cma.run.front import run
from poem_cma.run.settings import Place, Problem, Search, Stops

__all__ = ["minimize"]


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
    batch: int | Literal["auto"] = "auto",
    ahead: int = 0,
    on_failure: Literal["drop", "raise"] = "drop",
    callback: Callable[..., Any] | None = None,
    progress: bool = False,
    store: str | os.PathLike[str] | None = None,
    name: str | None = None,
    target: float | None = None,
    time_limit: float | None = None,
    evaluate: int | None = None,
    bounds: Any = None,
    maximize: bool = False,
) -> Result:
    """Minimise the mean of a noisy function from its values alone.

    Parameters
    ----------
    fun : callable
        ``fun(x) -> float``, or ``fun(x, xi) -> float`` where `sample` is given.
    x0 : array_like, a nest of arrays and numbers, or Result
        Where to start. From the `Result` of an earlier run with the same method, the search continues at its x, over
        the distances and with the covariance that were learned, and in its domain, unless another one is given. A point
        outside the domain is projected on it,
        with a warning. A dictionary, list, tuple, named tuple or dataclass of arrays and numbers, nested at will, is
        given to `fun` in the same form, and so are the points of the result. A number may be declared as `Real` or
        `Integer`, with its bounds. ``vectorized``: each leaf has a first axis more.
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
        None is all of R^d. A `Box` says which variables are integers, and which are searched by their logarithm. No
        point outside the domain is ever evaluated, unless it is given with ``outside=True``.
        For an x0 that is a nest: one for all the numbers in it, or a nest of domains.
    scale : float or array, optional
        The typical size of each variable, or of its logarithm if that is searched; the search happens in x / scale.
        For a nest also a nest of them.
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
        or fail. All of them are kept busy: methods of the paper ask as many steps `ahead` as that takes, and `auto`
        hands out the evaluations of a step together. The result does not depend on the order of the answers, and with
        a number for `batch` not on the number of workers either.
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
        Show calls, value, distance and time left: in a terminal or a notebook continuously, in a log one line a minute.
    store : path, optional
        Keep the run in this SQLite file, call by call. Where the file exists already, the run in it goes on, bit for
        bit, with a larger budget if one is given; a finished one returns its result. Other settings are refused.
    name : str, optional
        Names the function in the store, which refuses to go on with another.
    target : float, optional
        Stop when the smoothed value of recent iterates has reached it (by two standard errors).
    time_limit : float, optional
        Stop in time for the final evaluation to end within so many seconds.
    evaluate : int, optional
        On how many fresh samples F is measured at the returned point and at x0; the calls, two for each sample, are
        part of the budget. By default 5% of the budget, at least 10 and at most 200, but no more than a third of the
        budget in all. With 0, `value` and `gain` are NaN.
    bounds : optional
        Another way to give the domain: a pair (lower, upper) for each variable, with None where there is no bound.
    maximize : bool
        Look for the largest mean of `fun` instead of the smallest. `target`, the values of the result and those that
        are shown are values of `fun`.

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
    return run(
        Problem(fun, sample, vectorized, on_failure, maximize),
        Search(x0, method, domain_of(domain, bounds, x0), scale, budget, evaluate, paired, seed, batch, ahead),
        Stops(callback, target, time_limit),
        Place(workers, store, name, progress=progress),
    )
