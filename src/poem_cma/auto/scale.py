"""The scale R and the metric D of `auto`."""

from __future__ import annotations

from math import isfinite, sqrt

import numpy as np

from poem_cma._types import Array, IntArray
from poem_cma.auto.state import WALK, AutoState, has, size
from poem_cma.core import Run

__all__ = [
    "EVERY",
    "bounds_matter",
    "first_distance",
    "followed",
    "in_metric",
    "in_subspace",
    "in_units",
    "measurable",
    "rescaled",
    "spread_of_slopes",
]

EVERY = 1.15  # growth of the gradients' weight between two looks at the scale
_MOST_GROWTH = 4.0
_BEYOND = 3.0  # times the scale
_WITHIN_BOUNDS = 2.0  # times what chance makes of slopes, where a scale that is too large does little harm
_MOST_LONGER = 3.0  # times: steps along a variable, because others have become steeper
_MOST_LIGHTER = 16.0  # times: D of a variable beside others, in a look, lest vanishing slopes lead further and further
_LEAST = 1e-100  # of the mean of D: less comes of a mishap, and what is divided by it overflows
_NEAR = 0.05  # of the diameter
_UNKNOWN = 0.01  # of what it was: where D falls below, it was not known


def first_distance(run: Run) -> float:
    """Where to begin: tiny compared with x_0 and with the domain."""
    tiny = 1e-6 * max(1.0, float(np.abs(run.x0).max()))
    return min(tiny, 1e-3 * run.domain.diameter) if isfinite(run.domain.diameter) else tiny


def bounds_matter(run: Run, radius: float) -> bool:
    """Whether the run will come to where the domain ends, as far as its first scale can tell."""
    forced: bool | None = run.method.settings.get("dual")
    return radius >= _NEAR * run.domain.diameter if forced is None else forced


def rescaled(s: AutoState) -> AutoState:
    """R follows the average, and D the slopes."""
    R = s.R
    if has(s.run, "rescaling"):
        R = followed(R, _distance(s), s.radial, s.radial_squares, _WITHIN_BOUNDS if s.dual else 1.0)
    s = s._replace(
        R=R, radial=0.0, radial_squares=0.0, rescale_at=EVERY * s.weight, order=_order(s),
        grown=s.grown + 1 if R > 1.2 * s.R else 0,
    )  # fmt: skip
    metric = _metric(s)
    if metric is s.metric:
        return s
    if s.by_units:
        usual = float(np.median(metric / s.metric))
        metric = _normal(np.maximum(metric, usual / _MOST_LIGHTER * s.metric))
    s = s._replace(R=s.R * _restraint(s.metric, metric))
    return in_metric(_in_known_units(s, metric) if s.by_units else s, metric)


def _restraint(before: Array, metric: Array) -> float:
    """How much shorter the scale must be in another metric, lest steps along most variables become far longer.

    D is relative: where one variable proves to be far steeper than was known, as its fourth power is further out, that
    of all others falls. But nothing new was learned of these.
    """
    return min(1.0, _MOST_LONGER * sqrt(float(np.median(metric / before))))


def _in_known_units(s: AutoState, metric: Array) -> AutoState:
    """The same state where slopes of a variable were too small to be seen, and its unit becomes known only now.

    What was measured along it so far, in a unit that was far too small, would count for more than all that is to come.
    """
    change = metric / s.metric
    change[change > _UNKNOWN] = 1.0
    return s._replace(s=s.s * change, G=s.G * change)


def in_metric(s: AutoState, metric: Array) -> AutoState:
    """The same state in another metric: the span of the gradients, which is held in the metric, turns with it."""
    if metric is s.metric:
        return s
    span = s.subspace * np.sqrt(s.metric / metric)
    return s._replace(metric=metric, subspace=np.linalg.qr(span.T)[0].T if len(span) else span)


def _order(s: AutoState) -> IntArray:
    """The axes that have made a difference most often come first."""
    if s.tested.strides == (0,):
        return s.order  # none was tested
    rate = (s.active[s.order] + 0.5) / (s.tested[s.order] + 1.0)
    order: IntArray = s.order[np.argsort(-rate, kind="stable")]
    return order


def followed(R: float, r: float, radial: float, radial_squares: float, doubt: float = 1.0) -> float:
    """R becomes r, the distance of the average from x_0, where the slopes along the way agree.

    The sum of <g, x - x_0> since the last look is negative where going further out would have paid, and positive where
    less far would have. It must be more than chance makes it, so many times for the scale to become smaller: noise
    alone would drive it, mostly to zero. But noise does not lead an average three times as far away as R: there it is
    enough if slopes do not say the contrary.
    """
    r, chance = min(r, _MOST_GROWTH * R), sqrt(radial_squares)
    further = r > R and radial < (-chance if r < _BEYOND * R else 0.0)
    less_far = 0.0 < r < R and radial > doubt * chance
    return r if further or less_far else R


def in_subspace(s: AutoState) -> AutoState:
    """From random directions to a subspace: the scale without what was at random, and steps as long as before."""
    R = min(_distance(s), s.R) or s.R
    change = (R / s.R) ** 2
    return s._replace(R=R, G=s.G * change, late=s.late * change)


def _distance(s: AutoState) -> float:
    """How far the average is from x_0, where gradients are: beside their subspace steps were at random."""
    away = s.averages[2] - s.run.x0
    if s.use_subspace:
        stretch = np.sqrt(s.metric)
        away = (s.subspace @ (away * stretch)) @ s.subspace / stretch
    return size(away, s.metric)


def _metric(s: AutoState) -> Array:
    """D, once every axis has been seen often enough."""
    often = s.active_trials >= (3 if s.choice == WALK else 12)
    if not often or s.use_subspace or not measurable(s) or not s.squares.any():
        return s.metric
    return in_units(s) if s.by_units else _normal(_spread(s.squares / s.tested, s))


def measurable(s: AutoState) -> bool:
    """Whether a metric can be used, and all axes are known."""
    return (
        has(s.run, "metric")
        and s.penalty[0] == 0.0  # who penalises |x|^2 measures all variables alike
        and s.run.domain.weighted
        and len(s.order) == len(s.x)
        and float(s.tested.min(initial=np.inf)) > 0.0
    )


def spread_of_slopes(s: AutoState) -> float:
    """How many times larger the slopes of one axis are than those of another, where they have any."""
    seen = s.squares > 0.0  # those far below the steepest ever seen may vanish in a square
    squares = s.squares[seen] / s.active[seen]
    return sqrt(float(squares.max())) / sqrt(float(squares.min())) if len(squares) else 1.0


def in_units(s: AutoState) -> Array:
    """The metric in which the unit of a variable does not matter: as if its typical slope, where it has one, were 1."""
    active = s.squares > 0.0
    if not active.any():
        return s.metric
    u2 = np.where(active, s.squares / np.maximum(s.active, 1.0), 0.0)
    u2 = np.where(active, u2, np.median(u2[active]))
    return _normal(u2 * _spread(s.active / s.tested, s))


def _spread(m: Array, s: AutoState) -> Array:
    """The root of mean squares, kept away from zero by as much as they are in doubt."""
    root: Array = np.sqrt(m + m.mean() * (1e-4 + 2.0 / float(s.tested.mean())))
    return root


def _normal(D: Array) -> Array:
    metric: Array = np.maximum(D / D.mean(), _LEAST)
    return metric
