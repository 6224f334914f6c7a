"""`scipy.optimize.minimize(fun, x0, method=poem_cma.scipy_method)`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np

from poem_cma._types import Array
from poem_cma.minimize import minimize
from poem_cma.result import Result
from poem_cma.run.stops import CALLBACK_STOPPED, STEPS_BEFORE_TARGET, wants_result

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

__all__ = ["scipy_method"]

#: SciPy's names for the limit of evaluations, and for a tolerance of the point.
BUDGETS, TOLERANCES = ("maxfev", "maxfun"), ("tol", "xtol", "xatol")


def scipy_method(
    fun: Callable[..., Any],
    x0: Any,
    args: tuple[Any, ...] = (),
    *,
    constraints: Any = (),
    callback: Callable[..., Any] | None = None,
    **options: Any,
) -> OptimizeResult:
    """A `method` for `scipy.optimize.minimize`; its `options` are the keywords of `poem_cma.minimize`.

    ``options={"method": "poem"}`` selects one of this library's methods. SciPy's own options have their usual meaning:
    ``maxfev`` is the budget, ``maxiter`` is the largest number of steps, ``disp`` prints why the run ended, and ``tol``
    ends the run when the last half of the evaluations has moved the point by less than `tol`. An unknown option raises
    an OptimizeWarning, as in SciPy. Derivatives are not used. The only possible constraints are bounds.

    Examples
    --------
    >>> import numpy as np, scipy.optimize, poem_cma as pc
    >>> res = scipy.optimize.minimize(
    ...     lambda x: np.abs(x - 2.0).sum(), np.zeros(3), method=pc.scipy_method, bounds=[(0, 1)] * 3,
    ...     options={"maxfev": 2000, "seed": 0, "method": "poem"})
    >>> bool(np.abs(res.x - 1.0).max() < 0.05)
    True
    """
    from scipy.optimize import OptimizeResult, OptimizeWarning

    derivatives = [name for name in ("jac", "hess", "hessp") if options.pop(name, None)]
    if derivatives:
        warnings.warn(f"poem_cma uses values only: {', '.join(derivatives)} ignored", RuntimeWarning, stacklevel=3)
    if constraints is not None and np.size(constraints) > 0:
        raise ValueError("poem_cma knows bounds and its own domains, not constraints=; pass options={'domain': ...}")
    budget, tol = _taken(options, BUDGETS), _taken(options, TOLERANCES)
    if budget is not None:
        options["budget"] = budget
    ends = _Ends(callback, *_checked(options.pop("maxiter", None), tol))
    disp = options.pop("disp", False)
    if unknown := options.keys() - signature(minimize).parameters.keys():
        warnings.warn(f"Unknown solver options: {', '.join(sorted(unknown))}", OptimizeWarning, stacklevel=3)
    known = {name: value for name, value in options.items() if name not in unknown}
    objective = (lambda x, *xi: fun(x, *xi, *args)) if args else fun
    result = minimize(objective, x0, callback=ends if ends.needed else None, **known)
    if ends.reason:
        result.message = result.message.replace(CALLBACK_STOPPED, ends.reason)
    if disp:
        print(f"{result.message}\n         Current function value: {result.fun:.6g} ± {result.fun_stderr:.2g}")  # noqa: T201
        print(f"         Iterations: {result.nit}\n         Function evaluations: {result.nfev}")  # noqa: T201
    return OptimizeResult(**result.to_dict())


def _taken(options: dict[str, Any], names: tuple[str, ...]) -> Any:
    """The value of the option that has one of these names; None if there is none."""
    values = [options.pop(name, None) for name in names]
    return next((value for value in values if value is not None), None)


def _checked(maxiter: Any, tol: Any) -> tuple[Any, Any]:
    if maxiter is not None and not (isinstance(maxiter, int | np.integer) and maxiter >= 1):
        raise ValueError(f"maxiter must be a whole number of steps from 1 up, not {maxiter!r}")
    if tol is not None and not (isinstance(tol, int | float | np.number) and tol >= 0.0):
        raise ValueError(f"tol must be a number, not negative, not {tol!r}")
    return maxiter, tol


class _Ends:
    """A callback that ends the run as SciPy's options ask, and calls the user's own one."""

    def __init__(self, callback: Callable[..., Any] | None, maxiter: int | None, tol: float | None) -> None:
        self._callback, self._maxiter, self._tol = callback, maxiter, tol
        self.needed = any(what is not None for what in (callback, maxiter, tol))
        self.reason = ""
        self._seen: tuple[int, Array] = (0, np.zeros(0))  # evaluations and the point at the last look

    def __call__(self, intermediate_result: Result) -> None:
        """After a step."""
        if self._callback is not None:
            if wants_result(self._callback):
                self._callback(intermediate_result=intermediate_result)
            else:
                self._callback(intermediate_result.x)
        if self._maxiter is not None and intermediate_result.nit >= self._maxiter:
            self._end(f"the largest number of steps, maxiter={self._maxiter}, is reached")
        settled = intermediate_result.nit >= STEPS_BEFORE_TARGET and intermediate_result.nfev >= 2 * self._seen[0]
        if self._tol is not None and settled:
            x = np.asarray(intermediate_result.x)
            if self._seen[0] and float(np.abs(x - self._seen[1]).max()) < self._tol:
                self._end(f"the last half of the evaluations has moved x by less than tol={self._tol:g}")
            self._seen = intermediate_result.nfev, x

    def _end(self, reason: str) -> None:
        self.reason = reason
        raise StopIteration
