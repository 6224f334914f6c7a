"""The convex sets to minimise over: Ball, Box, Simplex, L1Ball, and all of R^d."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, Self, final

import numpy as np
from numpy.typing import ArrayLike

from poem_cma._types import Array
from poem_cma.domains import projections
from poem_cma.domains.convex import ConvexSet, positive, vector

__all__ = ["Ball", "Box", "L1Ball", "Simplex", "Whole"]


@final
class Ball(ConvexSet):
    """All points within `radius` of `center` (a number stands for all coordinates).

    Parameters
    ----------
    radius : float
    center : float or array, default 0
    inside : bool, default False
        Keep every queried point in the set, not only every iterate.

    Examples
    --------
    >>> Ball(radius=1.0).project(np.array([3.0, 4.0]))
    array([0.6, 0.8])
    """

    radius: float
    center: float | Array
    any_precision = True

    def __init__(self, radius: float, center: ArrayLike = 0.0, *, inside: bool = False) -> None:
        middle = vector("center", center)
        if not np.all(np.isfinite(middle)):
            raise ValueError("center must be finite")
        vars(self).update(radius=positive("radius", radius), center=middle, inside=bool(inside))
        if not isinstance(middle, float):
            vars(self).update(dimension=middle.size)

    @property
    def diameter(self) -> float:
        return 2.0 * self.radius

    def nearest(self, x: Array, weight: Array | None = None) -> Array:
        return projections.ball(x, self.radius, self.center, weight)

    def fits(self, reach: float | Array) -> float:
        return self.radius / float(np.max(reach))

    def _shrunk(self, reach: float | Array) -> ConvexSet:
        return self._with(radius=max(self.radius - float(np.max(reach)), 0.0))


@final
class Box(ConvexSet):
    """All points with lower <= x <= upper; bounds are numbers or arrays, possibly infinite.

    Parameters
    ----------
    lower, upper : float or array
        Equal bounds fix a coordinate.
    inside : bool, default False
        Keep every queried point in the set, not only every iterate.

    Examples
    --------
    >>> Box(0.0, [1.0, np.inf]).project(np.array([3.0, 4.0]))
    array([1., 4.])
    """

    lower: float | Array
    upper: float | Array
    any_precision = True

    def __init__(self, lower: ArrayLike, upper: ArrayLike, *, inside: bool = False) -> None:
        low, high = vector("lower", lower), vector("upper", upper)
        if isinstance(low, np.ndarray) and isinstance(high, np.ndarray) and low.size != high.size:
            raise ValueError(f"lower has dimension {low.size}, upper has {high.size}")
        bad = np.atleast_1d((low > high) | (low == np.inf) | (high == -np.inf))
        if bad.any():
            i = int(bad.argmax())
            pair = [float(np.broadcast_to(bound, bad.size)[i]) for bound in (low, high)]
            raise ValueError(f"a Box needs lower <= upper with a number in between, coordinate {i} has {pair}")
        vars(self).update(lower=low, upper=high, inside=bool(inside))
        if isinstance(low, np.ndarray) or isinstance(high, np.ndarray):
            d = bad.size
            vars(self).update(dimension=d, lower=np.broadcast_to(low, d), upper=np.broadcast_to(high, d))

    @property
    def diameter(self) -> float:
        d = self._known("diameter")
        return projections.length(np.broadcast_to(self._width(), d))

    @cached_property
    def _free(self) -> Any:
        """Which coordinates are not fixed; True where none is."""
        free = np.asarray(self.lower < self.upper)
        return True if free.all() else free

    def hull_dimension(self, d: int) -> int:
        return d if self._free is True else int(np.count_nonzero(np.broadcast_to(self._free, d)))

    def tangent(self, V: Array, scale: float | Array = 1.0) -> Array:
        return V if self._free is True else V * self._free

    def nearest(self, x: Array, weight: Array | None = None) -> Array:
        return projections.box(x, self.lower, self.upper)

    def fits(self, reach: float | Array) -> float:
        width = self._width()
        half = np.where(width > 0.0, 0.5 * width, np.inf)
        with np.errstate(divide="ignore"):
            return float(np.min(half / reach))

    def _shrunk(self, reach: float | Array) -> ConvexSet:
        move = np.where(self._width() > 0.0, reach, 0.0)
        low = self.lower + move
        high = np.maximum(self.upper - move, low)  # rounding may cross bounds that should meet
        return self._with(lower=vector("lower", low), upper=vector("upper", high))

    def _size(self, x: Array) -> float | Array:
        width = self._width()
        size: Array = np.maximum(np.abs(x), np.where(np.isfinite(width), width, 0.0))
        return size

    def _width(self) -> float | Array:
        with np.errstate(over="ignore"):
            return np.subtract(self.upper, self.lower)

    def _bound(self, d: int, owner: str) -> Self:
        bound = super()._bound(d, owner)
        return bound._with(lower=np.broadcast_to(bound.lower, d), upper=np.broadcast_to(bound.upper, d))


@final
class Simplex(ConvexSet):
    """All points with x >= 0 and sum x = total.

    Parameters
    ----------
    total : float, default 1
    inside : bool, default False
        Keep every queried point in the set, not only every iterate.

    Examples
    --------
    >>> Simplex().project(np.array([0.5, 1.0, -3.0]))
    array([0.25, 0.75, 0.  ])
    """

    total: float
    floor: float | Array = 0.0  # the least value of each coordinate; shrinking raises it

    def __init__(self, total: float = 1.0, *, inside: bool = False) -> None:
        vars(self).update(total=positive("total", total), inside=bool(inside))

    @property
    def diameter(self) -> float:
        return math.sqrt(2.0) * self._rest()

    def hull_dimension(self, d: int) -> int:
        return d - 1

    def tangent(self, V: Array, scale: float | Array = 1.0) -> Array:
        if isinstance(scale, float):
            across: Array = V.mean(axis=-1, keepdims=True)
        else:
            normal = (scale / projections.length(scale)).astype(V.dtype)
            across = (V @ normal)[..., None] * normal
        return V - across

    def nearest(self, x: Array, weight: Array | None = None) -> Array:
        if isinstance(self.floor, float):
            return projections.simplex(x, self.total, weight)
        return self.floor + projections.simplex(x - self.floor, self._rest(), weight)

    def fits(self, reach: float | Array) -> float:
        d = self._known("inradius")
        return self._rest() / float(np.sum(np.broadcast_to(reach, d))) if d > 1 else math.inf

    def _shrunk(self, reach: float | Array) -> ConvexSet:
        d = self._known("inradius")
        return self._with(floor=np.broadcast_to(self.floor + reach, d)) if d > 1 else self

    def _rest(self) -> float:
        return max(self.total - float(np.sum(self.floor)), 0.0)


@final
class L1Ball(ConvexSet):
    """All points with sum |x_i| <= radius.

    Parameters
    ----------
    radius : float
    inside : bool, default False
        Keep every queried point in the set, not only every iterate.

    Examples
    --------
    >>> L1Ball(radius=1.0).project(np.array([2.0, -1.5]))
    array([ 0.75, -0.25])
    """

    radius: float

    def __init__(self, radius: float, *, inside: bool = False) -> None:
        vars(self).update(radius=positive("radius", radius), inside=bool(inside))

    @property
    def diameter(self) -> float:
        return 2.0 * self.radius

    def nearest(self, x: Array, weight: Array | None = None) -> Array:
        return projections.l1_ball(x, self.radius, weight)

    def fits(self, reach: float | Array) -> float:
        return self.radius / self._longest(reach)

    def _shrunk(self, reach: float | Array) -> ConvexSet:
        return self._with(radius=max(self.radius - self._longest(reach), 0.0))

    def _longest(self, reach: float | Array) -> float:
        """The largest sum |h_i| in the ellipsoid."""
        return projections.length(np.broadcast_to(reach, self._known("inradius")))


@final
class Whole(ConvexSet):
    """All of R^d."""

    any_precision = True

    @property
    def diameter(self) -> float:
        return math.inf

    def nearest(self, x: Array, weight: Array | None = None) -> Array:
        return x

    def fits(self, reach: float | Array) -> float:
        return math.inf

    def _shrunk(self, reach: float | Array) -> ConvexSet:
        return self
