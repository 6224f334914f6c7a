"""Without noise, before the end: are other samples the same function, too?

Some may be alike by chance, as where few of them depend on x, or where there are few different ones. Before a run is
ended early, as many samples as one call in a hundred pays for are asked on either side of the result, some way off, for
at the result itself, or where a loss is zero, they may have the same value all the same.
"""

from __future__ import annotations

import numpy as np

from poem_cma._types import Array
from poem_cma.arithmetic import length
from poem_cma.auto.estimators import same
from poem_cma.auto.exact_state import ExactState
from poem_cma.core import Values

__all__ = ["PLACES", "agree", "witness_points", "witnesses"]

#: At so many points each.
PLACES = 2

_FEWEST, _SHARE, _MOST = 4, 0.01, 32  # samples, and of the budget


def witnesses(s: ExactState) -> int:
    """How many samples are asked; fewer than two say nothing, and none are needed where F takes no xi."""
    if not s.run.sampled:
        return 0
    return int(min(_FEWEST + _SHARE * s.run.budget, _MOST, (s.run.budget - s.nfev) // PLACES))


def witness_points(s: ExactState) -> list[Array]:
    """On either side of the result, as far away as it is from x_0, or POEM's first distance."""
    away = np.random.default_rng(s.seen).normal(size=len(s.x))
    away *= max(s.r, s.run.initial_distance) / length(away)
    return [s.run.domain.project(s.average + away), s.run.domain.project(s.average - away)]


def agree(s: ExactState, values: Values) -> bool:
    """Whether all have given the same values, but for calls that failed."""
    V = np.array(values)
    V = V[np.isfinite(V).all(axis=1)]
    return len(V) == 0 or same(V, V[:1], s.fine)
