"""The estimators of the step under way, and the gradients they give."""

from __future__ import annotations

from collections.abc import Callable
from math import frexp, isfinite, isnan, sqrt
from typing import Any

import numpy as np

from poem_cma._types import Array
from poem_cma.arithmetic import LONG, largest, summed
from poem_cma.auto.choose import alphabet_of
from poem_cma.auto.common import common_gradient, common_value, dense, in_common, penalties
from poem_cma.auto.digits import Digits, draw_digits
from poem_cma.auto.directions import (
    BESIDE,
    SELDOM,
    SHARED,
    Drawn,
    Haar,
    draw_haar,
    drawn,
    haar,
    needed_directions,
    with_last_of,
)
from poem_cma.auto.estimators import EXACT, base_point, stretch_of
from poem_cma.auto.plausible import ABSURD, in_proportion
from poem_cma.auto.replay import beside, remembered
from poem_cma.auto.staircase import Staircase, draw_staircase
from poem_cma.auto.state import HAAR, REPLAY, START, STEP, AutoState, has, in_unit
from poem_cma.domains import Box
from poem_cma.oracle import matrix
from poem_cma.randomness import Stream, Streams

__all__ = ["DRAWN_AT_ONCE", "Walks", "estimate", "samples_first", "shares_directions", "slopes_of", "with_penalty"]

#: An array, or a list where there are few.
Numbers = Any

#: With more numbers in the directions of a step only one estimator is held at a time.
_MOST_HELD = 2**20

#: Steps that are digits are no longer than this part of the smoothing radius: there is room for them.
_WITHIN = 0.1

#: After so many estimates in a row that are far too steep it is the first that were far too flat.
_MOST_ABSURD = 4

#: For what samples have in common one looks so often in vain.
_MOST_LOOKS = 24

#: So many random numbers are drawn together, for as many steps as they last;
DRAWN_AT_ONCE = 2**13

#: and up to so many for a stage with several samples.
_MOST_DRAWN = 2**16


