"""Pairs far apart: the first scale.

REPEAT  x_0 several times, some on one xi where these are shared: the noise of each value, and whether samples differ by
        more than that;
LOOK    pairs at x_0, further and further out, until noise is overcome, and on while F is straight;
MEASURE more pairs there: R is where the curvature along a direction makes up for the slope.

Where samples differ by more than noise, each is compared with itself: x_0 is asked on the same xi.
"""

from __future__ import annotations

from math import frexp, inf, isfinite, sqrt

import numpy as np

from poem_cma._types import Array
from poem_cma.auto.apart_state import HUGE, LOOK, MEASURE, STEP, ApartState
from poem_cma.auto.plausible import ABSURD
from poem_cma.auto.radius import FIRST_RADIUS, tested_at
from poem_cma.auto.scale import bounds_matter
from poem_cma.auto.worse import first_check

__all__ = ["after_looks", "after_repeats", "looked_along", "on_one", "places", "repeats", "with_room"]

_REPEATS, _ON_ONE = 24, 4  # at x_0, on one xi where these are shared
_CALLS_A_REPEAT, _FEWEST_REPEATS, _SHORT = 100, 8, 10  # fewer in shorter runs, but so many, or one call in ten
_OWN = 0.7  # of the noise, at most, is each value's own where samples are compared with themselves
_BEFORE = 0.35  # of the largest difference seen before, at least: of eight that are normal it is 0.35 times on average
_LOOK = 2  # pairs
_MEASURE, _MOST_MEASURE, _CALLS_A_PAIR = 6, 14, 200  # pairs: more, but no more than so many, in long runs
_SEEN, _CONFIRMED = 4.0, 1.2  # standard deviations of the noise
_STEPS, _MOST_STEPS = 24.0, 300.0  # of F that a change must be worth, and times the distance over which one was seen
_UNSEEN, _FURTHER, _FURTHEST = 10.0, sqrt(10.0), 1e18
_GROWS = 1.5, 5.0  # from one distance to the next, a slope's change of F grows by about sqrt(10)
_KINK = 0.7  # of the odd part of a sample's change: a larger even part is that of a kink, and grows like a slope, too
_START_SHARE = 0.25  # of the budget


