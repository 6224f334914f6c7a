"""Small problems for the tests, drawn from fixed seeds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Problem:
    """F(x; xi) with xi an index below n."""

    fun: Callable[[Any, Any], float]
    rows: Callable[[Any, Any], Any]  # F for points (m, d) and one xi each
    full: Callable[[Any], float]
    n: int
    d: int
    lipschitz: float

    def sample(self, rng: np.random.Generator) -> int:
        return int(rng.integers(self.n))


def hinge(d: int = 8, n: int = 200, seed: int = 0) -> Problem:
    """Hinge loss of a linear classifier: convex, kinked, Lipschitz."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, d)) * np.linspace(1.5, 0.3, d)
    y = np.sign(A @ rng.normal(size=d) + 0.1 * rng.normal(size=n))
    return Problem(
        fun=lambda x, i: max(0.0, 1.0 - y[i] * (A[i] @ x)),
        rows=lambda X, i: np.maximum(0.0, 1.0 - y[i] * (A[i] * X).sum(axis=-1)),
        full=lambda x: float(np.maximum(0.0, 1.0 - y * (A @ x)).mean()),
        n=n,
        d=d,
        lipschitz=float(np.sqrt((A**2).sum(axis=1).max())),
    )
