"""`scipy.optimize.minimize(fun, x0, method=poem_cma.scipy_method)`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from poem_cma.domains.sets import Box
from poem_cma.minimize import minimize

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

__all__ = ["scipy_method"]


def scipy_method(
    fun: Callable[..., Any],
    x0: Any,
    args: tuple[Any, ...] = (),
    *,
    bounds: Any = None,
    constraints: Any = (),
    callback: Callable[..., Any] | None = None,
    method: Any = "auto",
    maxfev: int | None = None,
    **options: Any,
) -> OptimizeResult:
    """A `method` for `scipy.optimize.minimize`; its `options` are the keywords of `poem_cma.minimize`.

    ``maxfev`` is another name for ``budget``, and ``options={"method": "poem"}`` chooses among this library's methods.
    Derivatives are not used; of the constraints only bounds are possible.

    Examples
    --------
    >>> import numpy as np, scipy.optimize, poem_cma as pc
    >>> res = scipy.optimize.minimize(
    ...     lambda x: np.abs(x - 2.0).sum(), np.zeros(3), method=pc.scipy_method, bounds=[(0, 1)] * 3,
    ...     options={"maxfev": 2000, "seed": 0, "method": "poem"})
    >>> bool(np.abs(res.x - 1.0).max() < 0.05)
    True
    """
    from scipy.optimize import Bounds, OptimizeResult

    derivatives = [name for name in ("jac", "hess", "hessp") if options.pop(name, None)]
    if derivatives:
        warnings.warn(f"poem_cma uses values only: {', '.join(derivatives)} ignored", RuntimeWarning, stacklevel=3)
    if constraints is not None and np.size(constraints) > 0:
        raise ValueError("poem_cma knows bounds and its own domains, not constraints=; pass options={'domain': ...}")
    if bounds is not None:
        if options.get("domain") is not None:
            raise ValueError("give bounds=, or a domain in options, not both")
        options["domain"] = bounds if isinstance(bounds, Bounds) else _box(bounds)
    if maxfev is not None:
        options["budget"] = maxfev
    objective = (lambda x, *xi: fun(x, *xi, *args)) if args else fun
    result = minimize(objective, x0, method=method, callback=callback, **options)
    return OptimizeResult(**{f.name: getattr(result, f.name) for f in fields(result)})


def _box(pairs: Any) -> Box:
    low, high = zip(*[(-np.inf if lo is None else lo, np.inf if hi is None else hi) for lo, hi in pairs], strict=True)
    return Box(np.array(low, dtype=float), np.array(high, dtype=float))
