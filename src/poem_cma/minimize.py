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
        ``sample(rng)`` draws xi with the `numpy.random.Generator` that it is given: an index, a seed, an array, any
        object. Points that are compared share their xi, so that noise which they have in common cancels.
    paired : bool
        Whether points that are compared share their xi. If False, every point draws its own.
    method : str or Method
        "auto" (the default), "poem-cma", "poem", "tpbco", "tpge", "rsnso", or one made by a constructor in
        `poem_cma.methods`.
    domain : optional
        A `Ball`, `Box`, `Simplex`, `L1Ball`, `scipy.optimize.Bounds`, or any object with `project(x)` and `diameter`.
        None is all of R^d. A `Box` says which variables are integers, and which are searched by their logarithm. No
        point outside the domain is ever evaluated, unless it is given with ``outside=True``.
        If x0 is a nest, give one domain for all its numbers, or a nest of domains.
    scale : float or array, optional
        The typical size of each variable, or of its logarithm if that is searched. The search happens in x / scale.
        If x0 is a nest, `scale` may be a nest, too.
    budget : int
        The largest number of evaluations of `fun`. All of them count, also those that measure the result.
    seed : int, optional
        The same seed gives the same run.
    vectorized : bool or "rows"
        If True, ``fun(X[, xi])`` takes points (m, d) and returns (m,); it is called once for each distinct xi. If
        "rows", one call has everything that can be evaluated at once, and `xi` has one entry for each row.
    workers : int, executor or Workers, optional
        Where to evaluate `fun`: a number of processes, any `concurrent.futures.Executor`, a Dask client, the module
        ``ray``, or a `Workers` around one of them, which says what to do about evaluations that hang or fail. The
        result does not depend on the order of the answers. If `batch` is a number, it does not depend on the number of
        workers either.
    batch : int or "auto"
        How many independent samples and directions a step uses. "auto" uses one, and as many steps `ahead` as keep the
        workers busy. Method "auto" hands out the evaluations of one step together instead.
    ahead : int
        How many steps are asked before the current one is complete. This keeps many workers busy; it does not improve
        the result.
    on_failure : "drop" or "raise"
        What to do if `fun` raises, or returns no finite number: leave the difference out, or raise an
        `EvaluationError` that has the point and the result so far.
    callback : callable, optional
        Called after each step as ``callback(intermediate_result=...)`` with a `Result`, or ``callback(x)`` if its
        parameter has another name. Raising StopIteration ends the run.
    progress : bool
        Whether to show evaluations, value, distance and time left: continuously in a terminal or a notebook, one line a
        minute in a log.
    store : path, optional
        Keep every evaluation in this SQLite file. If the file exists, its run continues, with a larger budget if one is
        given; a run that has ended returns its result. If other settings have changed, the run is refused.
    name : str, optional
        A name of the function, kept in the store. A run with another name is refused.
    target : float, optional
        Stop when the smoothed value of recent iterates is below this by two standard errors.
    time_limit : float, optional
        Stop after so many seconds, the final evaluations included.
    evaluate : int, optional
        The number of fresh samples on which the returned point and x0 are evaluated. These evaluations, two for each
        sample, are part of the budget. By default 5% of the budget, between 10 and 200, and at most a third of the
        budget in all. With 0, `value` and `gain` are NaN.
    bounds : optional
        Another way to give the domain: a pair (lower, upper) for each variable, with None where there is no bound.
    maximize : bool
        Whether to look for the largest mean of `fun` instead of the smallest. `target` and all values that are shown
        are values of `fun`.

    Returns
    -------
    Result
        The point to use is ``x``. Ctrl-C ends the run with the result so far.

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
