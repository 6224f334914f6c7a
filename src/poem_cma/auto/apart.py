"""For noise that cannot be shared: differences between points far apart.

Where every value has noise of its own, of size sigma, a slope over the distance 2h is in doubt by sigma / h: here h is
large, at first half the scale R of the run, and the same descent (or dual averaging) as in `auto` follows

    g = n / q  sum over q orthonormal directions v of  (F(x + h v) - F(x - h v)) / 2h  v,

the gradient of F smoothed over a ball of radius h, in n dimensions. Smoothing moves the minimiser, unless F is
symmetric around it: `radius` keeps h as short as noise allows. Six kinds of stage:

REPEAT, LOOK, MEASURE   at x_0, for the noise and the first scale (`apart_scale`);
STEP    one estimate around x, then a new x; every other one asks a pair more, at another distance;
CHECK   is the average worse than x_0? Then the run begins again, at a smaller scale (`worse`);
PICK    at the end, which of the two is returned.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, inf, isfinite, nan, sqrt

import numpy as np

from poem_cma._types import Array
from poem_cma.arithmetic import distance, length
from poem_cma.auto.apart_scale import (
    after_looks,
    after_repeats,
    looked_along,
    on_one,
    places,
    repeats,
    with_room,
)
from poem_cma.auto.apart_state import CHECK, DONE, HUGE, LOOK, PICK, REPEAT, STEP, ApartState
from poem_cma.auto.directions import orthonormal
from poem_cma.auto.plausible import ABSURD
from poem_cma.auto.radius import FIRST_RADIUS, judged, tested_at
from poem_cma.auto.scale import EVERY, first_distance, followed
from poem_cma.auto.worse import after_check, after_pick, check_pairs, last_pairs, with_check
from poem_cma.core import Method, Run, Values, smoothed_value
from poem_cma.randomness import Stream, Streams

__all__ = ["APART", "Apart"]

_PAIRS, _MOST_PAIRS, _DIMENSIONS_A_PAIR = 8, 16, 4  # a step: more, but no more than so many, in many dimensions,
_FEWEST_PAIRS, _CALLS_A_PAIR = 4, 100  # and fewer in short runs
_RECENT = 20  # steps
_KNOWN = 10  # steps after which slopes are


class Pairs:
    """The directions of the stage under way: pure functions of (seed, number)."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams

    def another(self) -> Pairs:
        """For another step in flight: this one, for it holds nothing of a step."""
        return self

    def __call__(self, s: ApartState, i: int) -> tuple[Array, Array]:
        """Directions (m, d) and how far to go along each."""
        number = s.asked + i if s.stage != LOOK else 0  # LOOK goes out along the same directions
        rng = self._streams.block(Stream.DIRECTIONS, number)
        q = _pairs(s) if s.stage == STEP else looked_along(s)
        Z = s.run.domain.tangent(rng.standard_normal((q, len(s.x)), s.x.dtype))
        V, h = orthonormal(Z), np.full(len(Z), s.mu)
        if s.stage == STEP and s.t % 2 == 1:
            v = s.run.domain.tangent(rng.standard_normal((1, len(s.x)), s.x.dtype))
            V, h = np.concatenate((V, v / length(v[0]))), np.append(h, tested_at(s) * s.mu)
        return V, h


