"""One step: put the estimates together, move, and get ready for the next."""

from __future__ import annotations

from math import inf, isfinite, sqrt
from typing import Any

import numpy as np

from poem_cma._types import Array
from poem_cma.arithmetic import MANY, ONE, Kit, distance, inner, largest, length, plus, quotient, root, summed
from poem_cma.auto.choose import alphabet_of, compared, learn, next_estimator, too_dear, with_digits
from poem_cma.auto.compare import checks, hand_over
from poem_cma.auto.digits import Digits, calls_of
from poem_cma.auto.directions import SELDOM, directions_a_step
from poem_cma.auto.estimators import step_length
from poem_cma.auto.pick import pick_calls
from poem_cma.auto.race import other_turn
from poem_cma.auto.remarks import NO_CHANGE, NO_PROGRESS
from poem_cma.auto.replay import remember
from poem_cma.auto.scale import EVERY, in_subspace, rescaled
from poem_cma.auto.staircase import Staircase
from poem_cma.auto.state import CHECK, HAAR, RACE, REPLAY, STEP, WALK, AutoState, has, is_even, unknown
from poem_cma.auto.subspace import agreement, still_inside, watching
from poem_cma.auto.walks import Walks, estimate, with_penalty
from poem_cma.core import smoothed as running
from poem_cma.core import smoothed_value

__all__ = [
    "MOST_GROWTH", "after_step", "at_scale", "next_step", "noted", "onward", "ready", "smoothed", "spent", "stepped",
    "weight", "with_room",
]  # fmt: skip

_CHECK_AT = 0.2  # of the budget
_LAST_PART = 0.5  # of the budget, in which steps in a subspace become shorter and shorter
_REACH = 1.2  # probes stray no further from the centre than this many smoothing radii
MOST_GROWTH = 1.1  # of the weight, from step to step: a change of the estimator must not overturn the run
_LEAST = 1e-9  # of the largest coordinate, for mu
_RESOLVED = 300.0  # rounding errors that a difference must be worth


def after_step(s: AutoState, asked: AutoState, walks: Walks) -> AutoState:
    """Put the estimates of a step together, and move: s is where the run has come to, `asked` where the step began."""
    if asked.trial and too_dear(asked, sum(walks.sizes)):
        walks.forget()
        return s._replace(trial_calls=s.trial_calls + s.step_calls, costs=np.ones(1))
    total, count = None, 0
    for j in range(len(s.values)):
        unit, estimator = s.unit, walks(asked, j)
        s, g, slopes = estimate(s, estimator, j)
        if total is not None and 0.0 < unit != s.unit:
            total = total * (unit / s.unit)
        if g is None:
            continue
        inside = s.use_subspace
        s = noted(s, estimator, j, g, slopes)
        left = inside and not s.use_subspace and s.kind == HAAR  # what it saw beside is why, and counts for too much
        if not left and (s.kind != REPLAY or s.ridges):
            if s.penalised:
                unit = s.unit
                s, g = with_penalty(s, estimator, g)
                total = total * (unit / s.unit) if total is not None and unit != s.unit else total
            total, count = g if total is None else total + g, count + 1
    walks.forget()
    del estimator  # and its directions, which may be most of the memory
    if s.kind == REPLAY:
        s = s._replace(replayed=s.replayed + len(s.values))
    if total is None:
        return s  # every estimate failed: the step is skipped
    g = total / count if count > 1 else total
    w = min(weight(asked), MOST_GROWTH * s.last_weight) if s.t > 0 else weight(asked)
    if s.run.ahead and not s.dual:
        s = _behind(s, asked, g, w)
    s = stepped(s, g, w, *smoothed(s), asked.x)
    del g, total  # they may be large
    return at_scale(rescaled(s)) if s.weight >= s.rescale_at else s


def _behind(s: AutoState, asked: AutoState, g: Array, w: float) -> AutoState:
    """What a gradient that comes late adds to Gamma (McMahan and Streeter 2014).

    Where gradients that were on their way at the same time agree, steps were longer than they should have been; where
    they are mostly noise, nothing was lost. Gradients of one time count like one: |a + b|^2 = |a|^2 + |b|^2 + 2 <a, b>.
    Dual averaging has no need of it: its x follows from all gradients, not from one after the other.
    """
    since = s.s - (asked.unit / s.unit if s.unit > 0.0 else 1.0) * asked.s
    return s._replace(late=s.late + 2.0 * w * float(inner(g / s.metric, since)))


