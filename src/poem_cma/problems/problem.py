"""What a test problem is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from poem_cma._types import Array
from poem_cma.minimize import minimize
from poem_cma.result import Result

__all__ = ["Problem"]


@dataclass(frozen=True, eq=False, repr=False)
class Problem:
    """Minimise f(x) = E F(x; xi) over a convex set; the least value is known.

    Attributes
    ----------
    name : str
    x0 : array
        The starting point, in the domain.
    domain : object or None
        A domain as in `poem_cma.minimize`; None is all of R^d.
    fun : callable
        ``fun(X, xi)``: F at the rows of X, shape (m, d), all on one xi; returns (m,).
    sample : callable
        ``sample(rng)`` draws xi; it returns None if there is no noise.
    objective : callable
        ``objective(x)``: f itself, exact up to rounding. Optimisers must not use it.
    optimum : float
        f*. If it is only known to lie between two numbers, the lower of them.
    certificate : str
        How f* is known.
    noisy : bool
        Whether F depends on xi.
    smooth : bool
        Whether F(.; xi) is differentiable everywhere.
    slack : float
        The true least value lies between `optimum` and `optimum + slack`.
    gradient : callable or None
        ``gradient(x, xi)``: a subgradient of F(.; xi) at x, for comparison with methods that see gradients.
    shareable : bool
        Whether several points can be evaluated on one xi. Where not, every call has noise of its own.

    Examples
    --------
    >>> from poem_cma import problems
    >>> problem = problems.load("max-affine")
    >>> problem.d, problem.noisy, problem.gap(problem.x0)
    (20, False, 1.0)
    >>> problem
    Problem('max-affine', d=20, noisy=False, smooth=False, optimum=0.716769)
    """

    name: str
    x0: Array
    domain: Any
    fun: Callable[[Any, Any], Any]
    sample: Callable[[np.random.Generator], Any]
    objective: Callable[[Any], float]
    optimum: float
    certificate: str
    noisy: bool
    smooth: bool
    slack: float = 0.0
    gradient: Callable[[Any, Any], Any] | None = None
    shareable: bool = True

    def __post_init__(self) -> None:
        self.x0.setflags(write=False)

    def __repr__(self) -> str:
        kind = f"noisy={self.noisy}, smooth={self.smooth}"
        return f"Problem({self.name!r}, d={self.d}, {kind}, optimum={self.optimum:.6g})"

    @property
    def d(self) -> int:
        """The number of variables."""
        return len(self.x0)

    def gap(self, x: Any) -> float:
        """(f(x) - f*) / (f(x0) - f*): 1 at the start, 0 at the optimum.

        Examples
        --------
        >>> from poem_cma import problems
        >>> problem = problems.load("box-corner")
        >>> problem.gap(problem.x0), problem.gap(0.1 * problem.domain.upper) < 2.0
        (1.0, True)
        """
        start = self.objective(self.x0)
        return (self.objective(np.asarray(x, dtype=float)) - self.optimum) / (start - self.optimum)

    def solve(self, **settings: Any) -> Result:
        """Run `poem_cma.minimize` on the problem.

        Parameters
        ----------
        **settings
            Any of `minimize`: method, budget, seed, callback, paired and so on.

        Examples
        --------
        >>> from poem_cma import problems
        >>> problem = problems.load("squared-rank5-of-100")
        >>> result = problem.solve(method="poem", budget=2000, seed=0)
        >>> problem.gap(result.x) < 1.0
        True
        """
        of_domain = {"x0": self.x0, "domain": self.domain, "vectorized": True}
        if self.noisy and self.shareable:
            return minimize(self.fun, **{**of_domain, "sample": self.sample, **settings})
        if self.noisy:
            own = self.with_noise(np.random.default_rng(settings.get("seed")))
            return minimize(own, **{**of_domain, **settings})
        return minimize(lambda X: self.fun(X, None), **{**of_domain, **settings})

    def with_noise(self, rng: np.random.Generator) -> Callable[[Any], Any]:
        """F at the rows of X, (m, d), each on a xi of its own.

        Examples
        --------
        >>> from poem_cma import problems
        >>> problem = problems.load("unshared-quadratic")
        >>> measure = problem.with_noise(np.random.default_rng(0))
        >>> bool(measure(problem.x0[None])[0] == measure(problem.x0[None])[0])
        False
        """
        return lambda X: np.concatenate([self.fun(x[None], self.sample(rng)) for x in X])
