"""The first scale: a few estimates at x_0, then values along the rays that they point to."""

from __future__ import annotations

from math import inf, isfinite, nan, sqrt
from typing import Any

import numpy as np

from poem_cma._types import Array
from poem_cma.auto.choose import on_axes
from poem_cma.auto.compare import hand_over_noise
from poem_cma.auto.estimators import step_length
from poem_cma.auto.scale import bounds_matter, choose_radius, in_units, measurable
from poem_cma.auto.state import HAAR, RAY, START, WALK, AutoState, empty, has, size
from poem_cma.auto.steps import at_scale, next_step, noted, smoothed, weight, with_room
from poem_cma.auto.walks import Walks, estimate
from poem_cma.core import Run, Values

__all__ = ["after_ray", "after_start", "first_estimates", "on_ray"]

_PROBES = 8
_FEWEST_WALKS = 4
_START_SHARE = 0.1  # of the budget, for walks at x_0
_RADII_AT_ONCE = 3
_MOST_RADII = 19
_GIVE_UP_START = 0.1  # of the budget
_FURTHER = 100.0
_RESOLVED = 1e4  # rounding errors that the changes at x_0 must be worth
_UNEVEN = 4.0  # sizes of slopes that differ by more may mean that units do
_MUCH_BETTER = 1.25

_OWN_NOISE = (
    "two calls at the same point, on the same sample, gave different values, so auto went on with pairs of points "
    "far apart: if the noise can be fixed by a seed, draw it in sample= and pass it on"
)


def first_estimates(run: Run, n: int) -> tuple[str, int, int]:
    """Which estimates are taken at x_0, along how many axes or directions, and on how many xi's."""
    probes = int(min(max(run.budget / 500, 1), _PROBES))
    walks = int(min(probes, _START_SHARE * run.budget / (n + 1))) if isfinite(run.budget) else probes
    if on_axes(run, n) and walks >= min(probes, _FEWEST_WALKS):
        return WALK, n, walks
    return HAAR, int(min(max(run.budget / (20 * probes) - 1, 1), 32, run.domain.hull_dimension(len(run.x0)))), probes


def after_start(s: AutoState, walks: Walks) -> AutoState:
    """Sum up the estimates at x_0; then look along the ray, or along two."""
    if _drowned(s.values, s.eps):
        return start_again(s._replace(mu=_FURTHER * s.mu, R=_FURTHER * s.R))
    w = weight(s)
    for j in range(len(s.values)):
        s, g, slopes = estimate(s, walks, j)
        if g is not None:
            s = noted(s, walks, j, g, slopes)
            s = s._replace(s=s.s + w * g, G=s.G + (w * g) ** 2, weight=s.weight + w)
    walks.forget()
    s = s._replace(value=smoothed(s)[0])
    if s.s @ s.s == 0.0:
        return start_again(s)
    metrics = [s.metric, in_units(s)] if _units_may_differ(s) else [s.metric]
    rays = np.array([s.s / D / size(s.s / D, D) for D in metrics])
    radii = np.concatenate(([0.0, 0.0], s.R * 10.0 ** np.arange(_RADII_AT_ONCE)))  # x_0 twice: is its noise shared?
    return s._replace(stage=RAY, rays=rays, radii=radii, ray_values=empty(len(rays), 0))


def _drowned(values: Array, eps: float) -> bool:
    """Whether the changes of F within a probe are hardly more than rounding."""
    known = np.isfinite(values)
    change = np.where(known, values, -inf).max(axis=1) - np.where(known, values, inf).min(axis=1)
    size = np.abs(np.where(known, values, 0.0)).max(axis=1)
    return bool(known.any() and (change <= _RESOLVED * eps * size).all())


def _units_may_differ(s: AutoState) -> bool:
    """Whether slopes have so different sizes that variables may be measured in different units."""
    if s.kind != WALK or not has(s.run, "units") or not measurable(s):
        return False
    seen = s.active > 0.0
    sizes = np.sqrt(s.squares[seen] / s.active[seen])
    return len(sizes) > 1 and float(sizes.max()) > _UNEVEN * float(sizes.min())


