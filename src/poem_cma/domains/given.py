"""What a user gives as `domain`, as a set of ours: None, SciPy's Bounds, an object of their own. Changes of scale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, Self, final

import numpy as np
from numpy.typing import ArrayLike

from poem_cma._types import Array
from poem_cma.domains.convex import LEAST_WEIGHT, ConvexSet, number, short, vector
from poem_cma.domains.named import Declared
from poem_cma.domains.sets import Box, Whole
from poem_cma.domains.variables import Variables

__all__ = ["Domain", "as_domain", "scaled", "searched"]

_PLAIN_DISTANCE = (
    "a scale array needs a built-in domain (Ball, Box, Simplex, L1Ball), yours knows the plain distance only: "
    "give scale as one number, or scale the variables in your function"
)


class Domain(Protocol):
    """What a domain of your own must have."""

    @property
    def diameter(self) -> float:
        """An upper bound on the distance of any two points; it may be infinite."""

    def project(self, x: Array, /) -> Array:
        """The point of the set nearest to x."""


def as_domain(domain: object, d: int) -> ConvexSet:
    """What the user gave as `domain`, as a set in R^d.

    >>> as_domain(None, 3).diameter
    inf
    """
    if domain is None:
        return Whole().for_dimension(d)
    if isinstance(domain, Declared):
        domain = domain.box
    if isinstance(domain, ConvexSet):
        return domain.for_dimension(d)
    if all(hasattr(domain, name) for name in ("lb", "ub", "keep_feasible")):
        return _from_bounds(domain).for_dimension(d)
    if callable(getattr(domain, "project", None)) and hasattr(domain, "diameter"):
        return _Own(domain, d)
    raise TypeError(
        "domain must be None, a Ball, Box, Simplex or L1Ball, a scipy.optimize.Bounds, or an object with "
        f"project(x) and diameter, got {domain!r}; pairs (lower, upper) are given as bounds="
    )


def _from_bounds(bounds: Any) -> Box:
    """The Box of a scipy.optimize.Bounds, which keeps a scalar as an array of one entry."""
    lower, upper = (b.reshape(()) if b.size == 1 else b for b in map(np.asarray, (bounds.lb, bounds.ub)))
    return Box(lower, upper)


@final
class _Own(ConvexSet):
    """A user's domain, with the rest of the methods added."""

    domain: Any
    weighted = False

    def __init__(self, domain: Any, d: int) -> None:
        if not number("the diameter of a domain", domain.diameter) > 0.0:
            raise ValueError(f"the diameter of a domain must be positive, got {domain.diameter}")
        outside = bool(getattr(domain, "outside", False))
        vars(self).update(domain=domain, outside=outside, dimension=getattr(domain, "dimension", None))
        vars(self).update(dimension=self._bound(d, "x0").dimension)

    @property
    def diameter(self) -> float:
        return float(self.domain.diameter)

    def nearest(self, x: Array, weight: Array | None = None) -> Array:
        if weight is not None:
            raise ValueError(_PLAIN_DISTANCE)
        y = np.asarray(self.domain.project(x.copy()), dtype=np.float64)  # a copy: theirs may work in place
        if y.shape != x.shape:
            raise ValueError(f"domain.project returned an array of shape {y.shape}, expected {x.shape}")
        return y

    def fits(self, reach: float | Array) -> float:
        return float(getattr(self.domain, "inradius", 0.5 * self.diameter)) / float(np.max(reach))

    def _shrunk(self, reach: float | Array) -> ConvexSet:
        return as_domain(self._shrinker()(reach), self._known("inradius"))

    def _shrinker(self) -> Callable[[float | Array], object]:
        shrunk: Callable[[float | Array], object] | None = getattr(self.domain, "shrunk", None)
        if not callable(shrunk):
            raise ValueError(
                "the domain has no method shrunk(reach), returning the domain of the points that stay in this one "
                "when moved by at most reach"
            )
        return shrunk


