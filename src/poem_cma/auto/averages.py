"""Averages of the iterates in which later ones weigh more: the k-th by k to a power (Shamir and Zhang 2013)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from poem_cma._types import Array, Points

__all__ = ["EVEN", "POWERS", "Averages", "add", "begin"]

#: Two averages: one for a run that has settled, one for a run whose steps are long.
POWERS = (8.0, 2.0)
#: The steps of a near search shrink by themselves: the even average, which has less noise, is the first.
EVEN = (2.0, 8.0)


class Averages(NamedTuple):
    """The averages of a search."""

    t: int  # iterates so far
    points: Points  # (len(POWERS), d)


def begin(x: Array) -> Averages:
    """Before the first step every average is x."""
    return Averages(0, np.tile(x, (len(POWERS), 1)))


def add(averages: Averages, x: Array, powers: tuple[float, ...] = POWERS) -> Averages:
    """The averages with one more iterate."""
    t = averages.t + 1
    share = np.array([(1.0 + power) / (t + power) for power in powers])[:, None]
    return Averages(t, averages.points + share * (x - averages.points))