class Apart:
    """The algorithm, without any state of its own."""

    record = ApartState

    def randoms(self, method: Method, run: Run, seed: int) -> Pairs:
        """What turns random numbers into probes."""
        return Pairs(Streams(seed))

    def begin(self, method: Method, run: Run) -> ApartState:
        """The state before the first call."""
        x0 = run.x0
        tiny = first_distance(run)
        return ApartState(
            run=run, stage=REPEAT, t=0, x=x0, centre=x0, r=0.0, mu=tiny, s=0.0 * x0, G=0.0, late=0.0, unit=0.0,
            R=tiny, dual=False, radial=0.0, radial_squares=0.0, rescale_at=1.0, average=x0, begun=0, check_at=inf,
            own=True, within=False, grain=0.0, noise=0.0, slope=0.0, changes=np.zeros((0, 2)), recent=0.0,
            bias=0.0 * x0, bias_squares=0.0, tests=0, all_tests=0, grow_after=0, least=0.5 * FIRST_RADIUS, most=0.0,
            eta=0.0, g_norm=0.0, value=nan, value_spread=0.0, asked=0, samples=0, nfev=0,
        )  # fmt: skip

    def stage(self, method: Method, s: ApartState, pairs: Pairs) -> list[int]:
        """How many points each probe of the stage has; none when the run is over."""
        if s.stage == DONE:
            return []
        if s.stage == REPEAT:
            sizes = [repeats(s)]
        elif s.stage in (CHECK, PICK):
            sizes = [2] * (check_pairs(s.run) if s.stage == CHECK else last_pairs(s.run))
        elif s.stage == STEP:
            sizes = self._step_sizes(s)
        else:
            sizes = [places(s) * looked_along(s)]
        return sizes if s.nfev + sum(sizes) <= s.run.budget else []

    def points(self, method: Method, s: ApartState, i: int, pairs: Pairs) -> tuple[Iterator[Array], list[int]]:
        """The points of probe i of the stage, and the numbers of their xi's: of one for both points of a pair."""
        size = self.stage(method, s, pairs)[i]
        alike = _alike(s)
        first = s.samples + i * ceil(size / alike)
        numbers = [first + k // alike for k in range(size)]
        if s.stage == REPEAT:
            return (s.centre.copy() for _ in numbers), numbers
        if s.stage in (CHECK, PICK):
            return (x.copy() for x in (s.run.x0, s.average)), numbers
        V, h = pairs(s, i)
        sides = (1.0, -1.0, 0.0)[: places(s)]
        return (s.centre + side * a * v for v, a in zip(V, h, strict=True) for side in sides), numbers

    def advance(self, method: Method, s: ApartState, values: Values, pairs: Pairs, nfev: int) -> ApartState:
        """The next state, from the values of the stage."""
        if s.stage == STEP:
            return self.landed(method, s, s, values, pairs, nfev, alone=True)
        F = [f for v in values for f in v]
        told = _numbered(s, s, [len(v) for v in values])._replace(nfev=nfev)
        if s.stage == REPEAT:
            return after_repeats(told, F)
        if s.stage == PICK:
            return after_pick(told, np.array(F).reshape(-1, 2))
        if s.stage == CHECK:
            after = with_room(after_check(told, np.array(F).reshape(-1, 2)))
        else:
            after = after_looks(told, np.array(F).reshape(-1, places(s)))
            if after.stage == LOOK == s.stage and s.run.paired:
                after = after._replace(samples=s.samples)  # the same xi's further out: their slopes are comparable
        return self._fit(method, after, pairs)

    def told(self, method: Method, s: ApartState, values: Values, pairs: Pairs, nfev: int) -> tuple[ApartState, bool]:
        """A step is a single stage."""
        return s, True

    def landed(
        self, method: Method, s: ApartState, asked: ApartState, values: Values, pairs: Pairs, nfev: int, alone: bool
    ) -> ApartState:
        """The state after a step that was asked from s, or from an earlier state."""
        drawn = [pairs(asked, i) for i in range(len(values))]
        s = _numbered(s, asked, [len(v) for v in values])._replace(nfev=nfev)
        after = _after_step(s, asked, values, drawn)
        return self._fit(method, with_check(after), pairs) if alone else after

    def ahead(self, method: Method, s: ApartState, flight: list[ApartState]) -> ApartState | None:
        """Where the step after those in flight begins; None if it must wait for them."""
        if s.stage != STEP or s.nfev >= s.check_at:
            return None
        sizes = [self._step_sizes(a) for a in flight]
        s = _numbered(s, flight[-1], sizes[-1])._replace(t=s.t + len(flight), nfev=s.nfev + sum(map(sum, sizes)))
        return s if s.nfev + sum(self._step_sizes(s)) + 2 * last_pairs(s.run) <= s.run.budget else None

    def _step_sizes(self, s: ApartState) -> list[int]:
        """Points of each probe; every other step has a pair more."""
        return [2 * _pairs(s) + 2 * (s.t % 2)] * s.run.batch

    def _fit(self, method: Method, s: ApartState, pairs: Pairs) -> ApartState:
        """End the run in time for the last comparison."""
        last = 2 * last_pairs(s.run)
        enough = s.nfev + sum(self.stage(method, s, pairs)) + last <= s.run.budget
        return s if enough or not last or s.t == 0 else s._replace(stage=PICK)

    def base(self, method: Method) -> None:
        """No value is shared by all others."""

    def usable(self, method: Method, F: list[float]) -> bool:
        """Whether failures have left anything of a probe."""
        return any(map(isfinite, F))

    def output(self, s: ApartState) -> Array:
        """The point to use."""
        return s.average


def _pairs(s: ApartState) -> int:
    """Of a step, along orthonormal directions."""
    n = s.run.domain.hull_dimension(len(s.x))
    affordable = max(s.run.budget / _CALLS_A_PAIR, _FEWEST_PAIRS)
    return int(min(max(n / _DIMENSIONS_A_PAIR, _PAIRS), _MOST_PAIRS, affordable, n))


def _alike(s: ApartState) -> int:
    """How many points that follow each other share a xi."""
    if s.stage == REPEAT:
        return on_one(s)
    return places(s) if s.run.paired else 1


def _numbered(s: ApartState, asked: ApartState, sizes: list[int]) -> ApartState:
    """s, where probes and samples are counted on from those of a stage with so many points each."""
    samples = sum(ceil(size / _alike(asked)) for size in sizes)
    return s._replace(asked=asked.asked + len(sizes), samples=asked.samples + samples)


def _after_step(s: ApartState, asked: ApartState, values: Values, drawn: list[tuple[Array, Array]]) -> ApartState:
    """Put the estimates together, move, and look at the radius and at the scale."""
    n = s.run.domain.hull_dimension(len(s.x))
    gradients, test = [], tested_at(s) * s.mu
    for v, (V, h) in zip(values, drawn, strict=True):
        with np.errstate(over="ignore", invalid="ignore"):
            F = np.array(v) / s.unit
            slopes = (F[0::2] - F[1::2]) / (2.0 * h)
        known = np.abs(slopes) < (ABSURD * sqrt(s.G) if s.t >= _KNOWN and s.G > 0.0 else HUGE)
        wide = known & (h == h[0])
        if not wide.any():
            continue
        g = (n / wide.sum() * slopes[wide]) @ V[wide]
        if h[0] == s.mu and h[-1] == test and known[-1]:
            D = n * slopes[-1] * V[-1] - g
            s = s._replace(
                bias=s.bias + D, bias_squares=s.bias_squares + float(D @ D), tests=s.tests + 1,
                all_tests=s.all_tests + 1,
            )  # fmt: skip
            if h[-1] < h[0]:  # no more biased; and by precision: half the distance, four times the variance
                g = g + D / (1.0 + 4.0 * wide.sum())
        gradients.append(g.astype(s.x.dtype, copy=False))
    value, spread = smoothed_value(s.value, s.value_spread, s.t, [f for v in values for f in v])
    s = s._replace(value=value, value_spread=spread)
    if not gradients:
        return s
    g = sum(gradients[1:], gradients[0]) / len(gradients)
    outward = float(g @ (asked.x - s.run.x0))
    late = s.late + 2.0 * float(g @ (s.s - asked.s)) if s.run.ahead and not s.dual else 0.0  # see `steps`
    square, t = float(g @ g), s.t + 1 - s.begun
    s = s._replace(
        t=s.t + 1, late=late, s=s.s + g, G=s.G + square, recent=s.recent + (square - s.recent) / min(t, _RECENT),
        g_norm=float(length(g)), radial=s.radial + outward, radial_squares=s.radial_squares + outward**2,
    )  # fmt: skip
    s = _moved(s, g)
    s = s._replace(average=s.average + (1.0 - (1.0 - 1.0 / t) ** 2) * (s.x - s.average))
    s = judged(s, n, _pairs(s) * len(gradients))
    if t >= s.rescale_at:
        R = followed(s.R, distance(s.average, s.run.x0), s.radial, s.radial_squares)
        s = s._replace(R=R, mu=max(s.mu, s.least * R), radial=0.0, radial_squares=0.0, rescale_at=EVERY * t)
    return with_room(s)


def _moved(s: ApartState, g: Array) -> ApartState:
    """x = argmin <g, x> + sqrt(Gamma / 2) / R |x - x_t|^2, or with the sum of all gradients, from x_0."""
    if s.G == 0.0:
        return s
    eta = s.R / sqrt(2.0 * (s.G + max(s.late, 0.0)))
    x = s.run.domain.project(s.run.x0 - eta * s.s if s.dual else s.x - eta * g)
    return s._replace(x=x, r=distance(x, s.run.x0), eta=eta)


APART = Apart()