def scaled(domain: ConvexSet, scale: ArrayLike) -> ConvexSet:
    """The set of z = x / scale, for `scale` a positive number or an array of them.

    Its diameter is exact for a number and for a Box, an upper bound otherwise.
    """
    sizes = vector("scale", scale)
    if not np.all((sizes > 0.0) & (sizes < np.inf)):
        raise ValueError(f"scale must be positive and finite, got {short(sizes)}")
    if isinstance(sizes, np.ndarray):
        domain = domain._bound(sizes.size, "scale")
        if (sizes == sizes[0]).all():
            sizes = float(sizes[0])
        elif isinstance(domain, _Own):
            raise ValueError(_PLAIN_DISTANCE)
    if isinstance(domain, Whole):
        return domain
    if isinstance(domain, Box):
        lower, upper = vector("lower", domain.lower / sizes), vector("upper", domain.upper / sizes)
        return domain._with(lower=lower, upper=upper)
    return _Scaled(domain, sizes)


def searched(domain: ConvexSet, scale: float | Array | None, x0: Array) -> ConvexSet:
    """The set that the search happens in: of x / scale or log(x) / scale, with vectors of x0's precision."""
    inner = domain.relaxed() if scale is None else scaled(domain.relaxed(), scale)
    if x0.dtype != np.float64 and not isinstance(inner, Box | Whole):
        inner = _Precise(inner, x0.dtype)
    return inner._with(variables=Variables(domain, scale)) if np.any(domain.integer) else inner


@final
class _Precise(ConvexSet):
    """The same set for vectors of a given precision."""

    domain: ConvexSet
    dtype: Any

    def __init__(self, domain: ConvexSet, dtype: Any) -> None:
        vars(self).update(domain=domain, dtype=dtype, outside=domain.outside, dimension=domain.dimension)
        vars(self).update(weighted=domain.weighted)

    @property
    def diameter(self) -> float:
        return self.domain.diameter

    def hull_dimension(self, d: int) -> int:
        return self.domain.hull_dimension(d)

    def tangent(self, V: Array, scale: float | Array = 1.0) -> Array:
        return self.domain.tangent(V, scale).astype(self.dtype, copy=False)

    def nearest(self, x: Array, weight: Array | None = None) -> Array:
        return self.domain.project(x, weight)

    def fits(self, reach: float | Array) -> float:
        return self.domain.fits(reach)

    def _shrunk(self, reach: float | Array) -> ConvexSet:
        return self._with(domain=self.domain.shrunk(reach))


@final
class _Scaled(ConvexSet):
    """{x / scale: x in domain}."""

    domain: ConvexSet
    scale: float | Array

    def __init__(self, domain: ConvexSet, scale: float | Array) -> None:
        vars(self).update(
            domain=domain, scale=scale, outside=domain.outside, dimension=domain.dimension, weighted=domain.weighted
        )

    @property
    def diameter(self) -> float:
        return self.domain.diameter / float(np.min(self.scale))

    def hull_dimension(self, d: int) -> int:
        return self.domain.hull_dimension(d)

    def tangent(self, V: Array, scale: float | Array = 1.0) -> Array:
        return self.domain.tangent(V, scale * self.scale)

    def nearest(self, x: Array, weight: Array | None = None) -> Array:
        if isinstance(self.scale, np.ndarray):  # the distance in x / scale is a weighted one in x
            stretch = np.maximum(np.square(self.scale.min() / self.scale), LEAST_WEIGHT)
            weight = stretch if weight is None else weight * stretch
        full = x * self.scale
        y = self.domain.project(full, weight)
        return x if y is full else y / self.scale

    def fits(self, reach: float | Array) -> float:
        return self.domain.fits(reach * self.scale)

    def _shrunk(self, reach: float | Array) -> ConvexSet:
        return self._with(domain=self.domain.shrunk(reach * self.scale))

    def _bound(self, d: int, owner: str) -> Self:
        return super()._bound(d, owner)._with(domain=self.domain._bound(d, owner))
