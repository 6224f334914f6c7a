"""Without noise: how far along the way to the minimum of the model.

Every trial asks two points that are close to each other: F, and its slope. Far enough is where F has fallen by a part
of what the first slope promises, and no longer falls nearly as steeply (the weak Wolfe conditions). On smooth functions
one more trial, where a straight line through the two slopes is zero, makes quasi-Newton steps far better than their
number of calls costs, for a gradient takes as many as there are axes. Where the slope there is not what the line says,
it jumps, and it is better to step over that place (Lewis and Overton 2013); and where it is still the slope of one end
or that of the other, it jumps at a corner.
"""

from __future__ import annotations

from math import inf, isfinite, nan, sqrt

import numpy as np

from poem_cma._types import Array
from poem_cma.arithmetic import equal
from poem_cma.auto.exact_state import ExactState

__all__ = ["apart", "begun", "on_the_way", "searched", "trial"]

_ENOUGH, _STEEP = 1e-4, 0.9  # of the decrease that the slope promises, and of the slope
_FLAT = 0.1  # of the slope: no need to look closer
_JUMP = 0.3  # of the change of the slope, between what the line says and what was seen
_CORNER = 0.05  # of the change of the slope: between the two points it is as at one of them
_LONGER = 2.0, 10.0
_BETWEEN = 0.1, 0.9
_MOST_TRIALS = 30
_FURTHEST = 1e100  # beyond, squares overflow
_NEAR = 1e-6, 0.1  # of the way to the first point
_RESOLVED = 1e-10  # of x: two points that are closer are one
_ROUNDED = 8.0  # rounding errors of F that a slope may be off by


def on_the_way(s: ExactState, eta: float) -> Array:
    """The point so far along the way."""
    x: Array = s.run.domain.project(s.x + eta * s.p)
    return x


def trial(s: ExactState) -> tuple[Array, Array]:
    """The two points that are asked."""
    return on_the_way(s, s.eta), on_the_way(s, s.eta + _beyond(s))


def _beyond(s: ExactState) -> float:
    """How much further the second point is, as in `slopes`, for the curvature -<g, p> along the way."""
    best = 2.0 * sqrt(s.eps * s.size / s.unit / -s.slope)
    return min(max(best, s.apart), _NEAR[1] * s.eta) or _NEAR[0] * s.eta


def apart(s: ExactState) -> float:
    """How far from each other two points of the way must be, lest they are one."""
    return _RESOLVED * float(np.abs(s.x).max()) / float(np.abs(s.p).max())


def searched(s: ExactState, F: float, beyond: float) -> ExactState:
    """After a trial: the next one, or `found` is how far to go, or zero and no trial is left."""
    s = s._replace(trials=s.trials + 1, walled=s.walled or not isfinite(F))
    enough = s.value + _ENOUGH * s.eta * s.slope * s.unit >= F
    rate = (beyond - F) / s.unit / _beyond(s) if enough else nan
    there = enough and not rate < _STEEP * s.slope
    if s.found > 0.0:
        return _looked_closer(s, F, rate, there)
    if there:
        s = s._replace(found=s.eta, found_value=F, found_slope=rate)
        if s.kinks or not abs(rate) > _FLAT * -s.slope:
            return s._replace(eta=0.0)
    if enough and rate < 0.0:
        s = s._replace(low=s.eta, low_value=F, low_slope=rate)
    else:
        s = s._replace(high=s.eta, high_slope=rate)
    if s.trials >= _MOST_TRIALS or -s.eta * s.slope * s.unit <= s.eps * s.size:
        return _ended(s)
    return _further(s, there) if s.high == inf else s._replace(eta=s.low + _part(s, F) * (s.high - s.low))


def _looked_closer(s: ExactState, F: float, rate: float, there: bool) -> ExactState:
    """After a trial at which the slope should be zero."""
    turn = (s.found_slope - s.slope) * s.eta / s.found
    doubt = _ROUNDED * s.eps * s.size / s.unit / _beyond(s)
    jump = not abs(rate - (s.slope + turn)) <= _JUMP * turn + doubt
    if there and s.found_value > F and not jump:
        s = s._replace(found=s.eta, found_value=F)
    between = s.found_slope > 0.0 and min(rate - s.slope, s.found_slope - rate) < _CORNER * (s.found_slope - s.slope)
    return s._replace(eta=0.0, kinks=s.kinks or (jump and between))


def _further(s: ExactState, there: bool) -> ExactState:
    """Where a line through both slopes is zero, within reason; not beyond the domain."""
    rise = s.low_slope - s.slope
    ratio = -s.slope / rise if rise > 0.0 else inf
    eta = s.low * min(max(ratio, 1.0 if there else _LONGER[0]), _LONGER[1])
    if eta * float(np.abs(s.p).max()) > _FURTHEST:
        return _ended(s)
    x = s.x + eta * s.p
    return s._replace(eta=eta) if equal(s.run.domain.project(x), x) else _ended(s)


def _part(s: ExactState, F: float) -> float:
    """How far between `low` and `high`: where the line, or a parabola, has its zero, or its minimum."""
    if isfinite(s.high_slope):
        part = s.low_slope / (s.low_slope - s.high_slope)
    elif s.low == 0.0 and isfinite(F):
        part = -0.5 * s.slope * s.eta / ((F - s.value) / s.unit - s.eta * s.slope)
    else:
        part = 0.5
    return min(max(part, _BETWEEN[0]), _BETWEEN[1])


def _ended(s: ExactState) -> ExactState:
    """As far as F was seen to fall."""
    if s.found == 0.0 and s.low > 0.0:
        s = s._replace(found=s.low, found_value=s.low_value)
    return s._replace(eta=0.0)


def begun(s: ExactState, p: Array, slope: float, expected: Array) -> ExactState:
    """At the beginning of a way."""
    return s._replace(
        p=p, slope=slope, expected=expected, eta=1.0, low=0.0, low_value=s.value, low_slope=slope, high=inf,
        high_slope=nan, found=0.0, found_value=s.value, found_slope=nan, trials=0, walled=False,
    )  # fmt: skip