class Blocks:
    """What steps along random directions draw: worked out for several numbers at once."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._block: list[Drawn] = []
        self._first = 0  # number of the block
        self._q = 0  # directions of each

    def __call__(self, number: int, q: int, x: Array, tangent: Callable[[Array], Array], several: int) -> Drawn:
        """Those of a number; where they are not there yet, several are drawn, if they are not too many."""
        at = number - self._first
        if q != self._q or not 0 <= at < len(self._block):
            size = (q + 1) * len(x)
            count = max(1, min(several, _MOST_DRAWN // size))
            rngs = (self._streams.block(Stream.DIRECTIONS, n) for n in range(number, number + count))
            block = drawn(rngs, count, q, x, tangent)
            if count == 1:
                return block[0]
            self._block, self._first, self._q, at = block, number, q, 0
        return self._block[at]


class Walks:
    """The estimators of the step under way, drawn from (seed, number) when first asked for."""

    def __init__(self, streams: Streams, blocks: Blocks | None = None) -> None:
        self.streams = streams
        self._blocks = blocks or Blocks(streams)
        self._held: dict[int, Haar | Staircase | Digits] = {}
        self._of: tuple[Any, ...] = ()
        self.asked: list[tuple[int, list[int]]] = []  # what is asked
        self.sizes: list[int] = []  # at how many places
        self.asked_by: AutoState | None = None  # in this state

    def another(self) -> Walks:
        """For another step in flight."""
        return Walks(self.streams, self._blocks)

    def __call__(self, s: AutoState, j: int) -> Haar | Staircase | Digits:
        """The estimator of the step's j-th xi."""
        if self._of != (s.t, s.samples, s.kind):
            self._held, self._of = {}, (s.t, s.samples, s.kind)
        held = self._held.get(j)
        if held is None:
            if s.values.size * len(s.x) > _MOST_HELD:
                self.forget()  # before the next is drawn: it may be most of the memory
            held = self._draw(s, j)
            if type(held) is Haar and "base" in s.run.method.settings:
                held = held._replace(base=s.centre)  # it is switched off
            self._held[j] = held
        return held

    def needed(self, s: AutoState, j: int, v: Array) -> list[int]:
        """Which places of the j-th xi, whose values are v, are worth a call."""
        if s.kind == HAAR:
            whole = (s.stage == STEP and not s.sparse) or not has(s.run, "flat")
            return needed_directions(v, len(s.subspace) if s.use_subspace else 0, s.eps, whole)
        estimator = self(s, j)
        return estimator.needed(v[: estimator.size], s.eps)

    def without_penalty(self, s: AutoState, asked: list[tuple[int, list[int]]]) -> AutoState:
        """The state with values but for what all samples have in common; which may be seen now, in what was asked."""
        if s.penalised:
            s = self._less(s, asked, s.penalty)
        exact = s.eps < EXACT and len(s.x) <= LONG and s.run.domain.hull_dimension(len(s.x)) == len(s.x)
        if not exact or s.exact or s.looks >= _MOST_LOOKS or s.run.ahead or not has(s.run, "common"):
            return s
        for j, _ in asked:
            known = _known(s.values[j])
            if dense(known, F := s.values[j][known], s.eps):
                seen = penalties(matrix(self(s, j).points(known)), F, s.eps)
                if not seen.any():
                    s = s._replace(looks=s.looks + 1)
                    continue
                before, s = s, s._replace(hinted=seen)
                if in_common(seen, before.hinted, s.penalty):
                    s = s._replace(penalised=True, penalty=s.penalty + seen)
                    s = s._replace(costs=s.costs[:0], step_calls=2 * len(s.values))  # as few as now a walk may take
                    return self._less(s, [(i, _known(v)) for i, v in enumerate(s.values)], seen)
        return s

    def _less(self, s: AutoState, asked: list[tuple[int, list[int]]], penalty: Array) -> AutoState:
        values = s.values.copy()
        for j, places in asked:
            if places:
                estimator = self(s, j)
                values[j, places] -= common_value(penalty, matrix(estimator.points(places)), base_of(estimator))
        return s._replace(values=values)

    def forget(self) -> None:
        """Drop what is held; it is drawn again, the same, if it is asked for."""
        self._held = {}

    def _draw(self, s: AutoState, j: int) -> Haar | Staircase | Digits:
        domain = s.run.domain
        n = domain.hull_dimension(len(s.x))
        if s.kind == HAAR and not s.use_subspace:
            q = min(s.q, n)
            steps = max(len(s.values), DRAWN_AT_ONCE // ((q + 1) * len(s.x)))
            draw = q, s.x, domain.tangent, steps if s.stage == STEP else samples_first(s)
            now = self._blocks(s.samples + j, *draw)
            if j and _related(s):
                first = self._blocks(s.samples, *draw)
                now = with_last_of(first, now) if shares_directions(s) else now
                now = (*first[:2], now[2]) if j == 1 else now
            return haar(now, s.centre, s.mu, s.metric, domain.tangent, n, s.step)
        rng = self.streams.block(Stream.DIRECTIONS, s.samples + j)
        around = rng, s.centre, s.mu, s.metric, domain.tangent, n
        if s.kind == HAAR:
            return draw_haar(*around, s.q, s.subspace, s.step, counts_for=SELDOM)
        if s.kind == REPLAY and (known := remembered(s, j)) is not None:
            return draw_haar(*around, beside(s, j), known[None], s.step, counts_for=SELDOM)
        if s.kind == REPLAY and s.use_subspace:  # it was flat
            return draw_haar(*around, BESIDE, s.subspace, s.step)
        tangent = domain.tangent if isinstance(domain, Box) else _unchanged
        dense = s.active_trials > 3 and _activity(s) > 0.8
        whole = not has(s.run, "bisection")
        base = None if has(s.run, "base") else s.centre
        if j == 1 and _related(s) and base is None:
            base = base_point(self.streams.block(Stream.DIRECTIONS, s.samples), s.centre, s.mu, s.metric, tangent)
            rng = self.streams.block(Stream.DIRECTIONS, s.samples + j)  # it is one that moves
        walk = draw_staircase(rng, s.centre, s.mu, s.metric, tangent, s.order, s.q, dense, whole, s.step, base)
        if s.kind == REPLAY or s.values.shape[1] == walk.size:
            return walk
        far = max(s.R, largest(s.x))
        longest = _WITHIN * s.mu / sqrt(float(s.metric.max()))
        return draw_digits(rng, walk, alphabet_of(s), far, abs(s.value) / s.unit, longest)


def _related(s: AutoState) -> bool:
    """Whether estimates have something of the first: the second its base, for F there tells whether there is noise."""
    return s.stage == START and len(s.x) <= LONG


def samples_first(s: AutoState) -> int:
    """How many of the step's samples are asked: at first two, if these may show that F has no noise."""
    undecided = s.stage == START and s.exact and s.samples == 0 and isnan(s.values[0, 0])
    return 2 if undecided else len(s.values)


def shares_directions(s: AutoState) -> bool:
    """Whether the first estimates have directions in common, which tell if their gradients are parallel."""
    return s.kind == HAAR and s.q > 2 * SHARED and _related(s)


def _activity(s: AutoState) -> float:
    """How often an axis has made a difference."""
    rate = (s.active[s.order] + 1.0) / (s.tested[s.order] + 1.0)
    return summed(rate) / len(rate)  # type: ignore[no-any-return]


def _unchanged(V: Array) -> Array:
    return V


def estimate(s: AutoState, estimator: Haar | Staircase | Digits, j: int) -> tuple[AutoState, Array | None, Any]:
    """The gradient of the step's j-th xi, in units of the state's `unit`, and the slopes it was made of."""
    v = s.values[j, : estimator.size]
    if not estimator.usable(v):
        return _sparse(s), None, v
    change, steps = estimator.differences(v, s.eps)
    peak = _largest(change)
    if peak == 0.0:
        return _sparse(s), np.zeros_like(s.x), np.zeros(len(change))
    slopes: Numbers = slopes_of(change, steps, s.unit) if s.unit > 0.0 else change
    if s.unit == 0.0 or not (steepest := _largest(slopes)) < 1.0:
        if s.unit > 0.0 and s.stage == STEP and steepest > ABSURD and s.absurd < _MOST_ABSURD:
            rest = in_proportion(v, ABSURD * s.unit * float(np.max(np.abs(steps))))
            if rest is not v and estimator.usable(rest):
                return estimate(_with_values(s, j, rest), estimator, j)
            return _sparse(s)._replace(absurd=s.absurd + 1), None, v
        s = in_unit(s, max(s.unit, _unit(change, steps, peak)))
        slopes = slopes_of(change, steps, s.unit)
    if s.absurd:
        s = s._replace(absurd=0)
    g = estimator.gradient(slopes, len(s.x))
    return s, g if isinstance(estimator, Haar) else _within(g, s), slopes


def _with_values(s: AutoState, j: int, v: Array) -> AutoState:
    """With other values for the j-th xi."""
    values = s.values.copy()
    values[j, : len(v)] = v
    return s._replace(values=values)


def _within(g: Array, s: AutoState) -> Array:
    """What of a gradient lies within the domain, in the metric: the rest moves nothing, and may be most of it."""
    domain = s.run.domain
    if domain.hull_dimension(len(s.x)) == len(s.order):
        return g
    stretch = stretch_of(s.metric)
    within: Array = domain.tangent(g / stretch, 1.0 / stretch) * stretch
    return within


def base_of(estimator: Haar | Staircase | Digits) -> Array:
    """The point around which differences are taken."""
    return estimator.walk.base if isinstance(estimator, Digits) else estimator.base


def with_penalty(s: AutoState, estimator: Haar | Staircase | Digits, g: Array) -> tuple[AutoState, Array]:
    """A gradient, and that of what all samples have in common."""
    common = common_gradient(s.penalty, base_of(estimator))
    unit, size = s.unit, largest(common)
    if size > unit:
        s = in_unit(s, _unit([size], 1.0, size))
        g = g * (unit / s.unit)
    return s, g + common / s.unit if size > 0.0 else g


def _known(v: Array) -> list[int]:
    """The places with a value."""
    places: list[int] = np.isfinite(v).nonzero()[0].tolist()
    return places


def slopes_of(change: Numbers, steps: Any, unit: float) -> Numbers:
    """F's changes over the steps, in units of `unit`."""
    if isinstance(change, list):
        return [c / unit / steps for c in change]
    with np.errstate(over="ignore"):
        return change / unit / steps


def _unit(change: Numbers, steps: Any, peak: float) -> float:
    """The least power of two above all slopes; changes, the largest of which is `peak`, may be as large as 1e300."""
    exponent = frexp(peak)[1]
    top = exponent + frexp(_largest(np.ldexp(change, -exponent) / steps))[1]
    return float(2.0 ** min(max(top, -1022), 1023))


def _sparse(s: AutoState) -> AutoState:
    return s if s.sparse else s._replace(sparse=True)


def _largest(a: Numbers) -> float:
    """The largest size of a number, but for NaN."""
    if isinstance(a, list):
        sizes = list(map(abs, a))
        return max(sizes) if isfinite(sum(sizes)) else max([c for c in sizes if not isnan(c)], default=0.0)
    return float(np.fmax.reduce(np.abs(a), initial=0.0))
