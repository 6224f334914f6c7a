"""The first estimates, at x_0: they point along a ray, or along two."""

from __future__ import annotations

from math import inf, isfinite, nan
from typing import Any

import numpy as np

from poem_cma._types import Array
from poem_cma.arithmetic import LONG
from poem_cma.auto.choose import on_axes
from poem_cma.auto.compare import hand_over_steps
from poem_cma.auto.directions import SHARED
from poem_cma.auto.estimators import same, step_length
from poem_cma.auto.exact import affordable
from poem_cma.auto.own_noise import OFTEN, TWICE
from poem_cma.auto.plausible import without_mishaps
from poem_cma.auto.remarks import STAIRS
from poem_cma.auto.scale import bounds_matter, first_distance, in_units, measurable, spread_of_slopes
from poem_cma.auto.state import HAAR, RAY, START, WALK, AutoState, empty, has, size
from poem_cma.auto.steps import at_scale, next_step, noted, smoothed, weight, with_room
from poem_cma.auto.walks import Walks, estimate, shares_directions, with_penalty
from poem_cma.core import Run

__all__ = [
    "DECADES", "after_start", "at_first_scale", "first_estimates", "start_again", "start_noisy", "start_rounded",
    "with_samples_enough",
]  # fmt: skip

DECADES = 1.0, 10.0, 100.0  # as far as one looks along a ray at once
_NEARER = 1e-4, 1e-3, 1e-2, 0.1  # and where the first of them may be far out already

_PROBES, _CALLS_A_PROBE = 8, 200  # xi's at x_0, or fewer: one for so many calls of the budget
_FEWEST_WALKS = 4
_ASKEW = 1e-5  # of the energy: gradients are parallel but for this
_START_SHARE = 0.1  # of the budget, for walks at x_0
_GIVE_UP_START = 0.1  # of the budget
_FURTHER = 100.0
_STRIDE = 1.0  # the length of differences, in smoothing radii, where F does not change over short ones
_IN_NOISE, _LONGER = 1.0 / 16.0, 1e3  # the precision of F, in its noise, and how much longer differences are then
_RESOLVED = 1e4  # rounding errors that the changes at x_0 must be worth
_SINGLE, _CLEAR = 1e-6, 10.0  # of x: what numbers of single precision resolve, as many a model has them inside
_UNEVEN = 4.0  # sizes of slopes that differ by more may mean that units do


def first_estimates(run: Run, n: int) -> tuple[str, int, int]:
    """Which estimates are taken at x_0, along how many axes or directions, and on how many xi's."""
    probes = int(min(max(run.budget / _CALLS_A_PROBE, 1), _PROBES))
    walks = int(min(probes, _START_SHARE * run.budget / (n + 1))) if isfinite(run.budget) else probes
    if on_axes(run, n) and walks >= min(probes, _FEWEST_WALKS):
        return WALK, n, walks
    return HAAR, int(min(max(run.budget / (20 * probes) - 1, 1), 32, run.domain.hull_dimension(len(run.x0)))), probes


def after_start(s: AutoState, walks: Walks) -> Any:
    """Sum up the estimates at x_0; then look along the ray, or along two.

    Where F changes over some distance, but not at all over a short one, it has steps: pairs far apart take over.
    """
    change = _changes(s.values)
    if not s.penalised and _drowned(s.values, change, s.eps):
        if s.stairs.any() and _unchanged(s.values):
            return hand_over_steps(s, STAIRS, *s.stairs.tolist())
        still = _still(s)
        distance = _FURTHER * s.step * s.mu
        mu = distance / (_STRIDE if still else step_length(s.eps))
        s = s._replace(mu=mu, R=mu / s.mu * s.R, still=still)
        return start_again(_all_samples(s) if _unchanged(s.values) else s)
    if s.still and isfinite(least := _least_change(s.values)):
        walks.forget()
        return _looked_closer(s._replace(stairs=np.array((s.step * s.mu, least))))
    w = weight(s)
    s = s._replace(values=without_mishaps(s.values))
    s = s._replace(own=empty(len(s.values) if len(s.x) <= LONG else 0, len(s.x)))
    common = []
    for j in range(len(s.values)):
        estimator = walks(s, j)
        s, g, slopes = estimate(s, estimator, j)
        if g is not None:
            common.append(slopes[-SHARED:])
            s = noted(s, estimator, j, g, slopes)
            if s.penalised:
                s, g = with_penalty(s, estimator, g)
            g = w * g
            s = s._replace(s=s.s + g, G=s.G + g**2, weight=s.weight + w)
            s.own[j : j + 1] = g
    s = s._replace(parallel=shares_directions(s) and _parallel(np.array(common)))  # false for a single one
    walks.forget()
    del estimator  # and its directions, which may be most of the memory
    s = s._replace(value=smoothed(s)[0])
    if s.s @ s.s == 0.0:
        return start_again(_all_samples(s))
    metrics = [s.metric, in_units(s)] if _units_may_differ(s) else [s.metric]
    rays = np.array([s.s / D / size(s.s / D, D) for D in metrics])
    few = first_estimates(s.run, len(s.order))[2] < _FEWEST_WALKS
    again = OFTEN if few else TWICE  # x_0 itself: is its noise shared?
    radii = np.array([0.0] * again + _first_radii(s))
    return s._replace(stage=RAY, rays=rays, radii=radii, ray_values=empty(len(rays), 0), between=False)


def _first_radii(s: AutoState) -> list[float]:
    """How far along the ray it is asked; from further in where rounding has made the first distance long."""
    if not has(s.run, "ray"):
        return []
    nearer = _NEARER if first_distance(s.run) < s.R else ()
    return [s.R * r for r in (*nearer, *DECADES)]


