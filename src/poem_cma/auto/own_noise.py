"""Is the noise shared by the points of a probe? x_0, asked several times on one xi, tells.

Where values differ, small differences are of no use, and pairs far apart take over; unless they differ by so little
that F is as good as rounded to that. A few xi's may differ by mishap.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from poem_cma._types import Array
from poem_cma.auto.estimators import EXACT, ROUNDING
from poem_cma.auto.plausible import plausible

__all__ = ["OFTEN", "TWICE", "different", "has_own_noise", "in_doubt", "little"]

#: So many times x_0 is asked on a xi; zeros and ones may be alike twice, and where there are few xi's would not show.
TWICE, OFTEN = 2, 4

_BLOWN_UP = 0.25  # the most xi's whose value may change between two calls by mishap; if more do, it is noise
_LITTLE = 1e-4  # of how samples differ: noise of its own that is no more than this is as good as rounding
_APART = 10.0  # times the noise: by less samples do not differ, as far as one can tell


def different(F: Array, eps: float) -> tuple[Any, float]:
    """For which xi calls at the same point (n, m) gave different values, beyond rounding; and by how much, relative.

    Rounding that is in truth a little noise has one size, whichever value it comes with.
    """
    first = F[:, :1]
    if (first == F).all():
        return np.zeros(len(F), bool), 0.0
    known = np.isfinite(F).all(axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        apart = np.where(known, np.abs(F - first).max(axis=1), 0.0)
        sizes = np.abs(F[:, 0])
        size = float(sizes[known].max(initial=0.0))
        differ = apart > max(1e-12, ROUNDING * eps) * (sizes if eps < EXACT else size)
    return differ, float(apart.max()) / size if size > 0.0 else inf


def has_own_noise(F: Array, differ: Any) -> bool:
    """Whether more xi's differ than mishaps explain."""
    return bool(differ.sum() > _BLOWN_UP * np.isfinite(F).all(axis=1).sum())


def in_doubt(F: Array, differ: Any) -> bool:
    """Whether some differ, by no more than noise could make of them."""
    return bool((differ & plausible(np.abs(F).max(axis=1))).any())


def little(noise: float, values: Array) -> bool:
    """Whether noise, in the size of F, is little beside how samples differ; or beside F itself, where they do not."""
    F = values[np.isfinite(values)]
    if not noise < inf:  # where F is zero
        return False
    spread = float(np.std(F / np.abs(F).max()))
    return noise < _LITTLE * (spread if spread > _APART * noise else 1.0)
