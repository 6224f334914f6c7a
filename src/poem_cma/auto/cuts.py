"""Without noise, where F has kinks: steps to the minimum of the planes that were seen to lie below F.

Next to a kink one gradient says little, but several say where it runs: with the planes F(y_j) + <g_j, z - y_j> of the
points y_j that were asked, and e_j >= 0 by how much the j-th lies below F at x, the next point is

    z = argmin  max_j <g_j, z - x> - e_j  +  |z - x|_D^2 / (2 t)      over the domain,

a proximal bundle method (Kiwiel 1990), by its dual, which is small (`lightest`). D is diagonal, the mean squares of the
slopes seen along each axis, so that units do not matter. The domain is met by walls: half-spaces, found by projecting
points outside of it. If F falls at z as it should, x moves there. F has a new plane in any case, that of a point y a
little beside z: z itself may lie on a kink, where differences are no slopes.
"""

from __future__ import annotations

from math import inf, isfinite, nan

import numpy as np

from poem_cma._types import Array
from poem_cma.arithmetic import distance, equal, length
from poem_cma.auto.exact_state import ExactState
from poem_cma.auto.lightest import lightest
from poem_cma.auto.pick import without_end
from poem_cma.auto.slopes import believable, from_point

__all__ = [
    "added",
    "aimed",
    "asks_again",
    "begun",
    "cut_points",
    "entered",
    "knows_beside",
    "left",
    "moved",
    "places",
    "told",
]

_SHORT, _LEAST = 1e-6, 300.0  # of the step; but rounding errors, of F,
_RESOLVED, _ALIKE = 1e-13, 1e-6  # and of x_i, and of that of the largest
_BESIDE, _CLEAR = (3e-3, 1e-2), (30.0, 60.0)  # of the step; but so many differences
_FALLS, _WELL, _OFF = 0.1, 0.5, 2.0  # of the decrease that the planes promise
_LONGER, _SHORTER, _FAILED = 2.0, 0.6, 0.2
_FIRST = 0.1  # of the fall along the first ray: what a step from a kink should promise
_KEPT, _MOST = 2, 3  # planes, for every axis
_ROUNDS = 20  # walls, at most, for one step
_OUTSIDE = 1e-9  # of the step: no wall is needed


def begun(s: ExactState, before: Array) -> ExactState:
    """From the gradient at x, and that of the step before, by which F has fallen."""
    s = _with_squares(s, before)._replace(planes=s.g[None], below=np.zeros(1))
    least = s.eps * s.size / s.unit
    return s._replace(trust=max(-s.slope * s.found, least) / (float(s.g**2 @ _variances(s)) or 1.0))


def begun_on_kink(s: ExactState) -> ExactState:
    """From x itself: the first plane is one from beside it."""
    s = _with_squares(s, s.g)
    nowhere = np.zeros_like(s.x)
    s = s._replace(p=nowhere, slope=0.0, weights=nowhere[:0], trust=_FIRST * s.fall / len(s.axes))
    return _with_places(s, _variances(s))


def _with_squares(s: ExactState, before: Array) -> ExactState:
    seen = np.array([s.g, before, s.fall / s.reach])
    return s._replace(squares=(seen**2).sum(axis=0), seen=len(seen))


def _variances(s: ExactState) -> Array:
    """D^-1."""
    mean = s.squares / s.seen
    flat = mean == 0.0
    return np.where(flat, 1.0, 1.0 / np.where(flat, 1.0, mean))


def aimed(s: ExactState) -> ExactState:
    """With the way p to the minimum of the planes, and what it promises as `slope`; zero where there is none."""
    variances = _variances(s)
    root = np.sqrt(s.trust * variances)
    for _ in range(_ROUNDS):
        weights, pressed = lightest(s.planes * root, s.below, s.walls * root, s.slack)
        free = s.x - s.trust * variances * (weights @ s.planes + pressed @ s.walls)
        z = s.run.domain.project(free)
        out = free - z
        if not float(np.abs(out).max()) > _OUTSIDE * float(np.abs(free - s.x).max()):
            break
        slack = max(float(out @ (z - s.x)), 0.0)
        s = s._replace(walls=np.vstack((s.walls, out)), slack=np.append(s.slack, slack))
    else:
        pressed = np.append(pressed, 1.0)
    p, used = z - s.x, pressed > 0.0
    s = s._replace(
        p=p, weights=weights, slope=float((s.planes @ p - s.below).max()), walls=s.walls[used], slack=s.slack[used]
    )
    return _with_places(s, variances)


def asks_again(s: ExactState) -> bool:
    """Whether x is asked as well, once in every turn, for noise may show later."""
    return s.turn == 1


def places(s: ExactState) -> int:
    """At how many points F is asked."""
    return len(s.axes) + 2 + asks_again(s)


