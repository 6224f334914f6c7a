"""Values that cannot be true: of a simulation that has blown up, say, or of a worker that answered with garbage.

A call that fails is left out. One that returns 1e30 where others return 1 should be, too: the square of such a slope
would end the run, because all steps after it would be as many times shorter. What is merely large stays, for a mean may
live on rare large samples; only what is out of all proportion goes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from poem_cma._types import Array

__all__ = ["ABSURD", "plausible"]

#: So many times as much as usual (of slopes: as the steepest before) is taken for a failed call.
ABSURD = 2.0**30

_FEWEST = 4  # sizes say what is usual


def plausible(sizes: Array) -> Any:
    """Which of the sizes, of changes of F, are in proportion to the others; along the first axis.

    Examples
    --------
    >>> plausible(np.array([1.0, 0.0, 2.0, 1e30, 3.0])).tolist()
    [True, True, True, False, True]
    """
    changed = sizes > 0.0
    enough = changed.sum(axis=0) >= _FEWEST
    if not enough.any():
        return np.ones(sizes.shape, bool)
    known = np.where(enough, np.where(changed, sizes, np.nan), np.inf)
    with np.errstate(over="ignore", invalid="ignore"):
        most = ABSURD * np.nanmedian(known, axis=0)
    return ~(sizes > most)