def start_again(s: AutoState) -> AutoState:
    """Nothing was seen: more estimates at x_0, unless enough was spent on them; then POEM's first scale."""
    n = len(s.values)
    s = s._replace(samples=s.samples + n, values=np.full((n, 1 + s.q), nan), step_calls=0, step=step_length(s.eps))
    if s.nfev > _GIVE_UP_START * s.run.budget:
        R = s.run.initial_distance
        return next_step(at_scale(s._replace(R=R, dual=bounds_matter(s.run, R), settled=False)))
    return with_room(s._replace(stage=START))  # mu may have grown


def on_ray(s: AutoState, i: int, radius: float) -> Array:
    """The point of the i-th ray at a distance from x_0."""
    x: Array = s.run.domain.project(s.run.x0 - radius * s.rays[i]) if radius > 0.0 else s.run.x0
    return x


def after_ray(s: AutoState, values: Values) -> Any:
    """Go on outwards while it pays; then the scale is where most of the decrease is had, on the better ray."""
    V = np.array(values)
    rays = len(s.rays)
    if s.radii[0] == 0.0:
        if not _same(V[:, 0], V[:, 1]):
            return hand_over_noise(s, _OWN_NOISE)
        at_x0 = np.where(np.isfinite(V[:, :1]), V[:, :1], V[:, 1:2])  # for each xi
        s = s._replace(values=at_x0, radii=s.radii[2:], ray_values=empty(rays, 1))
        V = V[:, 2:]
    changes = _mean_changes(V, s.values[:, 0]).reshape(rays, -1)
    means = np.concatenate((s.ray_values, changes), axis=1)
    tiny, outermost = s.R, float(s.radii[-1])
    goes_on = [
        row[-1] <= row.min() and not np.array_equal(on_ray(s, i, outermost), on_ray(s, i, outermost / 10.0))
        for i, row in enumerate(means)
    ]
    if any(goes_on) and means.shape[1] < _MOST_RADII:
        return s._replace(radii=outermost * 10.0 ** np.arange(1, 1 + _RADII_AT_ONCE), ray_values=means)
    best = 1 if rays == 2 and means[1].min() < _MUCH_BETTER * min(means[0].min(), 0.0) else 0
    radius = choose_radius(means[best], tiny)
    if radius is None:
        return start_again(s)
    s = _on_the_way(s, best, radius)
    return next_step(at_scale(s._replace(rays=empty(0, len(s.x)))))


def _on_the_way(s: AutoState, best: int, radius: float) -> AutoState:
    """Begin where the ray was best; the estimates at x_0 count as one."""
    if best == 1:
        s = s._replace(metric=in_units(s), by_units=True)
    s = s._replace(dual=bounds_matter(s.run, radius))
    if s.dual:
        return s._replace(R=radius * sqrt(2.0 * (s.G / s.metric).sum()) / size(s.s / s.metric, s.metric))
    x = on_ray(s, best, radius)
    away = x - s.run.x0
    return s._replace(R=radius, x=x, r=sqrt(away @ away), G=s.G / len(s.values))


def _mean_changes(V: Array, base: Array) -> Array:
    """The mean change of F against x_0 at each radius, over the xi's for which both are known; infinite if few are."""
    change = V - base[:, None]
    known = np.isfinite(change)
    sums = np.where(known, change, 0.0).sum(axis=0)
    return np.where(2 * known.sum(axis=0) >= len(V), sums / np.maximum(known.sum(axis=0), 1), inf)


def _same(a: Array, b: Array) -> bool:
    """Whether two calls at the same point, on the same xi, gave the same value."""
    return bool((np.isnan(a) | np.isnan(b) | (np.abs(a - b) <= 1e-12 * np.abs(a))).all())
