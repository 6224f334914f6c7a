"""One step: put the estimates together, move, and get ready for the next."""

from __future__ import annotations

from math import isfinite, nan, sqrt

import numpy as np

from poem_cma._types import Array
from poem_cma.auto.choose import DIRECTIONS, WALK, learn, next_estimator
from poem_cma.auto.compare import CANDIDATES, checks, picks
from poem_cma.auto.estimators import Staircase
from poem_cma.auto.scale import rescaled
from poem_cma.auto.state import CHECK, DECAYS, STEP, AutoState, empty
from poem_cma.auto.walks import Walks, estimate
from poem_cma.core import smoothed_value

__all__ = ["after_step", "next_step", "smoothed", "with_room"]

_CHECK_AT = 0.2  # of the budget
_REACH = 1.2  # probes stray no further from the centre than this many smoothing radii


def after_step(s: AutoState, walks: Walks) -> AutoState:
    """Put the estimates of the step together, add them to the dual average, and go on."""
    total, count = empty(len(s.x)), 0
    for j in range(len(s.values)):
        unit = s.unit
        s, g, slopes = estimate(s, walks, j)
        if unit > 0.0:
            total = total * (unit / s.unit)
        if g is None:
            continue
        total, count = total + g, count + 1
        s = _noted(s, walks, j, g, slopes)
    if count == 0:
        return next_step(s)  # every estimate failed: the step is skipped
    g = total / count
    value, spread = smoothed(s)
    w = _weight(s)
    weighted = w * g
    s = s._replace(
        t=s.t + 1, s=s.s + weighted, G=s.G + weighted**2, weight=s.weight + w, path_weight=s.path_weight + w,
        radial=s.radial + float(weighted @ (s.x - s.run.x0)), g_norm=sqrt(g @ g), value=value, value_spread=spread,
    )  # fmt: skip
    s = _moved(s)
    shares = 1.0 - (1.0 - w / s.path_weight) ** (np.array(DECAYS) + 1.0)
    s = s._replace(averages=s.averages + shares[:, None] * (s.x - s.averages))
    if s.weight >= s.rescale_at:
        s = rescaled(s)
    s = next_step(s)
    if not s.settled and s.nfev > _CHECK_AT * s.run.budget and checks(s.run):
        s = s._replace(stage=CHECK, settled=True)
    return s


def _weight(s: AutoState) -> float:
    """How much the step's gradient counts: by the share of the dimensions that it has seen.

    A full walk among steps along random directions counts less, as the geometric mean of both: it has seen every
    dimension, but only one sample, and where gradients are of low rank it is the samples that count.
    """
    if s.trial:
        return sqrt(DIRECTIONS / len(s.order))
    return 1.0 if s.kind != WALK and s.use_subspace else s.q / len(s.order)


def _noted(s: AutoState, walks: Walks, j: int, g: Array, slopes: Array) -> AutoState:
    """What a walk says of the axes and of the estimators."""
    estimator = walks(s, j)
    seen = slopes != 0.0
    if isinstance(estimator, Staircase) and seen.any():
        axes = estimator.axes
        squares, tested, active = s.squares.copy(), s.tested.copy(), s.active.copy()
        squares[axes] += slopes**2
        tested[axes] += 1.0
        active[axes] += seen
        s = s._replace(squares=squares, tested=tested, active=active)
    return learn(s, g, bool(seen.any()), s.step_calls // len(s.values))


def smoothed(s: AutoState) -> tuple[float, float]:
    """As in the core, from the first value of each xi."""
    F = [v for v in s.values[:, 0].tolist() if isfinite(v)]
    return smoothed_value(s.value, s.value_spread, s.t, F)


def next_step(s: AutoState) -> AutoState:
    """Move to where the dual average points, and get ready for an estimate there."""
    count = s.run.batch
    s = _moved(s)
    s = s._replace(
        stage=STEP, samples=s.samples + len(s.values), step_calls=0,
        mu=max(0.5 * s.R / sqrt(s.t + 1.0), 1e-9 * float(np.abs(s.x).max()), 1e-30),
        rescale_at=s.rescale_at or 1.15 * s.weight,
    )  # fmt: skip
    s = next_estimator(s, max(2.0, (s.run.budget - picks(s.run) * CANDIDATES - s.nfev) / count))
    k = len(s.subspace) if s.use_subspace else 0
    n = s.run.domain.hull_dimension(len(s.x))
    size = 1 + (s.q if s.kind == WALK else min(s.q, n - k) + k)
    return with_room(s._replace(values=np.full((count, size), nan)))


def _moved(s: AutoState) -> AutoState:
    """x = argmin <s, x> + sqrt(Gamma) / (2R) |x - x_0|^2_D, a projection in the metric."""
    Gamma = float((s.G / s.metric).sum())
    if Gamma == 0.0:
        return s
    eta = s.R / sqrt(Gamma)
    target = s.run.x0 - eta * s.s / s.metric
    even = (s.metric == s.metric[0]).all()
    x = s.run.domain.project(target) if even else s.run.domain.project(target, s.metric)
    away = x - s.run.x0
    return s._replace(x=x, r=sqrt(away @ away), eta=eta)


def with_room(s: AutoState) -> AutoState:
    """The centre of the probes: x, or the nearest point from which they stay in the domain."""
    domain = s.run.domain
    if not domain.inside:
        return s._replace(centre=s.x)
    reach = _REACH / np.sqrt(s.metric)
    mu = min(s.mu, 0.5 * domain.fits(reach))
    return s._replace(mu=mu, centre=domain.shrunk(mu * reach).nearest(s.x))
