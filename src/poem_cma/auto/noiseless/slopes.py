"""Differences inside the domain, and the gradient that fits them.

The point x + h e_i is moved to the nearest one in the domain, so the differences are along what is left of the axes.
The gradient is the shortest one that fits all of them. At a bound the step goes the other way.
"""

from __future__ import annotations

import numpy as np

from poem_cma._types import Array
from poem_cma.auto.noiseless.state import Exact
from poem_cma.domains.sets import Box, Whole
from poem_cma.run.algorithm import Run

__all__ = ["gradient", "jumps", "place", "points", "rounding"]

#: Differences shorter than this fraction of the others are rounding errors.
LEAST = 1e-6


def rounding(run: Run) -> float:
    """The relative precision of values."""
    return float(np.finfo(run.x0.dtype).eps)


def place(y: Array, run: Run) -> Array:
    """The nearest point of the domain, in the precision of x0."""
    nearest: Array = run.domain.project(y.astype(run.x0.dtype)).astype(float)
    return nearest


def lengths(exact: Exact, run: Run) -> Array:
    """Of differences along each axis: what rounding spoils as much as curvature does."""
    power = 1.0 / 3.0 if exact.central else 0.5
    h: Array = rounding(run) ** power * np.maximum(np.abs(exact.x), exact.reach)
    return h


def points(exact: Exact, run: Run) -> Array:
    """x, and the ends of the differences: one for each axis, or all on one side and then all on the other."""
    x = exact.x
    ends = np.empty((2, len(x), len(x)))
    for i, h in enumerate(lengths(exact, run)):
        for side, step in enumerate((h, -h)):
            y = x.copy()
            y[i] += step
            ends[side, i] = place(y, run)
    if exact.central:
        return np.concatenate([x[None], *ends])
    ahead, back = (np.abs((rows - x).diagonal()) for rows in ends)
    return np.concatenate([x[None], np.where((ahead >= 0.9 * back)[:, None], *ends)])


def gradient(exact: Exact, run: Run, X: Array, F: Array) -> Array:
    """The gradient from the values at `points`; a slope is zero where an evaluation failed."""
    d = len(exact.x)
    D, change = X[1 : d + 1] - X[0], F[1 : d + 1] - F[0]
    if exact.central:
        D, change = X[1 : d + 1] - X[d + 1 :], F[1 : d + 1] - F[d + 1 :]
    change = np.where(np.isfinite(change), change, 0.0)
    if isinstance(run.domain, Whole | Box):
        h = D.diagonal()
        slopes: Array = np.where(h != 0.0, change / np.where(h != 0.0, h, 1.0), 0.0)
        return slopes
    size = float(np.abs(D).max()) or 1.0
    fit: Array = np.linalg.lstsq(D / size, change / size, rcond=LEAST)[0]
    return fit


def jumps(X: Array, F: Array) -> float:
    """The largest difference of the slopes on both sides of x."""
    d = X.shape[1]
    ahead, back = X[1 : d + 1] - X[0], X[d + 1 :] - X[0]
    h = np.abs(ahead).max(axis=1)
    both = (h > 0.0) & np.isclose(ahead, -back, rtol=1e-3, atol=1e-3 * h.max()).all(axis=1)
    bends = np.abs(F[1 : d + 1] + F[d + 1 :] - 2.0 * F[0])[both] / h[both]
    return float(np.nanmax(bends, initial=0.0))
