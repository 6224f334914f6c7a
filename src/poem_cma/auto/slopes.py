"""Without noise: slopes and curvatures along all axes, from differences as short as rounding allows.

With L = sqrt(|F| / F''), the distance over which F changes by its own size, and F rounded to eps |F|, a difference over

    h = 2 L sqrt(eps)  ahead,      h = L eps^(1/3)  on both sides

is spoilt by rounding and by curvature about equally. F'' is that of the model. For the first curvatures themselves h is
a part of the distance over which F would fall, along that axis, as far as along the first ray.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isfinite, nan, sqrt
from typing import Any, NamedTuple

import numpy as np

from poem_cma._types import Array, IntArray
from poem_cma.auto.exact_state import CURVATURES, ExactState

__all__ = [
    "Changes", "Steps", "along_axes", "believable", "changes", "curvatures", "from_point", "gradient", "places",
]  # fmt: skip

_FIRST, _SEEN = 1e-3, 3.0  # of the reach, for curvatures; and, where values are rounded to less, times eps^(1/4)
_RESOLVED, _ALIKE = 1e-10, 1e-6  # of x_i, and of that of the largest: shorter steps drown in the rounding of x
_FEW = 400  # axes: their points are one matrix
_ABSURD = 1e9  # times the fall so far, or the value
_ROUNDED = 64.0  # rounding errors of F that a second difference must be worth


def places(s: ExactState) -> int:
    """At how many points F is asked."""
    return 1 + len(s.axes) * (2 if _both_sides(s) else 1)


class Steps:
    """How far F is asked along each axis; worked out once for each state."""

    def __init__(self) -> None:
        self._of: ExactState | None = None

    def __call__(self, s: ExactState) -> Array:
        if s is not self._of:
            self._of, self._h = s, _steps(s)[s.axes]
        return self._h

    def another(self) -> Steps:
        """For another step in flight."""
        return Steps()


def along_axes(s: ExactState, h: Array) -> Iterable[Array]:
    """x, then a step ahead along every axis, then one back."""
    if _both_sides(s):
        return from_point(s.x, np.concatenate((s.axes, s.axes)), np.concatenate((h, -h)))
    return from_point(s.x, s.axes, h)


def from_point(x: Array, axes: IntArray, h: Array) -> Iterable[Array]:
    """x, then a step from there along every axis."""
    n = len(axes)
    if n > 2 * _FEW:
        return _one_by_one(x, axes, h)
    rows = np.empty((1 + n, len(x)))
    rows[:] = x
    rows[np.arange(1, 1 + n), axes] = x[axes] + h
    return rows


def _one_by_one(x: Array, axes: IntArray, steps: Array) -> Iterator[Array]:
    yield x.copy()
    for i, h in zip(axes, steps, strict=True):
        point = x.copy()
        point[i] += h
        yield point


def _both_sides(s: ExactState) -> bool:
    return s.central or s.stage == CURVATURES


def _steps(s: ExactState) -> Array:
    if s.stage == CURVATURES:
        h = max(_FIRST, _SEEN * s.eps**0.25) * s.reach
    else:
        h = (s.eps ** (1.0 / 3.0) if s.central else 2.0 * sqrt(s.eps)) * np.sqrt(s.size / s.unit / s.diagonal)
    sizes = np.abs(s.x)
    h = np.maximum(h, _RESOLVED * np.maximum(sizes, max(_ALIKE * float(sizes.max()), float(s.reach.min()))))
    steps: Array = (s.x + h) - s.x  # as they are after rounding
    return steps


class Changes(NamedTuple):
    """What F does along the axes."""

    h: Array  # the steps,
    ahead: Array  # F's change over each of them,
    back: Array  # and over the same to the other side; empty where it was not asked


def gradient(s: ExactState, seen: Changes) -> Array:
    """The slopes. Where a call failed, the slope is that from the other side, or as before."""
    h, ahead, back = seen
    slopes = 0.5 * (ahead - back) / h if len(back) else ahead / h
    if not isfinite(float(slopes.sum())):
        for other in (ahead / h, -back / h if len(back) else s.g[s.axes], s.g[s.axes]):
            slopes = np.where(np.isfinite(slopes), slopes, other)
    g = np.zeros(len(s.x))
    g[s.axes] = slopes
    return g


def curvatures(s: ExactState, seen: Changes, value: float) -> Array:
    """The second differences along the axes; zero where they are not seen. F at x has this value."""
    second = seen.ahead + seen.back
    told = second > _ROUNDED * s.eps * abs(value) / s.unit  # false for NaN
    return np.where(told, second, 0.0) / seen.h**2


def believable(s: ExactState, change: Array) -> Any:
    """Which changes of F are not beyond all that was seen before; false for NaN."""
    return np.abs(change) <= _ABSURD * max(s.fall, s.size / s.unit if isfinite(s.value) else 0.0)


def changes(s: ExactState, h: Array, F: Array) -> Changes:
    """F's changes, but for those beyond all that was seen before: there a step was too long."""
    n = len(s.axes)
    with np.errstate(over="ignore", invalid="ignore"):
        change = (F[1:] - F[0]) / s.unit
    believed = believable(s, change)
    if not believed.all():
        change = np.where(believed, change, nan)
    return Changes(h, change[:n], change[n:])
