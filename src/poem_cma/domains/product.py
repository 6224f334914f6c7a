"""A product of sets: one domain for each part of a vector."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from poem_cma._types import Array, BoolArray
from poem_cma.domains.convex import ConvexSet
from poem_cma.domains.given import as_domain
from poem_cma.domains.sets import Box, Whole

__all__ = ["product"]

Part = tuple[slice, ConvexSet]


def product(pieces: Sequence[tuple[int, int, Any]]) -> ConvexSet | None:
    """The set of vectors whose entries from `start` to `stop` lie in the domain given with them.

    None stands for all of R^n. Boxes beside each other are one Box; where there is nothing but None, so is the answer.

    >>> product([(0, 2, Box(0.0, 1.0)), (2, 3, None)]).project(np.array([5.0, -5.0, 5.0]))
    array([1., 0., 5.])
    """
    parts = [(slice(i, j), as_domain(domain, j - i)) for i, j, domain in pieces if j > i]
    sets = [domain for _, domain in parts]
    if all(isinstance(domain, Whole) for domain in sets):
        return None
    if len(parts) == 1:
        return sets[0]
    if all(isinstance(domain, Box | Whole) for domain in sets):
        told = {name: np.concatenate([_side(p, name, unknown) for p in parts]) for name, unknown in _SIDES}
        return Box(**told, outside=all(domain.outside for domain in sets))
    return _Product(parts)


_SIDES = (("lower", -np.inf), ("upper", np.inf), ("integer", False), ("log", False))


def _side(part: Part, name: str, unknown: float) -> Any:
    place, domain = part
    return np.broadcast_to(getattr(domain, name, unknown), place.stop - place.start)


@final
class _Product(ConvexSet):
    """Sets side by side; points outside may be evaluated only if all of them say so."""

    parts: Sequence[Part]

    def __init__(self, parts: Sequence[Part]) -> None:
        vars(self).update(parts=tuple(parts), dimension=parts[-1][0].stop)
        vars(self).update(outside=all(domain.outside for _, domain in parts))
        vars(self).update(integer=_kinds(parts, "integer"), log=_kinds(parts, "log"))
        vars(self).update(weighted=all(domain.weighted for _, domain in parts))
        vars(self).update(any_precision=all(domain.any_precision for _, domain in parts))

    @property
    def diameter(self) -> float:
        return math.hypot(*(domain.diameter for _, domain in self.parts))

    def relaxed(self) -> ConvexSet:
        kinds = np.any(self.integer) or np.any(self.log)
        return _Product([(at, domain.relaxed()) for at, domain in self.parts]) if kinds else self

    def hull_dimension(self, d: int) -> int:
        return sum(domain.hull_dimension(place.stop - place.start) for place, domain in self.parts)

    def tangent(self, V: Array, scale: float | Array = 1.0) -> Array:
        return np.concatenate([domain.tangent(V[..., at], _at(scale, at)) for at, domain in self.parts], axis=-1)

    def nearest(self, x: Array, weight: Array | None = None) -> Array:
        return np.concatenate(
            [domain.project(x[at], None if weight is None else weight[at]) for at, domain in self.parts]
        )

    def fits(self, reach: float | Array) -> float:
        return min(domain.fits(_at(reach, at)) for at, domain in self.parts)

    def _shrunk(self, reach: float | Array) -> ConvexSet:
        return _Product([(at, domain.shrunk(_at(reach, at))) for at, domain in self.parts])

    def _size(self, x: Array) -> float | Array:
        sizes: Array = np.concatenate([np.broadcast_to(domain._size(x[at]), x[at].shape) for at, domain in self.parts])
        return sizes


def _kinds(parts: Sequence[Part], name: str) -> bool | BoolArray:
    """Which variables are of a kind; False if none is."""
    mask = np.concatenate([_side(part, name, False) for part in parts])
    return mask if mask.any() else False


def _at(value: float | Array, place: slice) -> float | Array:
    return value[place] if isinstance(value, np.ndarray) else value
