"""What the examples of the gallery are compared with: CMA-ES as pycma has it, and SPSA."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def cma_es(
    values: Callable[[np.ndarray, np.random.Generator], Sequence[float]],
    x0: Any,
    sigma: float,
    budget: int,
    seed: int,
    **settings: Any,
) -> np.ndarray:
    """The mean of the search distribution when the calls no longer pay for a generation.

    `values` gets the points of a generation and a generator of random numbers, from which it may draw xi once for the
    generation, or anew for every point.
    """
    import cma

    rng = np.random.default_rng(seed)
    es = cma.CMAEvolutionStrategy(x0, sigma, {"seed": seed + 1, "verbose": -9, **settings})
    while es.countevals + es.popsize <= budget and not es.stop():
        points = np.array(es.ask())
        es.tell(points, list(values(points, rng)))
    return np.array(es.result.xfavorite)


def spsa(
    values: Callable[[np.ndarray], np.ndarray],
    x0: np.ndarray,
    project: Callable[[np.ndarray], np.ndarray],
    budget: int,
    seed: int,
    step: float,
    size: float,
) -> np.ndarray:
    """Spall's SPSA with his exponents: `step` is how far each variable moves at first, `size` the first difference."""
    rng, x, first = np.random.default_rng(seed), x0, 0.0
    for k in range(budget // 2):
        v, c = rng.choice([-1.0, 1.0], size=len(x)), size / (k + 1) ** 0.101
        plus, minus = values(np.array([x + c * v, x - c * v]))
        slope = (plus - minus) / (2.0 * c)
        first = first or abs(slope)
        if first > 0.0:
            x = project(x - step / (1.0 + k / 20) ** 0.602 * slope / first * v)
    return x
