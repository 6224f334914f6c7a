"""Values that cannot be true: of a simulation that has blown up, say, or of a worker that answered with garbage.

A call that fails is left out. One that returns 1e30 where others return 1 should be, too: the square of such a slope
would end the run, because all steps after it would be as many times shorter. What is merely large stays, for a mean may
live on rare large samples; only what is out of all proportion goes.
"""

from __future__ import annotations

from math import inf, nan
from typing import Any

import numpy as np

from poem_cma._types import Array

__all__ = ["ABSURD", "in_proportion", "plausible", "without_mishaps"]

#: So many times as much as usual (of slopes: as the steepest before) is taken for a failed call.
ABSURD = 2.0**30

_FEWEST = 4  # sizes say what is usual,
_RARE = 0.25  # and no more than this part of them are mishaps


def plausible(sizes: Array) -> Any:
    """Which of the sizes, of changes of F, are in proportion to the others; along the first axis.

    Examples
    --------
    >>> plausible(np.array([1.0, 0.0, 2.0, 1e30, 3.0])).tolist()
    [True, True, True, False, True]
    """
    if len(sizes) < _FEWEST:
        return np.ones(sizes.shape, bool)
    changed = sizes > 0.0
    n = changed.sum(axis=0, keepdims=True)
    enough = n >= _FEWEST
    if not enough.any():
        return np.ones(sizes.shape, bool)
    ordered = np.sort(np.where(changed, sizes, np.inf), axis=0)
    low, high = (np.take_along_axis(ordered, np.maximum(i, 0), axis=0) for i in ((n - 1) // 2, n // 2))
    with np.errstate(over="ignore"):
        most = ABSURD * (0.5 * low + 0.5 * high)  # of the median
    absurd = enough & (sizes > most)
    return ~(absurd & (absurd.sum(axis=0, keepdims=True) <= _RARE * n))


def without_mishaps(values: Array) -> Array:
    """Values of probes (n, m), infinite where one is further from the others of its probe than it is in most probes."""
    known = np.where(np.isfinite(values), values, nan)
    middle = np.array([[np.nanmedian(row) if np.isfinite(row).any() else nan] for row in known])
    with np.errstate(over="ignore"):
        away = np.abs(known - middle)
    return np.where(plausible(away), values, inf)


def in_proportion(v: Array, most: float) -> Array:
    """The values of one probe, infinite where a few are further than `most` from the others; v itself if none is."""
    known = v[np.isfinite(v)]
    with np.errstate(over="ignore"):
        far = np.isfinite(v) & ~(np.abs(v - np.median(known)) <= most)
    return np.where(far, inf, v) if 0 < far.sum() <= _RARE * len(known) else v