def cut_points(s: ExactState) -> list[Array]:
    """z, a point y beside it, and steps from there along every axis."""
    points = [s.run.domain.project(s.x + s.p), *from_point(s.y, s.axes, s.h)]
    return [s.x, *points] if asks_again(s) else points


def _with_places(s: ExactState, variances: Array) -> ExactState:
    """With y, and h along the axes: short, for no kink must come between, but not so short that rounding spoils slopes.

    y is not as far from z along one axis as along another, lest it comes to lie on the next kink.
    """
    z, axes, root = s.x + s.p, s.axes, np.sqrt(variances)
    step = float(np.sqrt(np.mean(s.p[axes] ** 2 / variances[axes])))
    sizes = np.abs(z)
    h = root * max(_SHORT * step, _LEAST * s.eps * s.size / s.unit)
    h = np.maximum(h, _RESOLVED * np.maximum(sizes, max(_ALIKE * float(sizes.max()), float(s.reach.min()))))
    h = ((z + h) - z)[axes]  # as they are after rounding
    rng = np.random.default_rng(s.seen)
    far = rng.uniform(*_BESIDE, len(axes)) * step * root[axes]
    least = rng.uniform(*_CLEAR, len(axes)) * h
    z[axes] += rng.choice([-1.0, 1.0], len(axes)) * np.maximum(far, least)
    return s._replace(y=z, h=h)


def told(s: ExactState, F: Array) -> ExactState:
    """After F was asked at `cut_points`: x, if it is better to move, and one more plane."""
    y, h, promised = s.y, s.h, -s.slope
    with np.errstate(over="ignore", invalid="ignore"):
        fall, rise = (s.value - F[0]) / s.unit, (F[1] - s.value) / s.unit
        changes = (F[2:] - F[1]) / s.unit
    if not (believable(s, np.array([fall, rise])).all() and believable(s, changes).all()):
        return s._replace(trust=_FAILED * s.trust, seen=s.seen + 1)
    slopes = changes / h
    g = np.zeros_like(s.x)
    g[s.axes] = slopes
    below = float(g @ (y - s.x)) - rise
    rate = float(g @ s.p)
    s = s._replace(mu=float(h.max()), g_norm=float(length(g)))
    if fall >= _FALLS * promised:
        longer = rate < 0.0 and (fall >= _WELL * promised or rate < -_WELL * promised)
        s = moved(s, s.run.domain.project(s.x + s.p), float(F[0]))
        inside = equal(s.run.domain.project(y), y)
        s = s._replace(beside=y if inside else s.x, beside_value=float(F[1 if inside else 0]), beside_g=g)
        return added(s, g, below - fall - rate)._replace(t=s.t + 1, trust=s.trust * (_LONGER if longer else 1.0))
    shorter = fall < 0.0 and below > _OFF * promised
    return added(s, g, below)._replace(trust=s.trust * (_SHORTER if shorter else 1.0))


def left(s: ExactState) -> ExactState:
    """For the quadratic model, which needs a gradient: beside x, where there is no kink."""
    s = s._replace(held=s.x, held_value=s.value, turn_value=s.beside_value)
    return moved(s, s.beside, s.beside_value)._replace(g=s.beside_g, s=np.zeros_like(s.x))


def knows_beside(s: ExactState) -> bool:
    """Whether there is a gradient from beside x."""
    return isfinite(s.beside_value)


def entered(s: ExactState) -> ExactState:
    """At the better point."""
    s = moved(s, s.held, s.held_value) if s.held_value < s.value else s
    return s._replace(held_value=inf)


def moved(s: ExactState, x: Array, value: float) -> ExactState:
    """At another point, from where planes and walls are as far as they are; where F is not convex, some are above."""
    step, rise = x - s.x, (value - s.value) / s.unit
    below = np.abs(s.below + rise - s.planes @ step)
    return s._replace(
        run=s.run._replace(remark=without_end(s.run, x)), x=x, value=value, r=distance(x, s.run.x0), below=below,
        beside_value=nan, slack=np.maximum(s.slack - s.walls @ step, 0.0),
    )  # fmt: skip


def added(s: ExactState, g: Array, below: float) -> ExactState:
    """With one more plane; of too many, those that had a say, and those that are nearest, are kept."""
    planes, belows = np.vstack((s.planes, g)), np.append(s.below, abs(below))
    if len(planes) > _MOST * len(s.axes) + 10:
        chosen = belows <= np.partition(belows, _KEPT * len(s.axes))[_KEPT * len(s.axes)]
        chosen[: len(s.weights)] |= s.weights > 0.0
        chosen[-1] = True
        planes, belows = planes[chosen], belows[chosen]
    return s._replace(planes=planes, below=belows, squares=s.squares + g**2, seen=s.seen + 1)
