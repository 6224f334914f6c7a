"""Is there anything better along a single axis? Random directions do not see a variable that changes F in steps.

From the result, each variable alone is changed by the lengths at which the search began, on one sample. The points that
seem best are compared with the result on many samples. A search by near differences knows for which variables this is
worth it: those along which it has hardly seen a slope.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from poem_cma._types import Array, IntArray
from poem_cma.auto import judge
from poem_cma.auto.far.state import Far
from poem_cma.auto.near.state import Near
from poem_cma.auto.request import Request, at
from poem_cma.run.algorithm import Run

__all__ = ["affordable", "promising", "requests", "samples"]

#: Share of the budget for a look along the axes, and again for the comparison.
SHARE = 0.05
#: Number of points that are compared with the result.
PROMISING = 3
#: A variable is silent if slopes are this much rarer than on average, which must be OFTEN.
SILENT, OFTEN = 0.05, 3.0


def affordable(run: Run, search: object) -> bool:
    """Whether there is anything to look for, and evaluations enough for it and for a comparison."""
    n = len(axes(search))
    return n > 0 and max(4 * n + 1, (PROMISING + 1) * judge.FIRST) <= SHARE * run.budget < np.inf


def samples(run: Run) -> int:
    """How many evaluations the comparison may use."""
    return int(SHARE * run.budget)


def axes(search: object) -> IntArray:
    """The axes that a search does not see by itself."""
    if isinstance(search, Far):
        return np.arange(len(search.x))
    if isinstance(search, Near) and search.active.mean() >= OFTEN:
        return np.flatnonzero(search.active < SILENT * search.active.mean())
    return np.zeros(0, dtype=int)


def requests(x: Array, h: float, run: Run, search: object) -> list[Request]:
    """The result, and the points on both sides of it along each axis."""
    return [at(_points(x, h, run, search))]


def promising(x: Array, h: float, run: Run, search: object, F: Array) -> list[Array]:
    """The result, and the lowest of the points that are lower."""
    X = _points(x, h, run, search)
    lower = [j for j in np.argsort(F)[:PROMISING] if F[j] < F[0]]
    return [x, *X[lower]]


def _points(x: Array, h: float, run: Run, search: object) -> Array:
    """Along one axis, a typical part of a step of length h and all of it."""
    which = axes(search)
    E = np.zeros((len(which), len(x)))
    E[np.arange(len(which)), which] = 1.0
    ways = [sign * length * e for e in E for length in (h / sqrt(len(x)), h) for sign in (1.0, -1.0)]
    return np.array([x, *(run.domain.project(x + way) for way in ways)])