def repeats(s: ApartState) -> int:
    """How many values are asked at x_0."""
    budget = s.run.budget
    fewest = max(min(_FEWEST_REPEATS, budget // _SHORT), 2) if s.own else 2
    return int(min(max(budget // _CALLS_A_REPEAT, fewest), _REPEATS))


def on_one(s: ApartState) -> int:
    """How many of these on one xi."""
    return _ON_ONE if s.run.paired and s.own else 1


def looked_along(s: ApartState) -> int:
    """Along how many directions x_0 is asked: more where R, and with it the growth of h, will follow from them."""
    pairs = _LOOK if s.stage == LOOK else min(max(s.run.budget / _CALLS_A_PAIR, _MEASURE), _MOST_MEASURE)
    return int(min(pairs, s.run.domain.hull_dimension(len(s.x))))


def places(s: ApartState) -> int:
    """On how many points a direction is asked: two, and x itself where samples are compared with themselves."""
    return 3 if s.within and s.stage in (LOOK, MEASURE) else 2


def after_repeats(s: ApartState, values: list[float]) -> ApartState:
    """The noise at x_0."""
    F = [f for f in values if isfinite(f)]
    if len(F) < 2:
        return s  # ask again
    value = sum(f / len(F) for f in F)
    rounding = 1e4 * float(np.finfo(float).eps) * abs(value)
    change = max(abs(f - value) for f in F)
    before = s.noise if s.noise < ABSURD * max(change, abs(value)) else 0.0  # else it was a mishap
    unit = _unit(max(s.grain, before, change) or rounding)
    noise = sqrt(sum(((f - value) / unit) ** 2 for f in F) / (len(F) - 1))
    own = _own_noise(np.array(values) / unit, on_one(s)) if on_one(s) > 1 else noise
    within, least = own < _OWN * noise, max(rounding, s.grain, _BEFORE * before) / unit
    noise = max(own if within else noise, least)
    return with_room(s._replace(stage=LOOK, value=value, unit=unit, noise=noise, within=within))


def _own_noise(F: Array, together: int) -> float:
    """The noise of values so many of which, one after the other, are on one xi."""
    each = [F[i : i + together] for i in range(0, len(F), together)]
    known = [own for F in each if len(own := F[np.isfinite(F)]) > 1]
    squares = sum(float(((own - own.mean()) ** 2).sum()) for own in known)
    return sqrt(squares / max(sum(len(own) - 1 for own in known), 1))


def _unit(change: float) -> float:
    """What changes of F are measured in: a power of two, which costs no bit."""
    return 2.0 ** min(max(frexp(change)[1], -1022), 1023) if change > 0.0 else 1.0


def after_looks(s: ApartState, F: Array) -> ApartState:
    """Further out until a slope is seen, and on while it is one; then R, from the slope and the curvature there."""
    if s.noise == 0.0 and s.slope == 0.0:  # F is zero at x_0, whatever xi is: the first change says what size it has
        s = s._replace(unit=_unit(float(np.abs(F - s.value).max())))
    with np.errstate(over="ignore", invalid="ignore"):
        F = (F - (F[:, 2:] if s.within else s.value)) / s.unit
        halves = np.stack((0.5 * (F[:, 0] - F[:, 1]), 0.5 * (F[:, 0] + F[:, 1])), axis=1)  # odd: slope; even: curvature
    halves = halves[(np.abs(halves) < HUGE).all(axis=1)]
    return _looked(s, halves) if s.stage == LOOK else _measured(s, halves)


def _looked(s: ApartState, halves: Array) -> ApartState:
    """On, while changes drown in noise, or F is straight."""
    if not len(halves):
        return s._replace(stage=MEASURE, mu=s.mu / _FURTHER)  # calls fail out here
    if s.grain > 0.0:  # with a shared xi slopes are seen as soon as they are more than steps; no need to go further
        seen = bool((np.abs(halves[:, 0]) > _STEPS * s.grain / s.unit).any())
        enough = seen or _enough(s) or s.mu >= _MOST_STEPS * s.R
        return s._replace(stage=MEASURE, changes=halves) if enough else with_room(s._replace(mu=_FURTHER * s.mu))
    seen = bool((np.abs(halves) > _SEEN * _noises(s)).any())
    odd, even = _odd(halves, 0.0), float(halves[:, 1].mean())
    growth = odd / s.slope if s.slope > 0.0 else _FURTHER
    if growth > _GROWS[1]:
        return s._replace(stage=MEASURE, mu=s.mu / _FURTHER)  # F explodes out here
    kinked = s.run.paired and s.run.sampled and even > _KINK * odd
    straight = _makes_up(s, odd, even) > 1.0 and growth > _GROWS[0] and not kinked
    further = with_room(s._replace(mu=s.mu * (_FURTHER if seen else _UNSEEN), slope=odd if seen else 0.0))
    if (straight or not seen) and further.mu > s.mu and not _enough(s):
        return further
    return s._replace(stage=MEASURE, changes=halves)


def _measured(s: ApartState, halves: Array) -> ApartState:
    """R; or on, if it was an outlier, and no slope, that was seen: half of the pairs must confirm it."""
    noises = _noises(s)
    seen = len(halves) > 0 and bool((np.median(np.abs(halves), axis=0) > _CONFIRMED * noises).any())
    if not seen and not _enough(s):
        return with_room(s._replace(stage=LOOK, mu=s.mu * _UNSEEN, slope=0.0))
    halves = np.concatenate((s.changes, halves))
    if not len(halves):
        return s  # every call has failed: ask again
    odd, even = _odd(halves, float(noises[0])), float(halves[:, 1].mean())
    curved = even > 2.0 * float(noises[1]) / sqrt(len(halves))
    R = s.mu * min(max(_makes_up(s, odd, even), 0.01), 1.0) if curved else s.mu
    if not seen:
        R = s.run.initial_distance
    slope = sqrt(s.run.domain.hull_dimension(len(s.x))) * odd / s.mu
    return with_room(s._replace(
        stage=STEP, R=R, dual=bounds_matter(s.run, R), slope=slope, mu=FIRST_RADIUS * R, most=FIRST_RADIUS * R,
        changes=halves[:0], check_at=first_check(s),
    ))  # fmt: skip


def _makes_up(s: ApartState, odd: float, even: float) -> float:
    """Where the curvature along a direction would make up for the slope, in h; infinite where there is none."""
    n = s.run.domain.hull_dimension(len(s.x))
    return sqrt(n) * odd / (2.0 * even) if even > 0.0 else inf


def _enough(s: ApartState) -> bool:
    """Whether no more calls are spent on the first scale."""
    return s.nfev > _START_SHARE * s.run.budget or s.mu >= min(s.run.domain.diameter, _FURTHEST)


def _noises(s: ApartState) -> Array:
    """sqrt(2) times the noise of odd and of even parts: points that share a xi differ by no more than steps."""
    return np.array([s.grain / s.unit if s.grain > 0.0 else s.noise, sqrt(3.0) * s.noise if s.within else s.noise])


def _odd(halves: Array, noise: float) -> float:
    """The root mean square of the odd parts, without what noise adds to it."""
    return sqrt(max(float((halves[:, 0] ** 2).mean()) - 0.5 * noise**2, (0.25 * noise) ** 2))


def with_room(s: ApartState) -> ApartState:
    """The centre of the probes: x, or the nearest point from which they stay in the domain."""
    domain = s.run.domain
    if not domain.inside:
        return s._replace(centre=s.x)
    reach = max(1.0, tested_at(s)) if s.stage == STEP else 1.0  # of the points that lie furthest out
    mu = min(s.mu, 0.5 * domain.fits(1.0) / reach)
    return s._replace(mu=mu, centre=domain.shrunk(reach * mu).nearest(s.x))