def onward(s: AutoState) -> Any:
    """What comes after a step, and nothing else is in flight; a run that has not moved at all goes on as POEM."""
    s = next_step(s)
    if not s.settled and spent(s):
        if np.array_equal(s.average, s.run.x0) and has(s.run, "check"):  # no need to compare
            return hand_over(s, NO_CHANGE if s.flat else NO_PROGRESS)
        if checks(s.run):
            s = s._replace(stage=CHECK, settled=True)
    if s.nfev < s.check_at:
        return s
    if s.lap % 2:
        return next_step(other_turn(s))
    return s._replace(stage=RACE if s.lap else CHECK)


def spent(s: AutoState) -> bool:
    """Whether so many calls are spent that something should have come of them."""
    return s.nfev > _CHECK_AT * s.run.budget


# The formulas of a step, for one run and for many together, as in `arithmetic`


def stepped(s: AutoState, g: Array, w: Any, value: Any, spread: Any, x: Array) -> AutoState:
    """The state after a step against g, which was taken at x, weighs w and is used up."""
    g_norm = length(g)
    g *= w
    outward = inner(g, x - s.run.x0)
    square = outward * outward
    gradients, G = s.s + g, plus(s.G, g, g)
    x, r, eta = _moved(s, g, gradients, G)
    path_weight = s.path_weight + w if has(s.run, "averaging") else w  # of a path that is its last point only
    return s._replace(
        t=s.t + 1, x=x, r=r, eta=eta, s=gradients, G=G, weight=s.weight + w, path_weight=path_weight,
        last_weight=s.last_weight if s.trial and s.t > 0 else w, averages=_averages(s.averages, x, w / path_weight),
        radial=s.radial + outward, radial_squares=s.radial_squares + square, promised=s.promised + outward,
        promised_squares=s.promised_squares + square,
        g_norm=g_norm, value=value, value_spread=spread,
    )  # fmt: skip


def _averages(before: Array, x: Array, share: Any) -> Array:
    """The averages, with x, which has this share of all weights."""
    rest = 1.0 - share
    square = rest * rest
    fourth = square * square
    shares = 1.0 - square, 1.0 - fourth, 1.0 - fourth * fourth * rest  # to one more than the powers in DECAYS
    if x.ndim == 1:
        averages: Array = x - before
        averages *= np.array(shares, x.dtype)[:, None]
    else:
        averages = x[:, None] - before
        averages *= np.concatenate(shares, axis=1)[:, :, None]
    averages += before
    return averages


def weight(s: AutoState) -> float:
    """How much the step's gradient counts: by the share of the dimensions that it has seen.

    A full walk among steps along random directions counts less, as the geometric mean of both: it has seen every
    dimension, but only one sample, and where gradients are of low rank it is the samples that count.
    """
    if s.trial:
        return sqrt(directions_a_step(s.run) / len(s.order))
    return 1.0 if s.use_subspace and s.kind != WALK else s.q / len(s.order)


