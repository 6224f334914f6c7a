"""The least spread of a variable that changes in steps: integers.

Where the spread is far below a step, all samples round to the same integer, and the search has lost the variable.
CMA-ES with margin (Hamano et al. 2022) keeps the probability that a sample rounds to another integer above
1 / (lambda d), where lambda is the number of samples of a generation: for d integers about one change a generation. At
an integer, where the next ones are one step away, this is a least standard deviation.
"""

from __future__ import annotations

from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np

from poem_cma._types import Array

__all__ = ["least_spread", "widened"]


@lru_cache(maxsize=64)
def least_spread(d: int, size: int) -> float:
    """The least standard deviation, in steps, for d variables and generations of so many samples."""
    return 0.5 / NormalDist().inv_cdf(1.0 - 0.5 / (size * d))


def widened(C: Array, sigma: float, steps: Any, size: int) -> Array:
    """The covariance, or its diagonal, with a spread of no less than the least along each variable that has steps."""
    if not np.any(steps):
        return C
    diagonal = C.diagonal() if C.ndim == 2 else C
    lacking = np.maximum((least_spread(len(C), size) * steps / sigma) ** 2 - diagonal, 0.0)
    wider: Array = C + (np.diag(lacking) if C.ndim == 2 else lacking)
    return wider
