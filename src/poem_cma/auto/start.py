"""The first scale: a few estimates at x_0, then values along the ray that they point to."""

from __future__ import annotations

from math import inf, nan, sqrt
from typing import Any

import numpy as np

from poem_cma._types import Array
from poem_cma.auto.compare import hand_over
from poem_cma.auto.scale import choose_radius
from poem_cma.auto.state import RAY, START, AutoState, empty
from poem_cma.auto.steps import next_step, smoothed
from poem_cma.auto.walks import Walks, estimate
from poem_cma.core import Values

__all__ = ["after_ray", "after_start", "on_ray"]

_RADII_AT_ONCE = 3
_MOST_RADII = 19
_GIVE_UP_START = 0.1  # of the budget

_OWN_NOISE = (
    "two calls at the same point, on the same sample, gave different values, so auto handed over to POEM: if the noise "
    "can be fixed by a seed, draw it in sample= and pass it on"
)


def after_start(s: AutoState, walks: Walks) -> AutoState:
    """Add the estimates at x_0 to the dual average; then look along the ray."""
    w = s.q / len(s.x)
    for j in range(len(s.values)):
        s, g, _ = estimate(s, walks, j)
        if g is not None:
            s = s._replace(s=s.s + w * g, G=s.G + (w * g) ** 2, weight=s.weight + w)
    s = s._replace(value=smoothed(s)[0])
    if s.s @ s.s == 0.0:
        return start_again(s)
    radii = np.concatenate(([0.0, 0.0], s.R * 10.0 ** np.arange(_RADII_AT_ONCE)))  # x_0 twice: is its noise shared?
    return s._replace(stage=RAY, radii=radii, ray_values=empty(0))


def start_again(s: AutoState) -> AutoState:
    """Nothing was seen: more estimates at x_0, unless enough was spent on them; then POEM's first scale."""
    n = len(s.values)
    s = s._replace(samples=s.samples + n, values=np.full((n, 1 + s.q), nan), step_calls=0)
    if s.nfev > _GIVE_UP_START * s.run.budget:
        return next_step(s._replace(R=s.run.initial_distance, settled=False))
    return s._replace(stage=START)


def on_ray(s: AutoState, radius: float) -> Array:
    length = sqrt(s.s @ s.s)
    x: Array = s.run.domain.project(s.run.x0 - radius * s.s / length) if radius > 0.0 else s.run.x0
    return x


def after_ray(s: AutoState, values: Values) -> Any:
    """Go on outwards while it pays; then the scale is where most of the decrease is had."""
    V = np.array(values)
    if s.radii[0] == 0.0:
        if not _same(V[:, 0], V[:, 1]):
            return hand_over(s, _OWN_NOISE)
        s = s._replace(values=np.where(np.isfinite(V[:, :1]), V[:, :1], V[:, 1:2]))  # at x_0, for each xi
        V = V[:, 1:]
    means = np.append(s.ray_values, _mean_changes(V, s.values[:, 0]))
    tiny = s.R
    outermost = float(s.radii[-1])
    best = means.min()
    stuck = np.array_equal(on_ray(s, outermost), on_ray(s, outermost / 10.0))
    if means[-1] <= best and not stuck and len(means) < _MOST_RADII:
        return s._replace(radii=outermost * 10.0 ** np.arange(1, 1 + _RADII_AT_ONCE), ray_values=means)
    radius = choose_radius(means, tiny)
    if radius is None:
        return start_again(s)
    return next_step(s._replace(R=radius * sqrt(s.G.sum()) / sqrt(s.s @ s.s)))


def _mean_changes(V: Array, base: Array) -> Array:
    """The mean change of F against x_0 at each radius, over the xi's for which both are known; infinite if few are."""
    change = V - base[:, None]
    known = np.isfinite(change)
    sums = np.where(known, change, 0.0).sum(axis=0)
    return np.where(2 * known.sum(axis=0) >= len(V), sums / np.maximum(known.sum(axis=0), 1), inf)


def _same(a: Array, b: Array) -> bool:
    """Whether two calls at the same point, on the same xi, gave the same value."""
    return bool((np.isnan(a) | np.isnan(b) | (np.abs(a - b) <= 1e-12 * np.abs(a))).all())