def with_samples_enough(s: AutoState) -> AutoState:
    """One is enough where F seems to have no noise: two samples that share their base have the same value there.

    Where no change was seen around it they may have that value because they are flat, which says nothing of others.
    """
    if not s.exact or s.stage != START or len(s.values) == 1 or s.samples > 0:
        return s
    base, other = s.values[0, 0], s.values[1, 0]
    if base != other and not same(base, other, s.eps):
        return s._replace(exact=False)
    known = s.values[0][np.isfinite(s.values[0])]
    failed = bool(np.isinf(s.values[:2]).any())  # by chance, it may be
    enough = not failed and not same(known, base, s.eps) and affordable(s)
    return s._replace(values=s.values[:1]) if enough else s


def _all_samples(s: AutoState) -> AutoState:
    """As many as there were at first."""
    probes = first_estimates(s.run, len(s.order))[2]
    return s if len(s.values) == probes else s._replace(values=np.full((probes, s.values.shape[1]), nan))


def start_noisy(s: AutoState) -> AutoState:
    """Begin anew: F seemed to have no noise, and has."""
    fresh: AutoState = s.run.method.algorithm.begin(s.run.method, s.run)  # type: ignore[union-attr]
    return fresh._replace(exact=False, asked=s.asked, samples=s.samples + len(fresh.values), nfev=s.nfev, eps=s.eps)


def _parallel(slopes: Array) -> bool:
    """Whether gradients of several samples are parallel, as far as their slopes along few directions (n, m) tell."""
    if len(slopes) < 2 or not np.isfinite(slopes).all():
        return False
    first, *others = np.linalg.svd(slopes, compute_uv=False) ** 2
    return bool(sum(others) <= _ASKEW * first)


def _changes(values: Array) -> Array:
    """How much F changes within each probe; minus infinity where nothing is known."""
    known = np.isfinite(values)
    with np.errstate(over="ignore"):
        change: Array = np.where(known, values, -inf).max(axis=1) - np.where(known, values, inf).min(axis=1)
    return change


def _unchanged(values: Array) -> bool:
    """Whether F does not change at all within any probe."""
    return bool((_changes(values) <= 0.0).all())


def _still(s: AutoState) -> bool:
    """Whether F does not change at all over the distance of now, which is none that rounding of x could hide."""
    several = (np.isfinite(s.values).sum(axis=1) >= 2).all()  # else calls have failed
    return bool(s.step * s.mu >= _hidden(s) and several) and _unchanged(s.values)


def _hidden(s: AutoState) -> float:
    """The distance that rounding of x may hide."""
    return _SINGLE * max(1.0, float(np.abs(s.run.x0).max()))


def _looked_closer(s: AutoState) -> AutoState:
    """Samples that have changed are asked over a short distance: those before may have been flat by chance."""
    step = step_length(s.eps)
    mu = _CLEAR * _hidden(s) / step
    values = np.full(s.values.shape, nan)
    return with_room(s._replace(still=False, mu=mu, R=mu, step=step, values=values, step_calls=0))


def _least_change(values: Array) -> float:
    """The least change between two values of a probe that is one: about the size of a step."""
    known = np.where(np.isfinite(values), values, nan)
    apart = np.abs(np.diff(np.sort(known, axis=1), axis=1))
    return float(np.min(apart[apart > 0.0], initial=inf))


def _drowned(values: Array, change: Array, eps: float) -> bool:
    """Whether the changes of F within each probe are hardly more than rounding."""
    known = np.isfinite(values)
    size = np.abs(np.where(known, values, 0.0)).max(axis=1)
    return bool(known.any() and (change <= _RESOLVED * eps * size).all())


def _units_may_differ(s: AutoState) -> bool:
    """Whether slopes have so different sizes that variables may be measured in different units: not if they add up."""
    apart = s.run.domain.hull_dimension(len(s.x)) == len(s.order)
    return apart and s.kind == WALK and has(s.run, "units") and measurable(s) and spread_of_slopes(s) > _UNEVEN


def start_rounded(s: AutoState, noise: float) -> AutoState:
    """Begin anew, where every call has a little noise of its own, as if F were rounded to so much.

    Such are sums whose order is not fixed, on many threads or on a GPU. What was learned is of no use: the first
    differences are so short that they have seen the noise and nothing else.
    """
    fresh = s.run.method.algorithm.begin(s.run.method, s.run)  # type: ignore[union-attr]
    eps = max(s.eps, _IN_NOISE * noise)
    s = fresh._replace(
        asked=s.asked, samples=s.samples + len(s.values), nfev=s.nfev, eps=eps, mu=_LONGER * fresh.mu,
        R=_LONGER * fresh.R,
    )  # fmt: skip
    return with_room(s._replace(step=step_length(s.eps)))


def start_again(s: AutoState) -> AutoState:
    """Nothing was seen: more estimates at x_0, unless enough was spent on them; then POEM's first scale."""
    n = len(s.values)
    step = _STRIDE if s.still else step_length(s.eps)
    s = s._replace(samples=s.samples + n, values=np.full((n, 1 + s.q), nan), step_calls=0, step=step)
    if s.nfev > _GIVE_UP_START * s.run.budget:
        return at_first_scale(s)
    return with_room(s._replace(stage=START))  # mu may have grown


def at_first_scale(s: AutoState) -> AutoState:
    """Steps begin with POEM's first scale, which has yet to prove itself."""
    R = s.run.initial_distance
    return next_step(at_scale(s._replace(R=R, dual=bounds_matter(s.run, R), settled=False)))
