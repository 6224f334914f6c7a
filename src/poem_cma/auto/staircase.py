"""A walk along the axes: what a sparse sample costs is what it has to tell."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite, isnan, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poem_cma._types import Array, IntArray
from poem_cma.arithmetic import LONG
from poem_cma.auto.estimators import ROUNDING, Tangent, base_point, one_by_one

__all__ = ["Staircase", "draw_staircase"]

Flags = NDArray[np.bool_]


class Staircase(NamedTuple):
    """A walk from the base along one axis after the other; F is asked on the walk, where it makes a difference.

    An interval of the walk whose ends have equal values is taken as flat, any other is halved until it is one axis
    long. A sample that depends on few variables costs about as many calls times a logarithm, one that is flat costs
    two, and none costs more than one call for each axis and one.
    """

    base: Array
    axes: IntArray
    steps: Array
    dense: bool  # few parts of a walk that is not flat will be: ask them all
    whole: bool = False  # ask everything at once

    @property
    def size(self) -> int:
        return len(self.axes) + 1

    def points(self, places: list[int]) -> Iterable[Array]:
        return self._rows(places) if len(self.base) <= LONG else one_by_one(self._rows, places)

    def _rows(self, places: list[int]) -> Array:
        rows = np.empty((len(places), len(self.base)), self.base.dtype)
        rows[:] = self.base
        start = self.base[self.axes]
        passed = np.arange(len(self.axes)) < np.array(places)[:, None]
        rows[:, self.axes] = np.where(passed, start + self.steps, start)
        return rows

    def needed(self, v: Array, eps: float) -> list[int]:
        if isnan(v[0]):
            return list(range(self.size)) if self.whole or self.size <= 4 else [0, self.size - 1]
        known, _, uneven = self._known(v, eps)
        if self.dense and uneven.any():
            unknown: list[int] = np.isnan(v).nonzero()[0].tolist()
            return unknown
        ends = known.tolist()
        split = [(ends[i], ends[i + 1]) for i in uneven.nonzero()[0].tolist()]
        middles = [(lo + hi) // 2 for lo, hi in split if hi - lo > 1]
        return [middle for middle in middles if isnan(v[middle])]

    def _known(self, v: Array, eps: float) -> tuple[IntArray, Array, Flags]:
        """The places with a value, how it changes from each to the next, and whether by more than rounding."""
        known = np.isfinite(v).nonzero()[0]
        F = v[known]
        change = F[1:] - F[:-1]
        return known, change, np.abs(change) > ROUNDING * eps * float(np.abs(F).max(initial=0.0))

    def differences(self, v: Array, eps: float) -> tuple[Array, Array]:
        """F's change over each axis, and the step it belongs to; where a call failed, over the whole interval.

        The signs of the steps are random, so that a change over several axes, divided by the step along one of them,
        is still an unbiased slope along that one.
        """
        if not self.usable(v):
            return np.zeros(len(self.axes)), self.steps
        known, change, uneven = self._known(v, eps)
        return np.where(uneven, change, 0.0).repeat(known[1:] - known[:-1]), self.steps

    def gradient(self, slopes: Array, d: int) -> Array:
        g = np.zeros(d, self.base.dtype)
        g[self.axes] = slopes * (d / len(self.axes))
        return g

    def usable(self, v: Array) -> bool:
        return isfinite(v[0]) and isfinite(v[-1])


def draw_staircase(
    rng: np.random.Generator,
    x: Array,
    mu: float,
    metric: Array,
    tangent: Tangent,
    order: IntArray,
    q: int,
    dense: bool,
    whole: bool = False,
    step: float = 0.1,
    base: Array | None = None,
) -> Staircase:
    """A walk along q axes chosen at random, in the given order, with random signs and lengths, from a base."""
    drawn = base_point(rng, x, mu, metric, tangent)
    base = drawn if base is None else base
    axes = order if q >= len(order) else order[np.sort(rng.permutation(len(order))[:q])]
    signs = 2.0 * rng.integers(0, 2, len(axes)) - 1.0
    steps = signs * (rng.random(len(axes)) + 0.5) * (step * mu / sqrt(len(axes))) / np.sqrt(metric[axes])
    start = base[axes]
    steps = (start + steps.astype(base.dtype, copy=False)) - start  # the step as floating point holds it
    if not steps.all():
        steps[steps == 0.0] = np.finfo(steps.dtype).tiny
    return Staircase(base, axes, steps, dense, whole)
