"""The convex sets to minimise over: Ball, Box, Simplex, L1Ball, and all of R^d."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, Self, final

import numpy as np
from numpy.typing import ArrayLike

from poem_cma._types import Array
from poem_cma.domains import projections
from poem_cma.domains.convex import ConvexSet, kind, positive, vector

__all__ = ["Ball", "Box", "L1Ball", "Simplex", "Whole"]


@final
class Ball(ConvexSet):
    """All points within `radius` of `center` (a number stands for all coordinates).

    Parameters
    ----------
    radius : float
    center : float or array, default 0
    outside : bool, default False
        Whether points outside the set may be evaluated. The result is always in the set.

    Examples
    --------
    >>> Ball(radius=1.0).project(np.array([3.0, 4.0]))
    array([0.6, 0.8])
    """

    radius: float
    center: float | Array
    any_precision = True

    def __init__(self, radius: float, center: ArrayLike = 0.0, *, outside: bool = False) -> None:
        middle = vector("center", center)
        if not np.all(np.isfinite(middle)):
            raise ValueError("center must be finite")
        vars(self).update(radius=positive("radius", radius), center=middle, outside=bool(outside))
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
    integer : bool or array of bool, default False
        Which variables are integers.
    log : bool or array of bool, default False
        Which variables are searched on a log scale; their lower bounds must be positive.
    outside : bool, default False
        Whether points outside the set may be evaluated. The result is always in the set.

    Examples
    --------
    >>> Box(0.0, [1.0, np.inf]).project(np.array([3.0, 4.0]))
    array([1., 4.])
    >>> Box([1e-4, 1.0], [1.0, 20.0], log=[True, False], integer=[False, True]).project(np.array([0.01, 6.7]))
    array([0.01, 7.  ])
    """

    lower: float | Array
    upper: float | Array
    any_precision = True

    def __init__(
        self, lower: ArrayLike, upper: ArrayLike, *, integer: ArrayLike = False, log: ArrayLike = False,
        outside: bool = False,
    ) -> None:  # fmt: skip
        parts: dict[str, Any] = {"lower": vector("lower", lower), "upper": vector("upper", upper)}
        parts |= {"integer": kind("integer", integer), "log": kind("log", log)}
        sizes = {name: value.size for name, value in parts.items() if isinstance(value, np.ndarray)}
        for name, size in sizes.items():
            if size != (other := next(iter(sizes.values()))):
                raise ValueError(f"{next(iter(sizes))} has dimension {other}, {name} has {size}")
        if sizes:
            d = next(iter(sizes.values()))
            bounds = {name: np.broadcast_to(parts[name], d) for name in ("lower", "upper")}
            vars(self).update(parts, **bounds, outside=bool(outside), dimension=d)
        else:
            vars(self).update(parts, outside=bool(outside))
        if np.any(self.integer):
            low, high = (np.where(self.integer, f(v), v) for f, v in ((np.ceil, self.lower), (np.floor, self.upper)))
            self._refuse(low > high, "an integer variable needs an integer between its bounds")
            vars(self).update(lower=vector("lower", low), upper=vector("upper", high))
        empty = (self.lower > self.upper) | np.equal(self.lower, np.inf) | np.equal(self.upper, -np.inf)
        self._refuse(empty, "a Box needs lower <= upper with a number in between")
        self._refuse(np.less_equal(self.lower, 0.0) & self.log, "a log variable needs a positive lower bound")

    def _refuse(self, bad: Any, why: str) -> None:
        """Raise an error if a coordinate is bad, with its bounds."""
        if np.any(bad):
            i = int(np.argmax(np.atleast_1d(bad)))
            pair = [float(np.broadcast_to(bound, np.size(bad))[i]) for bound in (self.lower, self.upper)]
            raise ValueError(f"{why}, coordinate {i} has {pair}")

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
        y = projections.box(x, self.lower, self.upper)
        return np.floor(y + 0.5, out=y, where=self.integer) if np.any(self.integer) else y

    def relaxed(self) -> Box:
        if not (np.any(self.integer) or np.any(self.log)):
            return self
        half = np.where(self.integer, 0.5, 0.0)  # the ends of the range have as much room as the other integers
        low, high = self.lower - half, self.upper + half
        with np.errstate(divide="ignore", invalid="ignore"):
            low, high = (np.where(self.log, np.log(v), v) for v in (low, high))
        return self._with(lower=vector("lower", low), upper=vector("upper", high), integer=False, log=False)

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
    outside : bool, default False
        Whether points outside the set may be evaluated. The result is always in the set.

    Examples
    --------
    >>> Simplex().project(np.array([0.5, 1.0, -3.0]))
    array([0.25, 0.75, 0.  ])
    """

    total: float
    floor: float | Array = 0.0  # the least value of each coordinate; shrinking raises it

    def __init__(self, total: float = 1.0, *, outside: bool = False) -> None:
        vars(self).update(total=positive("total", total), outside=bool(outside))

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
    outside : bool, default False
        Whether points outside the set may be evaluated. The result is always in the set.

    Examples
    --------
    >>> L1Ball(radius=1.0).project(np.array([2.0, -1.5]))
    array([ 0.75, -0.25])
    """

    radius: float

    def __init__(self, radius: float, *, outside: bool = False) -> None:
        vars(self).update(radius=positive("radius", radius), outside=bool(outside))

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

    outside = True  # there is nothing to stay inside of
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
