"""The proof of the first scale: rays on samples that had no part in them.

A ray along the mean gradient of a few samples makes these samples better, and goes on to do so where the function
itself gets worse: with eight samples in a hundred dimensions most of the decrease that they show is their own. So every
sample is asked once more, on the ray that the gradients of all others make. Where these values show a decrease beyond
chance, they say how far to go and on which ray; where they show none, the scale stays as it was, for it is still the
distance over which samples change.
"""

from __future__ import annotations

from math import inf, sqrt

import numpy as np

from poem_cma._types import Array
from poem_cma.arithmetic import LONG
from poem_cma.auto.choose import rejudged
from poem_cma.auto.compare import first_check
from poem_cma.auto.estimators import ROUNDING
from poem_cma.auto.plausible import plausible
from poem_cma.auto.race import against, worth_a_race
from poem_cma.auto.scale import bounds_matter, in_metric, in_units, spread_of_slopes
from poem_cma.auto.state import PROVE, WALK, AutoState, empty, size
from poem_cma.auto.steps import at_scale, next_step
from poem_cma.core import Values

__all__ = ["after_proof", "demanded", "least_radius", "mean_changes", "proof", "proof_places", "proof_point"]

_FEWEST = 6  # samples
_INWARDS = 10.0 ** (-0.5 * np.arange(4))  # radii that are asked at once, in that of the ray
_ALL_THE_WAY = 10.0 ** -np.arange(18.0)  # the same where no end of the ray was found
_FOR_EVER = 3.0  # standard errors of proof that a ray needs which seems to go on for ever; others need one
_MOST_RADII = 40
_STRAIGHT = 1e-4  # of the slope: a ray whose slope changes by less has no bend
_MOST = 0.9  # of the decrease
_MOST_MISSED = 2.0  # times: in very many dimensions nearly all of a ray is at random, and R must not follow that
_ASLANT = 2.0  # a ray misses the solution, which is then further away than the best point on the ray
_HUGE = 1e300  # beyond, sums overflow
_FAR_APART = 1e3  # slopes whose sizes differ by more than that have units: without them a run would get nowhere,
_ENOUGH = 0.5  # and so much of the decrease is enough there for the metric in which units do not matter


def proof(s: AutoState, favoured: int, radii: list[float], endless: bool) -> AutoState:
    """Ask every first sample on the rays of the others, from these radii inwards; if there are enough of them."""
    if len(s.own) < _FEWEST and endless:
        bends = [_bend(s, s.radii, row) for row in s.ray_values]
        return _with_a_race(s, favoured, [_begun(s, i, 0.0, R) for i, R in enumerate(bends)])
    if len(s.own) < _FEWEST:
        return _with_a_race(s, favoured, [_begun(s, i, r, r) for i, r in enumerate(radii)])
    inwards = _ALL_THE_WAY if endless else _INWARDS
    none = empty(len(radii), 0)
    return s._replace(stage=PROVE, favoured=favoured, radii=np.outer(radii, inwards), ray_values=none, ray_errors=none)


def proof_places(s: AutoState) -> list[tuple[int, float]]:
    """What is asked on every xi: which ray, and how far."""
    return [(i, float(r)) for i, row in enumerate(s.radii) for r in row[s.ray_values.shape[1] :]]


def proof_point(s: AutoState, j: int, i: int, radius: float) -> Array:
    """The point of the i-th ray, as the gradients of all samples but the j-th make it, at a distance from x_0."""
    return _on_ray(s, s.s - s.own[j], i, radius)


def after_proof(s: AutoState, values: Values) -> AutoState:
    """Go on inwards while it pays; then begin where values beyond doubt are best, or as the rays said."""
    shape = len(s.radii), -1
    mean, error = mean_changes(np.array(values), s.values[:, 0])
    s = s._replace(
        ray_values=np.concatenate((s.ray_values, mean.reshape(shape)), axis=1),
        ray_errors=np.concatenate((s.ray_errors, error.reshape(shape)), axis=1),
    )
    n = s.radii.shape[1]
    endless = n >= len(_ALL_THE_WAY)
    doubt = s.ray_errors * (_FOR_EVER if endless else 1.0)
    at_worst, at_best = s.ray_values + doubt, s.ray_values - doubt
    sure = at_worst.min(axis=1) < -ROUNDING * s.eps * float(np.abs(s.values[:, 0]).max())
    if n < _MOST_RADII and (sure & (at_worst.argmin(axis=1) == n - 1)).any():
        return s._replace(radii=np.concatenate((s.radii, np.outer(s.radii[:, -1], _INWARDS * _INWARDS[1])), axis=1))
    i = s.favoured
    if len(s.radii) == 2 and not (i == 1 and demanded(s) < 1.0):
        i = 1 - i if at_worst[1 - i].min() < at_best[i, s.ray_values[i].argmin()] else i

    def begun(i: int) -> AutoState:
        furthest = float(s.radii[i, 0])
        if not sure[i] and endless:
            return _begun(s, i, 0.0, _bend(s, s.radii[i], s.ray_values[i]))
        if not sure[i]:
            return _begun(s, i, furthest if at_best[i, 0] <= 0.0 else 0.0, furthest)
        radius = least_radius(s.radii[i].tolist(), at_worst[i].tolist())
        proven = at_worst[i, 0] < 0.0 and at_best[i, 0] <= at_worst[i].min()
        return _begun(s, i, radius, furthest if proven else min(_ASLANT * radius, furthest))

    if demanded(s) < 1.0:
        s = s._replace(kept=0)  # differences at x_0 were too short to see small slopes well
    return _with_a_race(s, i, [begun(i) for i in range(len(s.radii))])


