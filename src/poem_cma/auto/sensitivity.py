"""How much each variable matters: the squared slopes along the variables, summed over a run.

Slopes without noise are squared and added. The slopes of a far search are fitted to the differences of its pairs, a
block of generations at a time, by least squares; the variance of the fit is taken off their squares, so that noise adds
nothing on average.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from poem_cma._types import Array, Partial, Value
from poem_cma.auto.far.rates import population
from poem_cma.auto.far.state import Far
from poem_cma.auto.judge import LIKELY

__all__ = ["Slopes", "begin", "exact", "pairs"]

#: Pairs for each variable in a block; more pairs than unknowns reveal the noise.
BLOCK = 1.5


class Slopes(NamedTuple):
    """What the slopes along the variables have been so far, and the block of pairs under way."""

    squares: Partial  # (d,) estimates of the sum of squared slopes
    normal: (
        Partial  # (d, d) or, where the covariance of the search is diagonal, (d,): sum of m m', m the moves of pairs
    )
    right: Partial  # (d,) sum of m times the difference of values
    total: Value = 0.0  # sum of squared differences
    pairs: int = 0


def begin(d: int) -> Slopes:
    """No slope is known."""
    return Slopes(np.zeros(d), np.zeros(0), np.zeros(0))


def exact(slopes: Slopes, g: Array) -> Slopes:
    """With slopes that have no noise of their own."""
    return slopes._replace(squares=slopes.squares + np.square(g, dtype=float))


def pairs(slopes: Slopes, far: Far, points: Array, values: Array) -> Slopes:
    """With the points and the values of a generation; they are measured in its step size."""
    size, centre = population(len(far.x)), int(far.shape.full)
    F, X = values[centre:][:size], points[centre:][:size]
    D = F[: size // 2] - F[size // 2 :]
    known = np.isfinite(D)
    D, M = D[known], ((X[: size // 2] - X[size // 2 :]) / far.sigma)[known]
    normal, right, total = M.T @ M if far.shape.full else (M * M).sum(axis=0), D @ M, float(D @ D)
    if slopes.pairs:
        normal, right, total = slopes.normal + normal, slopes.right + right, slopes.total + total
    slopes = slopes._replace(normal=normal, right=right, total=total, pairs=slopes.pairs + len(D))
    return _solved(slopes) if slopes.pairs >= BLOCK * len(far.x) else slopes


def _solved(slopes: Slopes) -> Slopes:
    """The block is complete: its slopes are fitted."""
    if slopes.normal.ndim == 2:
        inverse = np.linalg.pinv(slopes.normal, hermitian=True)
        g, scale, unknowns = inverse @ slopes.right, np.diag(inverse), len(slopes.right)
    else:
        scale = np.divide(1.0, slopes.normal, out=np.zeros(len(slopes.normal)), where=slopes.normal > 0.0)
        g, unknowns = scale * slopes.right, 0  # each by itself: the others are noise to it
    explained, free = float(g @ slopes.right), max(slopes.pairs - unknowns, 1)
    variance = max(slopes.total - explained * (unknowns > 0), 0.0) / free
    clear = variance * (1.0 + LIKELY * np.sqrt(2.0 / len(g) + 2.0 / free))  # the spread of a ratio of variances
    squares = slopes.squares + g * g - variance * scale
    fits = explained / len(g) > clear and bool(np.isfinite(squares).all())
    return slopes._replace(squares=squares if fits else slopes.squares, pairs=0)
