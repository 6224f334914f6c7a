"""Regression on Gaussian features of low or full rank, where everything is known in closed form.

The features are a = U z with z normal in k dimensions and U (d, k) orthonormal, the response is a'x* + sigma e with e
normal, and xi is the pair of both. The residual is normal with variance v = |U'(x - x*)|^2 + sigma^2, hence the mean of
its absolute value is sqrt(2 v / pi), and that of half its square v / 2.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi, sqrt
from typing import Any

import numpy as np

from poem_cma.problems.problem import Problem

__all__ = ["GAUSSIAN"]

NOISE = 0.5  # sigma
DISTANCE = 3.0  # of x* from x0


def build(kind: str, d: int, rank: int) -> Problem:
    """Absolute or squared loss in d dimensions with features of that rank."""
    rng = np.random.default_rng([d, rank])
    U = np.linalg.qr(rng.standard_normal((d, rank)))[0]
    x_star = U @ rng.standard_normal(rank)
    x_star *= DISTANCE / np.linalg.norm(x_star)
    absolute = kind == "absolute"

    def sample(rng: np.random.Generator) -> tuple[Any, float]:
        a = U @ rng.standard_normal(rank)
        return a, float(a @ x_star + NOISE * rng.standard_normal())

    def fun(X: Any, xi: tuple[Any, float]) -> Any:
        residual = X @ xi[0] - xi[1]
        return np.abs(residual) if absolute else 0.5 * residual**2

    def gradient(x: Any, xi: tuple[Any, float]) -> Any:
        residual = float(xi[0] @ x) - xi[1]
        return (np.sign(residual) if absolute else residual) * xi[0]

    def objective(x: Any) -> float:
        off = U.T @ (x - x_star)
        v = float(off @ off) + NOISE**2
        return sqrt(2.0 * v / pi) if absolute else 0.5 * v

    return Problem(
        name=_name(kind, d, rank),
        x0=np.zeros(d),
        domain=None,
        fun=fun,
        sample=sample,
        objective=objective,
        optimum=sqrt(2.0 / pi) * NOISE if absolute else 0.5 * NOISE**2,
        certificate="closed form: at x* only the noise is left of the residual, "
        + ("whose mean size is sqrt(2 / pi) sigma" if absolute else "half of whose mean square is sigma^2 / 2"),
        noisy=True,
        smooth=not absolute,
        gradient=gradient,
    )


def _name(kind: str, d: int, rank: int) -> str:
    return f"{kind}-full-rank-{d}" if rank == d else f"{kind}-rank{rank}-of-{d}"


def _builder(kind: str, d: int, rank: int) -> Callable[[], Problem]:
    return lambda: build(kind, d, rank)


GAUSSIAN = {
    _name(kind, d, rank): _builder(kind, d, rank)
    for kind in ("absolute", "squared")
    for d, rank in ((100, 1), (100, 5), (100, 20), (1000, 1), (1000, 5), (1000, 20), (100, 100))
}
