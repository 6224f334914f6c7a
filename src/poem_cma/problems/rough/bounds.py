"""Variables whose scale changes towards a bound: walls 1/x, and a variable that acts through its logarithm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from poem_cma._types import Array
from poem_cma.domains.sets import Box
from poem_cma.problems.black_box import BlackBox

__all__ = ["BLACK_BOXES", "LEAST", "log_variable", "wall"]

#: Minimisers, one value a variable.
_WALL = np.geomspace(0.02, 0.2, 8)
_LOG = np.array([1e-3, 0.5, -0.4, 0.3])

PULL = np.array([1.0, 2.0, 0.5, 1.0, 1.0, 0.5, 2.0, 1.0])

#: Below this distance from the bound a wall grows no further.
_NEAREST = 1e-9


def wall() -> BlackBox:
    """sum p_i (m_i^2 / x_i + x_i) on the box [0, 10]^8, with the minimiser m.

    A sample multiplies each of the sixteen terms by a uniform number between 0.5 and 1.5. At the bound f is about 1e6.
    """
    height = PULL * _WALL**2

    def value(x: Any, walls: Any, pulls: Any) -> float:
        return float((height * walls) @ (1.0 / np.maximum(x, _NEAREST)) + (PULL * pulls) @ np.asarray(x))

    return BlackBox(
        name="wall",
        suite="rough",
        source="a sum of walls 1/x at the lower bounds and of linear terms that pull towards them",
        x0=np.full(8, 4.0),
        domain=Box(np.zeros(8), np.full(8, 10.0)),
        fun=lambda x, xi: value(x, xi[:8], xi[8:]),
        sample=lambda rng: rng.uniform(0.5, 1.5, 16),
        judge=lambda x: value(x, 1.0, 1.0),
        budgets=(300, 1000),
    )


def log_variable() -> BlackBox:
    """(log10(x_0) + 3)^2 + sum (x_i - t_i)^2 on [1e-4, 1] x [-1, 1]^3.

    A sample moves -3 and t by normal errors of standard deviation 0.2. Below 1e-6 the first variable has the value of
    1e-6.
    """
    s, target = 0.2, np.append(-3.0, _LOG[1:])

    def off(x: Any) -> Any:
        z = np.array(x, dtype=float)
        z[0] = np.log10(max(z[0], 1e-6))
        return z - target

    def fun(x: Any, xi: Any) -> float:
        away = off(x) - s * xi
        return float(away @ away) - 4.0 * s**2

    return BlackBox(
        name="log-variable",
        suite="rough",
        source="a quadratic in the logarithm of one variable, which starts 2.5 decades away, and in three others",
        x0=np.array([10.0**-0.5, 0.0, 0.0, 0.0]),
        domain=Box([1e-4, -1.0, -1.0, -1.0], np.ones(4)),
        fun=fun,
        sample=lambda rng: rng.standard_normal(4),
        judge=lambda x: float(np.sum(off(x) ** 2)),
        budgets=(300, 1000),
    )


BLACK_BOXES: dict[str, Callable[[], BlackBox]] = {"wall": wall, "log-variable": log_variable}

LEAST: dict[str, Callable[[], tuple[Array, float]]] = {
    "wall": lambda: (_WALL.copy(), 2.0 * float(PULL @ _WALL)),
    "log-variable": lambda: (_LOG.copy(), 0.0),
}
