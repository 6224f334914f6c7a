"""Slopes along many axes by a walk that is halved wherever its ends differ.

The walk begins at a random point near x, so that the slopes are those of F smoothed over a small ball, and takes a
short step along each of q axes, one after the other. A stretch whose ends have the same value is taken for flat; any
other is halved. A sample that depends on few variables costs a few evaluations, a flat one two, none more than q + 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from poem_cma._types import Array, IntArray
from poem_cma.auto.near.state import PASSES, Near, Walk
from poem_cma.auto.near.subspace import IN_A_ROW, rank
from poem_cma.auto.request import Draws, Request, in_ball, room, unit
from poem_cma.run.algorithm import Run

__all__ = ["axes_of", "length", "places", "radius", "request", "slopes", "whole"]

#: Length of a walk, in units of the radius: short, but well above rounding.
LENGTH, LENGTH_SINGLE = 0.01, 0.3
#: Longest walk, in units of the radius, where noise asks for more.
LONGEST = 1.0
#: Values within this fraction of themselves are equal, because of rounding.
EQUAL, EQUAL_SINGLE = 2.0**-44, 2.0**-20
#: Walks take all axes if the budget allows this many of them.
WALKS = 64
#: Otherwise, and where gradients span few dimensions, a walk takes this many axes.
FEWEST = 4
#: The first walks take all axes, to estimate the rank, within this share of the budget.
TRIAL, KNOWN, MOST_KNOWN = 0.2, 3, 16


def axes_of(near: Near, run: Run, left: float) -> int:
    """How many axes the next walk takes: those of a known subspace, all of them, or a few.

    If gradients lie in D dimensions, a walk along q random axes has 1 + (D + 1) / q times the variance of a full one.
    But the sample of a full walk can be evaluated again. And full walks show in which subspace gradients lie, if they
    do. Then walks along its basis are short, and pay for the full ones if the subspace is small.
    """
    d, walks = len(near.x), near.cost[1]
    q, full = min(FEWEST, d), typical(near)
    if whole(near) < d:
        return whole(near)
    if walks < KNOWN:
        return d if KNOWN * full <= TRIAL * run.budget else q
    few, r = (q + 1) * (1.0 + (dimension(near) + 1.0) / q), rank(near.memory)
    more = max(r + IN_A_ROW - walks, 1.0)
    if left - more * full > left * replayed(r + 2.0) / min(few, full):
        return d
    return d if full * WALKS <= run.budget and replayed(full) <= few else q


def typical(near: Near) -> float:
    """What a walk along all axes costs: less than d + 1 where samples depend on few variables."""
    calls, walks = near.cost
    return float(calls / walks) if walks else len(near.x) + 1.0


def whole(near: Near) -> int:
    """How many axes show a whole gradient: those of a known subspace and one more, if this is cheaper, or all axes."""
    r = len(near.memory.basis)
    return r + 1 if r and r + 2 < typical(near) else len(near.x)


def replayed(full: float) -> float:
    """The cost of a gradient, if a walk costs as much as this and its sample is evaluated again in every pass."""
    return (full + 2.0 * PASSES) / (1.0 + PASSES)


def dimension(near: Near) -> float:
    """The effective dimension of the gradients: one over the mean squared cosine of two of them."""
    U = np.array([u for u in near.memory.directions[:MOST_KNOWN] if u.any()])
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
    base, ways, steps = _path(near, run, draws)
    wanted = places(walk, near)

    def points() -> Iterator[Array]:
        for k in wanted:
            move = ways.sum(steps[:k])
            yield run.domain.project((base + run.domain.tangent(move)).astype(run.x0.dtype, copy=False))

    return Request(points, len(wanted), -1 - walk.sample)


def slopes(near: Near, run: Run, draws: Draws) -> tuple[Array, float]:
    """An estimate of the gradient, and the size of the last slope.

    It is the sum of slopes times axes. Of q among d axes the sum is times d / q: walks of different lengths then
    estimate the same gradient.
    """
    walk = near.walk
    _, ways, steps = _path(near, run, draws)
    known = np.flatnonzero(~np.isnan(walk.known))
    F = walk.known[known]
    along = np.zeros(walk.axes)
    single = np.diff(known) == 1
    with np.errstate(invalid="ignore", over="ignore"):
        changes = np.where(_equal(F[:-1], F[1:], near), 0.0, F[1:] - F[:-1])
    first = known[:-1][single]
    along[first] = np.where(np.isfinite(changes[single]), changes[single], 0.0) / steps[first]
    share = 1.0 if walk.spanned else walk.axes / len(near.x)
    return ways.sum(along) / share, abs(float(along[-1]))


def length(near: Near, mu: float) -> float:
    """The length of a walk in units of the radius mu: a step's change should be clear of the noise of evaluations."""
    least = LENGTH_SINGLE if near.x0.dtype == np.float32 else LENGTH
    clear = near.noise * sqrt(len(near.x)) / (near.slope * mu) if near.noise > 0.0 and near.slope * mu > 0.0 else 0.0
    return float(np.clip(clear, least, LONGEST))


class Ways(NamedTuple):
    """The directions of a walk: coordinates by their numbers, or the rows of a matrix."""

    d: int
    axes: IntArray
    rows: Array

    def sum(self, lengths: Array) -> Array:
        """The way along the first directions by these lengths."""
        if len(self.rows):
            return lengths @ self.rows[: len(lengths)]
        way = np.zeros(self.d)
        way[self.axes[: len(lengths)]] = lengths
        return way


def _path(near: Near, run: Run, draws: Draws) -> tuple[Array, Ways, Array]:
    """Where the walk begins, the directions it takes, and its steps along them."""
    d, q = len(near.x), near.walk.axes
    rng = draws.rng(near.walk.address)
    mu = radius(near, d if near.walk.spanned else q)
    base, reach = room(near.x + mu * in_ball(rng, run), 1.5 * length(near, mu) * mu, run)
    step = reach / (1.5 * sqrt(d))
    chosen = rng.permutation(d)[:q]
    axes = chosen[np.argsort(-near.active[chosen], kind="stable")]  # active ones first
    steps = step * rng.choice((-1.0, 1.0), q) * (0.5 + rng.random(q))  # equal steps could cancel
    rows = np.zeros((0, d))
    if near.walk.spanned:  # the subspace, and a random direction out of it
        Q = near.memory.basis
        v = unit(rng, 1, run)[0]
        v = v - Q.T @ (Q @ v)
        rows = np.vstack([Q, v / np.sqrt(v @ v)])
    return base, Ways(d, axes, rows), steps


def _equal(a: Array, b: Array, near: Near) -> Any:
    single = near.x0.dtype == np.float32
    with np.errstate(invalid="ignore", over="ignore"):
        size = np.maximum(np.abs(a), np.abs(b))
        equal: Any = (np.abs(a - b) <= (EQUAL_SINGLE if single else EQUAL) * size + near.noise) | (a == b)
    return equal
