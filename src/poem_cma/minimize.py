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
    """Minimise the mean of a noisy function, using only its values.

    Parameters
    ----------
    fun : callable
        ``fun(x) -> float``, or ``fun(x, xi) -> float`` if `sample` is given.
    x0 : array_like, a nest of arrays and numbers, or Result
        The starting point. A point outside the domain is projected onto it, with a warning. If x0 is a dictionary,
        list, tuple, named tuple or dataclass of arrays and numbers, possibly nested, `fun` receives its points in the
        same form, and the result has this form. With ``vectorized``, each leaf has an additional first axis. A number
        may be declared as `Real` or `Integer`, with its bounds. If x0 is the `Result` of an earlier run with the same
        method, the search continues from it: at its x, in its domain unless another one is given, with the scale and
        the covariance that were learned.
    sample : callable, optional
        ``sample(rng)`` draws xi with a `numpy.random.Generator`. xi can be an index, a seed, an array or any other
        object. Points that are compared share their xi, so that the noise which they have in common cancels.
    paired : bool
        Whether points that are compared share their xi. If False, every point draws its own.
    method : str or Method
        "auto" (the default), "poem-cma", "poem", "tpbco", "tpge", "rsnso", or one made by a constructor in
        `poem_cma.methods`.
    domain : optional
        A `Ball`, `Box`, `Simplex`, `L1Ball`, `scipy.optimize.Bounds`, or any object with `project(x)` and `diameter`.
        None is all of R^d. A `Box` says which variables are integers, and which are searched on a log scale. No point
        outside the domain is evaluated, unless the domain has ``outside=True``. If x0 is a nest, give one domain for
        all its numbers, or a nest of domains.
    scale : float or array, optional
        The typical size of each variable, or of its logarithm if it is searched on a log scale. The search uses
        x / scale. If x0 is a nest, `scale` may be a nest, too.
    budget : int
        The largest number of evaluations of `fun`, including those that measure the result.
    seed : int, optional
        The same seed gives the same run.
    vectorized : bool or "rows"
        If True, ``fun(X[, xi])`` takes points of shape (m, d) and returns values of shape (m,). It is called once for
        each distinct xi. If "rows", a call has all points that can be evaluated together, and `xi` has one entry for
        each row.
    workers : int, executor or Workers, optional
        Where to evaluate `fun`: a number of processes, any `concurrent.futures.Executor`, a Dask client, the module
        ``ray``, or a `Workers` with one of them, which says what to do about evaluations that hang or fail. The result
        does not depend on the order in which evaluations end. If `batch` is a number, it does not depend on the number
        of workers either.
    batch : int or "auto"
        The number of independent samples and directions of a step. "auto" uses one, and starts as many steps `ahead` as
        keep the workers busy. The method "auto" evaluates the points of one step together instead.
    ahead : int
        The number of steps that are started before the current one is complete. This keeps many workers busy. It does
        not improve the result.
    on_failure : "drop" or "raise"
        What to do if `fun` raises or returns no finite number: leave the difference out, or raise an `EvaluationError`
        with the point and the result so far.
    callback : callable, optional
        Called after each step as ``callback(intermediate_result=...)`` with a `Result`, or ``callback(x)`` if its
        parameter has another name. Raising StopIteration ends the run.
    progress : bool
        Whether to show evaluations, value, distance and remaining time: continuously in a terminal or a notebook, as
        one line each minute in a log.
    store : path, optional
        An SQLite file that keeps every evaluation. If the file exists, its run continues, with a larger budget if one
        is given. A run that has ended returns its result. If other settings have changed, an error is raised.
    name : str, optional
        A name for the function, kept in the store. A run with another name raises an error.
    target : float, optional
        Stop when the smoothed value of recent iterates is below `target` by two standard errors.
    time_limit : float, optional
        Stop after this number of seconds, including the final evaluations.
    evaluate : int, optional
        The number of fresh samples on which the returned point and x0 are evaluated. These evaluations, two for each
        sample, are part of the budget. By default 5% of the budget, between 10 and 200, and at most a third of the
        budget in all. With 0, `value` and `gain` are NaN.
    bounds : optional
        An alternative to `domain`: a pair (lower, upper) for each variable, with None for no bound.
    maximize : bool
        Whether to maximise the mean of `fun` instead. `target` and all reported values are values of `fun`.

    Returns
    -------
    Result
        Its attribute ``x`` is the point to use. Ctrl-C ends the run and returns the result so far.

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
