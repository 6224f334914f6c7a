"""What a quasi-Newton search has come to."""

from __future__ import annotations

from math import inf, nan
from typing import NamedTuple

import numpy as np

from poem_cma._types import Array, Points, Size, Unknown, Value

__all__ = ["KINK", "MINIMUM", "MOVING", "Exact", "Line", "begin"]

#: The search goes on; it has come to a minimum; no lower value was found, and slopes jump there.
MOVING, MINIMUM, KINK = "moving", "minimum", "kink"


class Line(NamedTuple):
    """The search along a line: x + low p has a lower value and is still steep, x + high p is too far."""

    p: Array | Points  # empty while slopes are asked
    slope: float  # along p at x
    t: float  # the next trial
    low: float
    low_value: float
    low_slope: float
    high: float
    trials: int
    kink: bool  # whether an end at x is at a kink, as far as differences on both sides are known


class Exact(NamedTuple):
    """The iterate and what is known there; values and slopes are in units of the first value."""

    x: Array
    F: Value  # NaN before the first evaluation
    g: Array  # where it was evaluated last: at x, or at the iterate before
    S: Points  # (pairs, d) steps,
    Y: Points  # (pairs, d) and the changes of the gradient along them
    step: Array  # from the iterate where g was evaluated
    line: Line
    reach: Size  # a typical distance of changes of x
    unit: Unknown  # of the values
    central: bool  # whether differences are taken on both sides
    steep: float  # the largest slope of the first gradient
    end: str  # MOVING, MINIMUM or KINK


def no_line() -> Line:
    """Slopes are asked."""
    return Line(np.zeros(0), 0.0, 1.0, 0.0, 0.0, 0.0, inf, 0, False)


def begin(x: Array, reach: float) -> Exact:
    """At x, where F changes over distances of about `reach`."""
    zero, none = np.zeros(len(x)), np.zeros((0, len(x)))
    return Exact(x, nan, zero, none, none, zero, no_line(), reach, nan, False, 0.0, MOVING)
