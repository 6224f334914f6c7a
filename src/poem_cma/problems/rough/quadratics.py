"""Quadratics with noise in every evaluation, in a box whose bounds are far from the minimum, near it, or hold it.

The names are `quadratic-{condition}-d{d}-{noise}-{where}`, such as `quadratic-100-d20-10pct-near`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from poem_cma._types import Array
from poem_cma.domains.sets import Box
from poem_cma.problems.black_box import BlackBox

__all__ = ["BLACK_BOXES", "CORE", "LEAST", "quadratic"]

_CONDITIONS = {"1": 1.0, "100": 1e2, "1e4": 1e4}
_DIMENSIONS = (5, 20, 100)
_NOISES = {"1pct": 0.01, "10pct": 0.1}
_PLACES = ("inside", "near", "on")


def quadratic(condition: str, d: int, noise: str, where: str) -> BlackBox:
    """(z'Hz / 2 + g'z) / scale on the box [-1, 1]^d, with z = x - m, the minimiser m and H turned at random.

    The least value is 0 and f(x0) is 1. Every evaluation has a normal error.

    Parameters
    ----------
    condition : {"1", "100", "1e4"}
        The condition number of H.
    d : int
    noise : {"1pct", "10pct"}
        The standard deviation of the error, as a share of f(x0).
    where : {"inside", "near", "on"}
        "inside": every variable of m is at least 0.5 from its bounds. "near": a third of the variables are 0.01 from a
        bound. "on": a third of the variables are on a bound and f falls beyond it. There g points into the box, which
        makes m the minimiser in the box because f is convex.
    """
    H, g, m, x0 = _parts(condition, d, where)

    def value(x: Any) -> float:
        z = np.asarray(x) - m
        return float(z @ (0.5 * (H @ z) + g))

    sd = _NOISES[noise]
    return BlackBox(
        name=f"quadratic-{condition}-d{d}-{noise}-{where}",
        suite="rough",
        source=f"a quadratic of condition {condition} with the minimum {where} the bounds of a box",
        x0=x0,
        domain=Box(np.full(d, -1.0), np.full(d, 1.0)),
        fun=lambda x, xi: value(x) + sd * xi,
        sample=lambda rng: float(rng.standard_normal()),
        judge=value,
        budgets=(1000, 5000),
        shared=False,
    )


def _parts(condition: str, d: int, where: str) -> tuple[Array, Array, Array, Array]:
    """H and g, both scaled, the minimiser, and x0; the same for both levels of noise."""
    rng = np.random.default_rng([int(_CONDITIONS[condition]), d, _PLACES.index(where)])
    Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
    H = (Q * np.geomspace(1.0, _CONDITIONS[condition], d)) @ Q.T
    m = rng.uniform(-0.5, 0.5, d)
    x0 = rng.uniform(-0.8, 0.8, d)
    side = np.zeros(d)
    side[rng.permutation(d)[: -(-d // 3)]] = 1.0
    side *= rng.choice([-1.0, 1.0], d)
    if where != "inside":
        m = np.where(side == 0.0, m, side * (1.0 if where == "on" else 0.99))
    z = x0 - m
    slope = float(np.sqrt(np.mean((H @ z) ** 2)))
    g = -side * rng.uniform(0.2, 0.6, d) * slope if where == "on" else np.zeros(d)
    scale = float(z @ (0.5 * (H @ z) + g))
    return H / scale, g / scale, m, x0


_GRID = {
    f"quadratic-{condition}-d{d}-{noise}-{where}": (condition, d, noise, where)
    for condition, d, noise, where in product(_CONDITIONS, _DIMENSIONS, _NOISES, _PLACES)
}

BLACK_BOXES: dict[str, Callable[[], BlackBox]] = {name: partial(quadratic, *key) for name, key in _GRID.items()}

LEAST: dict[str, Callable[[], tuple[Array, float]]] = {
    name: partial(lambda condition, d, where: (_parts(condition, d, where)[2], 0.0), condition, d, where)
    for name, (condition, d, _, where) in _GRID.items()
}

#: Each condition, dimension, level of noise and place is among them two or three times.
CORE = (
    "quadratic-1-d5-10pct-on",
    "quadratic-1-d100-1pct-inside",
    "quadratic-100-d20-10pct-inside",
    "quadratic-100-d100-10pct-near",
    "quadratic-1e4-d5-1pct-near",
    "quadratic-1e4-d20-1pct-on",
)
