"""Slopes along many axes by a walk that is halved wherever its ends differ.

The walk begins at a random point near x, so that the slopes are those of F smoothed over a small ball, and takes a
short step along each of q axes, one after the other. A stretch whose ends have the same value is taken for flat; any
other is halved. A sample that depends on few variables costs a few evaluations, a flat one two, none more than q + 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Any

import numpy as np

from poem_cma._types import Array, IntArray
from poem_cma.auto.near.state import Near, Walk
from poem_cma.auto.request import Draws, Request, in_ball, room
from poem_cma.run.algorithm import Run

__all__ = ["axes_of", "length", "places", "radius", "request", "slopes"]

#: The length of a walk, in units of the radius of the ball: short beside it, long beside rounding.
LENGTH, LENGTH_SINGLE = 0.01, 0.3
#: Values that differ by less than this part of themselves are equal: rounding.
EQUAL, EQUAL_SINGLE = 2.0**-44, 2.0**-20
#: Full walks are taken if so many of them are affordable; a first one if it costs this share of the budget at most.
WALKS, TRIAL = 64, 1 / 8
#: Otherwise, and where gradients lie in few dimensions, a walk takes so many axes.
FEWEST = 4
#: A full walk may cost so many times what the same knowledge costs by short ones: its sample can be evaluated again.
REUSE = 6.0
#: So many gradients tell in how many dimensions they lie.
KNOWN, MOST_KNOWN = 4, 16


def axes_of(near: Near, run: Run) -> int:
    """How many axes the next walk takes: all of them, or a few.

    The first walk takes all axes, if that costs a small share of the budget, to see what a full walk costs. If
    gradients lie in D dimensions, a walk along q random axes has 1 + (D + 1) / q times the variance of a full one.
    """
    d = len(near.x)
    q, (calls, walks) = min(FEWEST, d), near.cost
    if not walks:
        return d if d + 1 <= TRIAL * run.budget else q
    full = calls / walks
    if full * WALKS > run.budget:
        return q
    few = (q + 1) * (1.0 + (dimension(near) + 1.0) / q)
    return d if len(near.memory.numbers) < KNOWN or full <= REUSE * few else q


def dimension(near: Near) -> float:
    """The effective dimension of the gradients: one over the mean squared cosine of two of them."""
    U = np.array(near.memory.directions[:MOST_KNOWN])
    if len(U) < 2:
        return float(len(near.x))
    cosines = (U @ U.T)[np.triu_indices(len(U), 1)]
    return float(min(1.0 / max(np.mean(cosines**2), 1e-30), len(near.x)))


def radius(near: Near, axes: int) -> float:
    """mu_t = R sqrt(d / (q (t + 1))): the radius of the ball."""
    return near.R * sqrt(len(near.x) / axes / (near.t + 1.0))


def places(walk: Walk, near: Near) -> list[int]:
    """The places of the walk whose values are needed next; none when all slopes are known."""
    q = walk.axes
    if np.isnan(walk.known[[0, q]]).any():
        return [k for k in (0, q) if np.isnan(walk.known[k])]
    known = np.flatnonzero(~np.isnan(walk.known))
    F = walk.known[known]
    differ = ~_equal(F[:-1], F[1:], near)
    return [int(a + b) // 2 for a, b in zip(known[:-1][differ], known[1:][differ], strict=True) if b - a > 1]


def request(near: Near, run: Run, draws: Draws) -> Request:
    """The points of the places that are needed."""
    walk = near.walk
    base, axes, steps = _path(near, run, draws)
    wanted = places(walk, near)

    def points() -> Iterator[Array]:
        for k in wanted:
            move = np.zeros(len(near.x))
            move[axes[:k]] = steps[:k]
            yield run.domain.project((base + run.domain.tangent(move)).astype(run.x0.dtype, copy=False))

    return Request(points, len(wanted), -1 - walk.sample)


def slopes(near: Near, run: Run, draws: Draws) -> Array:
    """The slopes along all axes; zero along those that the walk has not taken or found flat."""
    walk = near.walk
    _, axes, steps = _path(near, run, draws)
    known = np.flatnonzero(~np.isnan(walk.known))
    F = walk.known[known]
    g = np.zeros(len(near.x))
    single = np.diff(known) == 1
    with np.errstate(invalid="ignore"):
        changes = np.where(_equal(F[:-1], F[1:], near), 0.0, F[1:] - F[:-1])
    first = known[:-1][single]
    g[axes[first]] = np.where(np.isfinite(changes[single]), changes[single], 0.0) / steps[first]
    return g


def length(x: Array) -> float:
    """The length of a walk in units of the radius."""
    return LENGTH_SINGLE if x.dtype == np.float32 else LENGTH


def _path(near: Near, run: Run, draws: Draws) -> tuple[Array, IntArray, Array]:
    """Where the walk begins, the axes it takes, active ones first, and its steps along them."""
    d, q = len(near.x), near.walk.axes
    rng = draws.rng(near.walk.address)
    mu = radius(near, q)
    base, reach = room(near.x + mu * in_ball(rng, run), 1.5 * length(run.x0) * mu, run)
    step = reach / (1.5 * sqrt(d))
    chosen = rng.permutation(d)[:q]
    axes = chosen[np.argsort(-near.active[chosen], kind="stable")]
    steps = step * rng.choice((-1.0, 1.0), q) * (0.5 + rng.random(q))  # equal steps could cancel
    return base, axes, steps


def _equal(a: Array, b: Array, near: Near) -> Any:
    single = near.x0.dtype == np.float32
    with np.errstate(invalid="ignore"):
        size = np.maximum(np.abs(a), np.abs(b))
        equal: Any = (np.abs(a - b) <= (EQUAL_SINGLE if single else EQUAL) * size + near.noise) | (a == b)
    return equal
