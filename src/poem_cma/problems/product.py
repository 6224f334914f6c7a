"""The domain of a portfolio with a threshold: weights on the simplex, and one more variable in an interval."""

from __future__ import annotations

from math import hypot
from typing import final

import numpy as np

from poem_cma._types import Array
from poem_cma.convex import ConvexSet
from poem_cma.domains import Box, Simplex

__all__ = ["WeightsAndThreshold"]


@final
class WeightsAndThreshold(ConvexSet):
    """All x with x_1, ..., x_{d-1} >= 0 that sum to 1, and x_d between two bounds.

    Parameters
    ----------
    d : int
        All variables, the threshold included.
    low, high : float

    Examples
    --------
    >>> WeightsAndThreshold(3, -1.0, 1.0).project(np.array([2.0, 0.0, 5.0]))
    array([1., 0., 1.])
    """

    parts: tuple[ConvexSet, ConvexSet]

    def __init__(self, d: int, low: float, high: float) -> None:
        parts = Simplex().for_dimension(d - 1), Box(low, high).for_dimension(1)
        vars(self).update(parts=parts, dimension=d)

    @property
    def diameter(self) -> float:
        return hypot(*(part.diameter for part in self.parts))

    def hull_dimension(self, d: int) -> int:
        return self.parts[0].hull_dimension(d - 1) + 1

    def tangent(self, V: Array, scale: float | Array = 1.0) -> Array:
        along = self.parts[0].tangent(V[..., :-1], scale if isinstance(scale, float) else scale[:-1])
        return np.concatenate([along, V[..., -1:]], axis=-1)

    def nearest(self, x: Array, weight: Array | None = None) -> Array:
        first = self.parts[0].project(x[:-1], None if weight is None else weight[:-1])
        return np.concatenate([first, self.parts[1].project(x[-1:])])

    def fits(self, reach: float | Array) -> float:
        first, last = _split(reach)
        return min(self.parts[0].fits(first), self.parts[1].fits(last))

    def _shrunk(self, reach: float | Array) -> ConvexSet:
        first, last = _split(reach)
        return self._with(parts=(self.parts[0].shrunk(first), self.parts[1].shrunk(last)))


def _split(reach: float | Array) -> tuple[float | Array, float | Array]:
    return (reach, reach) if isinstance(reach, float) else (reach[:-1], reach[-1:])