def noted(s: AutoState, estimator: Any, j: int, g: Array, slopes: Any) -> AutoState:
    """What an estimate says of the axes, of the estimators, and of its sample."""
    if s.kind == HAAR:  # random directions say nothing of axes
        if s.use_subspace:
            return still_inside(remember(s, j, g, slopes), slopes)
        if s.agreed < 0 or s.t % SELDOM or not watching(s):
            return s
        return _entered(s, agreement(s, estimator.directions, slopes))
    seen = np.asarray(slopes) != 0.0
    active = bool(seen.any())
    if active and isinstance(estimator, Staircase | Digits):
        axes = estimator.axes
        told = not isinstance(estimator, Digits) or estimator.told(s.values[j])
        s = compared(s, np.asarray(slopes), told) if len(axes) == len(s.order) else s
        squares, tested, active_on = s.squares.copy(), s.tested.copy(), s.active.copy()
        squares[axes] += slopes**2
        tested[axes] += 1.0
        active_on[axes] += seen
        s = s._replace(squares=squares, tested=tested, active=active_on)
    s = remember(s, j, g, slopes)
    return _entered(s, learn(s, g, active, s.step_calls // len(s.values)))


def _entered(before: AutoState, s: AutoState) -> AutoState:
    return in_subspace(s) if s.use_subspace and not before.use_subspace else s


def smoothed(s: AutoState) -> tuple[float, float]:
    """As in the core, from the first value of each xi."""
    F = s.values[:, 0].tolist()
    if len(F) == 1 and isfinite(F[0]):
        return running(s.value, s.value_spread, s.t, F[0])
    return smoothed_value(s.value, s.value_spread, s.t, list(filter(isfinite, F)))


def next_step(s: AutoState) -> AutoState:
    """Get ready for an estimate at x."""
    count, replays = s.run.batch, s.kind == REPLAY
    s = next_estimator(s, max(2.0, (s.run.budget - pick_calls(s.run) - s.nfev) / count))
    if s.kind == REPLAY and not replays:
        s = s._replace(before=s.average)
    k = len(s.subspace) if s.use_subspace else 0
    n = s.run.domain.hull_dimension(len(s.x))
    size = 1 + (min(s.q, n - k) + k if s.kind == HAAR else s.q)
    if s.kind == WALK and s.q == len(s.order) and with_digits(s):
        size += calls_of(s.q, alphabet_of(s)) - 1
    rescale_at = s.rescale_at or EVERY * s.weight
    return with_room(ready(
        s, len(s.values), stage=STEP, step_calls=0, most_calls=inf, rescale_at=rescale_at, values=unknown(count, size),
    ))  # fmt: skip


def ready(s: AutoState, samples: int, **changes: Any) -> AutoState:
    """Where the next estimate is taken, after one from so many samples, and what else changes."""
    step = step_length(s.eps)
    return s._replace(samples=s.samples + samples, step=step, mu=_smoothing(s, step), centre=s.x, **changes)


def _smoothing(s: AutoState, step: float) -> Any:
    """mu: a part of the scale that shrinks with the steps, but differences must not drown in rounding."""
    k = ONE if s.x.ndim == 1 else MANY
    slope = s.g_norm if k.all(s.g_norm > 0.0) else _steepness(s, k)
    slope = slope * (s.unit if k.all(s.unit > 0.0) else 1.0)
    resolved = quotient(_RESOLVED * s.eps * s.x.shape[-1] * abs(s.value), step * slope)
    mu = k.larger(k.larger(0.5 * s.R / k.root(s.t + 1.0), k.smaller(resolved, s.R)), 1e-30)
    return mu if k.all(mu > _LEAST * length(s.x)) else k.larger(mu, _LEAST * largest(s.x))


def _steepness(s: AutoState, k: Kit) -> Any:
    """Of F: that of the last gradient, or where it was zero the usual one, lest mu shrinks until all slopes are."""
    usual = quotient(root(summed(s.G) * k.larger(s.t, 1)), s.weight)
    return (s.g_norm > 0.0) * s.g_norm + (s.g_norm <= 0.0) * usual


def at_scale(s: AutoState) -> AutoState:
    """At a new scale: with dual averaging x follows from it."""
    if not s.dual:
        return s
    x, r, eta = _moved(s, s.s, s.s, s.G)
    return s._replace(x=x, r=r, eta=eta)


def _moved(s: AutoState, g: Array, gradients: Array, G: Array) -> tuple[Array, Any, Any]:
    """x = argmin <g, x> + sqrt(Gamma / 2) / R |x - x_t|^2_D, a projection in the metric: the step of least regret.

    With dual averaging the sum of all gradients takes the place of g, and x_0 that of x_t. Gamma is the sum of G in the
    metric, and what gradients that come late add to it. Where slopes are exact, in a subspace, x comes to rest in the
    last part of the run. Also |x - x_0| and the step size.
    """
    even = is_even(s.metric)
    D: Any = float(s.metric[0]) if even else s.metric
    Gamma = summed(G) / D if even else summed(G / D)
    if s.late > 0.0:
        Gamma = Gamma + s.late
    k = ONE if G.ndim == 1 else MANY
    if not k.all(Gamma > 0.0):
        return s.x, s.r, s.eta  # nothing was seen yet
    eta = s.R / k.root(2.0 * Gamma)
    if s.use_subspace and not s.dual:
        eta *= min(1.0, (1.0 - s.nfev / s.run.budget) / _LAST_PART)
    dual, start = s.dual, s.x
    if isinstance(dual, np.ndarray):  # of many runs together, some of which average
        g, start = np.where(dual, gradients, g), np.where(dual, s.run.x0, start)
    elif dual:
        g, start = gradients, s.run.x0
    target = (-eta / D) * g
    target += start
    x = s.run.domain.project(target) if even else s.run.domain.project(target, s.metric)
    return x, distance(x, s.run.x0), eta


def with_room(s: AutoState) -> AutoState:
    """The centre of the probes: x, or the nearest point from which they stay in the domain."""
    domain = s.run.domain
    if not domain.inside:
        return s if s.centre is s.x else s._replace(centre=s.x)
    reach = _REACH / np.sqrt(s.metric)
    mu = min(s.mu, 0.5 * domain.fits(reach))
    return s._replace(mu=mu, centre=domain.shrunk(mu * reach).nearest(s.x))
