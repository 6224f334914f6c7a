"""What a black box of the field is: a function that somebody else would write, with a judge instead of an optimum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from poem_cma._types import Array
from poem_cma.domains.sets import Box, Simplex
from poem_cma.minimize import minimize
from poem_cma.result import Result

__all__ = ["BlackBox", "mean_over"]


@dataclass(frozen=True, eq=False, repr=False)
class BlackBox:
    """Minimise f(x) = E F(x; xi) from values alone; the least value is not known.

    Attributes
    ----------
    name : str
    suite : str
        The suite it belongs to: "simulators", "policies", "rough" or "noisy-bbob".
    source : str
        The origin of the function, in one line.
    x0 : array
        The starting point, in the domain.
    domain : object or None
        A domain as in `poem_cma.minimize`; None is all of R^d.
    fun : callable
        ``fun(x, xi)``: F at one point; equal xi give equal values.
    sample : callable
        ``sample(rng)`` draws xi.
    judge : callable
        ``judge(x)``: f itself, or the mean of F over fixed samples that no run sees. Optimisers must not use it.
    budgets : tuple of int
        A small and a usual number of evaluations.
    shared : bool
        Whether an optimiser is given xi. If not, every evaluation has noise of its own.

    Examples
    --------
    >>> import numpy as np
    >>> box = BlackBox(
    ...     "parabola", "rough", "an example", np.ones(2), None, lambda x, xi: float(x @ x) + xi,
    ...     lambda rng: rng.standard_normal(), lambda x: float(x @ x), (300, 1000),
    ... )
    >>> box, box.score(np.zeros(2), best=0.0)
    (BlackBox('parabola', d=2, shared=True), 0.0)
    """

    name: str
    suite: str
    source: str
    x0: Array
    domain: Any
    fun: Callable[[Any, Any], float]
    sample: Callable[[np.random.Generator], Any]
    judge: Callable[[Any], float]
    budgets: tuple[int, int]
    shared: bool = True

    def __post_init__(self) -> None:
        self.x0.setflags(write=False)

    def __repr__(self) -> str:
        return f"BlackBox({self.name!r}, d={self.d}, shared={self.shared})"

    @property
    def d(self) -> int:
        """The number of variables."""
        return len(self.x0)

    @property
    def box(self) -> Box | None:
        """The domain if it is a box with finite bounds, or the smallest box around a simplex."""
        if isinstance(self.domain, Simplex):
            return Box(np.zeros(self.d), np.full(self.d, self.domain.total))
        finite = isinstance(self.domain, Box) and np.isfinite(self.domain.diameter)
        return self.domain if finite else None

    def score(self, x: Any, best: float) -> float:
        """(f(x) - best) / (f(x0) - best): 0 at the best value known, 1 at x0, above 1 if worse than x0."""
        start = self.judge(self.x0)
        return (self.judge(np.asarray(x, dtype=float)) - best) / (start - best)

    def with_noise(self, rng: np.random.Generator) -> Callable[[Any], float]:
        """F at a point, on a new sample in every evaluation."""
        return lambda x: self.fun(x, self.sample(rng))

    def solve(self, **settings: Any) -> Result:
        """Run `poem_cma.minimize` on the problem.

        Parameters
        ----------
        **settings
            Any of `minimize`: method, budget, seed, callback and so on.
        """
        given = {"x0": self.x0, "domain": self.domain}
        if self.shared:
            return minimize(self.fun, **{**given, "sample": self.sample, **settings})
        return minimize(self.with_noise(np.random.default_rng([settings.get("seed") or 0, 1])), **{**given, **settings})


def mean_over(
    fun: Callable[[Any, Any], float], sample: Callable[[np.random.Generator], Any], number: int, seed: int = 2026
) -> Callable[[Any], float]:
    """A judge: the mean of F over a fixed set of samples, which are drawn when they are first needed."""
    drawn: list[Any] = []

    def judge(x: Any) -> float:
        if not drawn:
            rng = np.random.default_rng(seed)
            drawn.extend(sample(rng) for _ in range(number))
        point = np.asarray(x, dtype=float)
        return float(np.mean([fun(point, xi) for xi in drawn]))

    return judge