def _with_a_race(s: AutoState, i: int, begun: list[AutoState]) -> AutoState:
    """The i-th of one or two beginnings, against the other where it is worth it."""
    races = len(begun) == 2 and len(s.x) <= LONG and worth_a_race(s)  # the one that waits takes seven vectors
    return next_step(against(begun[i], begun[1 - i]) if races else begun[i])


def demanded(s: AutoState) -> float:
    """How much of the first ray's decrease the second must have."""
    return _ENOUGH if spread_of_slopes(s) > _FAR_APART else 1.0


def _bend(s: AutoState, radii: Array, changes: Array) -> float:
    """The scale of a ray along which samples fall for ever, which is no proof that their mean does: where it bends.

    Noise that is linear in x makes samples that have no end, whatever their mean is. But it is the same slope at every
    distance: what changes of the slope with the distance is the function's, and where half of that has come about is
    its scale. Where nothing changes, POEM's first scale is as good as any.
    """
    known = (radii > 0.0) & np.isfinite(changes)
    order = np.argsort(radii[known])
    r = radii[known][order]
    slopes = changes[known][order] / r
    if len(r) < 2 or not abs(slopes[-1] - slopes[0]) > _STRAIGHT * abs(slopes[0]):
        return s.run.initial_distance
    i = int((np.abs(slopes - slopes[0]) >= 0.5 * abs(slopes[-1] - slopes[0])).argmax())
    return sqrt(float(r[i - 1] * r[i]))


def least_radius(radii: list[float], changes: list[float]) -> float:
    """The least radius with most of the decrease."""
    most = _MOST * min(changes)
    return min(r for r, change in zip(radii, changes, strict=True) if change <= most)


def mean_changes(V: Array, base: Array) -> tuple[Array, Array]:
    """The mean change of F against x_0 at each radius, over the xi's for which both are known, and its standard error.

    Infinite, without an error, where few are known or the changes are beyond numbers.
    """
    if len(V) == 1:
        own, at_x0 = V[0].tolist(), float(base[0])
        return np.array([f - at_x0 if abs(f - at_x0) < _HUGE else inf for f in own]), np.zeros(len(own))
    with np.errstate(over="ignore", invalid="ignore"):
        change = V - base[:, None]
        absurd = ~plausible(np.abs(change))
        absurd &= absurd.sum(axis=1, keepdims=True) == 1  # at several radii it is no mishap
        known = np.isfinite(change) & ~absurd
        n = np.maximum(known.sum(axis=0), 1)
        mean = np.where(known, change, 0.0).sum(axis=0) / n
        squares = np.where(known, change - mean, 0.0) ** 2
        error = np.sqrt(squares.sum(axis=0) / np.maximum(n - 1, 1) / n)
    usable = (2 * known.sum(axis=0) >= len(V)) & (np.abs(mean) < _HUGE) & (error < _HUGE)
    return np.where(usable, mean, inf), np.where(usable, error, 0.0)


def _begun(s: AutoState, i: int, radius: float, R: float) -> AutoState:
    """Begin on the i-th ray at a distance from x_0, with the scale R; the estimates at x_0 count as one."""
    x = _on_ray(s, s.s, i, radius)
    R *= _missed(s)
    if i == 1:
        s = rejudged(in_metric(s, in_units(s))._replace(by_units=True))
    nothing = empty(0, len(s.x))
    s = s._replace(dual=bounds_matter(s.run, R), rays=nothing, own=nothing, check_at=first_check(s))
    if s.dual:
        s = s._replace(R=R * sqrt(2.0 * (s.G / s.metric).sum()) / size(s.s / s.metric, s.metric))
    else:
        away = x - s.run.x0
        s = s._replace(R=R, x=x, r=sqrt(away @ away), G=s.G / len(s.values))
    return at_scale(s)


def _missed(s: AutoState) -> float:
    """How many times as far as along the ray the way may be, where the first estimates were along random directions.

    With m of them in n dimensions the estimate of a gradient is some sqrt(1 + n / m) times as long as the gradient: the
    rest of it is at random, and misses the solution.
    """
    if s.kind == WALK or len(s.own) < _FEWEST:
        return 1.0
    return min(sqrt(1.0 + s.run.domain.hull_dimension(len(s.x)) / (len(s.own) * s.q)), _MOST_MISSED)


def _on_ray(s: AutoState, gradients: Array, i: int, radius: float) -> Array:
    """The point at a distance from x_0 against gradients, in the metric of the i-th ray."""
    metric = in_units(s) if i == 1 else s.metric
    downhill = gradients / metric
    length = size(downhill, metric)
    if radius == 0.0 or length == 0.0:
        return s.run.x0
    x: Array = s.run.domain.project(s.run.x0 - (radius / length) * downhill)
    return x
