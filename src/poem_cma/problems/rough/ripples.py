"""Bowls with ripples: slopes over short distances belong to the ripples, values further away to the bowl."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from poem_cma._types import Array
from poem_cma.domains.sets import Box
from poem_cma.problems.black_box import BlackBox

__all__ = ["BLACK_BOXES", "LEAST", "griewank", "rastrigin"]

_RASTRIGIN = np.array([1.3, -1.1, 1.2, -1.4, 1.0, 1.3])
_GRIEWANK = np.array([110.0, -95.0, 102.0, 93.0, -118.0, 87.0])


def rastrigin() -> BlackBox:
    """|z|^2 + sum (1 - cos(2 pi z_i)) with z = x - t and normal noise of 0.2 in every evaluation."""

    def value(x: Any) -> float:
        z = np.asarray(x) - _RASTRIGIN
        return float(z @ z + np.sum(1.0 - np.cos(2.0 * np.pi * z)))

    d = len(_RASTRIGIN)
    return BlackBox(
        name="ripples-rastrigin-own",
        suite="rough",
        source="Rastrigin's function with ripples of a tenth of the usual height and noise in every evaluation",
        x0=np.zeros(d),
        domain=Box(np.full(d, -5.0), np.full(d, 5.0)),
        fun=lambda x, xi: value(x) + 0.2 * xi,
        sample=lambda rng: float(rng.standard_normal()),
        judge=value,
        budgets=(300, 1000),
        shared=False,
    )


def griewank() -> BlackBox:
    """|z|^2 / 4000 + 1 - prod cos(z_i / sqrt(i)) with z = x - t; a sample adds u'z / 200 + e / 10."""
    d = len(_GRIEWANK)
    roots = np.sqrt(np.arange(1.0, d + 1.0))

    def value(x: Any) -> float:
        z = np.asarray(x) - _GRIEWANK
        return float(z @ z / 4000.0 + 1.0 - np.prod(np.cos(z / roots)))

    return BlackBox(
        name="ripples-griewank",
        suite="rough",
        source="Griewank's function with a random slope in each sample",
        x0=np.zeros(d),
        domain=Box(np.full(d, -600.0), np.full(d, 600.0)),
        fun=lambda x, xi: value(x) + float((np.asarray(x) - _GRIEWANK) @ xi[:d]) / 200.0 + 0.1 * float(xi[d]),
        sample=lambda rng: rng.standard_normal(d + 1),
        judge=value,
        budgets=(300, 1000),
    )


BLACK_BOXES: dict[str, Callable[[], BlackBox]] = {"ripples-rastrigin-own": rastrigin, "ripples-griewank": griewank}

LEAST: dict[str, Callable[[], tuple[Array, float]]] = {
    "ripples-rastrigin-own": lambda: (_RASTRIGIN.copy(), 0.0),
    "ripples-griewank": lambda: (_GRIEWANK.copy(), 0.0),
}
