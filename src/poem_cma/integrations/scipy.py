"""`scipy.optimize.minimize(fun, x0, method=scipy_method)`: the same function as `poem_cma.scipy_method`."""

from poem_cma.scipy_method import scipy_method

__all__ = ["scipy_method"]
