"""For noise that cannot be shared: differences between points far apart.

Where every value has noise of its own, of size sigma, a slope over the distance 2h is in doubt by sigma / h: here h is
large, as large as the scale R of the run, and the same descent (or dual averaging) as in `auto` follows

    g = n / q  sum over q orthonormal directions v of  (F(x + h v) - F(x - h v)) / 2h  v,

the gradient of F smoothed over a ball of radius h, in n dimensions. Smoothing moves the minimiser, unless F is
symmetric around it. Whether it does is measured: every other step asks one more pair at 2h, and `radius` shortens h
where the two gradients disagree, and lengthens it where they agree. Six kinds of stage:

REPEAT  x_0 several times: the noise;
LOOK    two pairs at x_0, further and further out, until noise is overcome, and then curvature sets in;
MEASURE more pairs there: R is where the curvature along a direction makes up for the slope;
STEP    one estimate around x, then a new x;
CHECK   is the average worse than x_0? Then the run begins again, at a smaller scale (`worse`);
PICK    at the end, which of the two is returned.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import frexp, inf, isfinite, nan, sqrt

import numpy as np

from poem_cma._types import Array
from poem_cma.arithmetic import distance, length
from poem_cma.auto.apart_state import CHECK, DONE, LOOK, MEASURE, PICK, REPEAT, STEP, ApartState
from poem_cma.auto.directions import orthonormal
from poem_cma.auto.plausible import ABSURD
from poem_cma.auto.radius import judged, tested_at
from poem_cma.auto.scale import EVERY, bounds_matter, first_distance, followed
from poem_cma.auto.worse import after_check, after_pick, check_pairs, first_check, last_pairs, with_check
from poem_cma.core import Method, Run, Values, smoothed_value
from poem_cma.randomness import Stream, Streams

__all__ = ["APART", "Apart"]

_REPEATS = 24
_LOOK = 2  # pairs
_MEASURE, _MOST_MEASURE, _CALLS_A_PAIR = 6, 14, 200  # pairs: more, but no more than so many, in long runs
_SEEN, _CONFIRMED = 4.0, 1.2  # standard deviations of the noise
_STEPS, _MOST_STEPS = 24.0, 300.0  # of F that a change must be worth, and times the distance over which one was seen
_UNSEEN, _FURTHER, _FURTHEST = 10.0, sqrt(10.0), 1e18
_GROWS = 1.5, 5.0  # from one distance to the next, a slope's change of F grows by about sqrt(10)
_START_SHARE = 0.25  # of the budget
_PAIRS = 4  # a step
_KNOWN = 10  # steps after which slopes are
_HUGE = 1e100  # in the unit of changes: beyond, squares overflow
_FIRST_RADIUS = 0.5  # in R


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
        q = {LOOK: _LOOK, MEASURE: _measured(s.run), STEP: _PAIRS}[s.stage]
        n = s.run.domain.hull_dimension(len(s.x))
        Z = s.run.domain.tangent(rng.standard_normal((min(q, n), len(s.x)), s.x.dtype))
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
            own=True, grain=0.0, noise=0.0, slope=0.0, changes=np.zeros((0, 2)), bias=0.0 * x0, bias_squares=0.0,
            tests=0, all_tests=0, grow_after=0, least=0.5 * _FIRST_RADIUS, eta=0.0, g_norm=0.0, value=nan,
            value_spread=0.0, asked=0, samples=0, nfev=0,
        )  # fmt: skip

    def stage(self, method: Method, s: ApartState, pairs: Pairs) -> list[int]:
        """How many points each probe of the stage has; none when the run is over."""
        n = s.run.domain.hull_dimension(len(s.x))
        if s.stage == DONE:
            return []
        if s.stage == REPEAT:
            sizes = [int(min(max(s.run.budget // 100, 2), _REPEATS))]
        elif s.stage in (CHECK, PICK):
            sizes = [2] * (check_pairs(s.run) if s.stage == CHECK else last_pairs(s.run))
        elif s.stage == STEP:
            sizes = self._step_sizes(s)
        else:
            sizes = [2 * min(_LOOK if s.stage == LOOK else _measured(s.run), n)]
        return sizes if s.nfev + sum(sizes) <= s.run.budget else []

    def points(self, method: Method, s: ApartState, i: int, pairs: Pairs) -> tuple[Iterator[Array], list[int]]:
        """The points of probe i of the stage, and the numbers of their xi's: of one for both points of a pair."""
        size = self.stage(method, s, pairs)[i]
        alike = 2 if s.run.paired and s.stage != REPEAT else 1  # points that share a xi
        first = s.samples + i * size // alike
        numbers = [first + k // alike for k in range(size)]
        if s.stage == REPEAT:
            return (s.centre.copy() for _ in numbers), numbers
        if s.stage in (CHECK, PICK):
            return (x.copy() for x in (s.run.x0, s.average)), numbers
        V, h = pairs(s, i)
        return (s.centre + side * a * v for v, a in zip(V, h, strict=True) for side in (1.0, -1.0)), numbers

    def advance(self, method: Method, s: ApartState, values: Values, pairs: Pairs, nfev: int) -> ApartState:
        """The next state, from the values of the stage."""
        if s.stage == STEP:
            return self.landed(method, s, s, values, pairs, nfev, alone=True)
        F = [f for v in values for f in v]
        told = _numbered(s, s, [len(v) for v in values])._replace(nfev=nfev)
        if s.stage == REPEAT:
            return _after_repeats(told, [f for f in F if isfinite(f)])
        if s.stage == PICK:
            return after_pick(told, np.array(F).reshape(-1, 2))
        if s.stage == CHECK:
            after = _with_room(after_check(told, np.array(F).reshape(-1, 2)))
        else:
            after = _after_looks(told, np.array(F).reshape(-1, 2))
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
        return [2 * min(_PAIRS, s.run.domain.hull_dimension(len(s.x))) + 2 * (s.t % 2)] * s.run.batch

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


def _measured(run: Run) -> int:
    """How many pairs measure the first slope and curvature, on which the scale and the growth of h depend."""
    return int(min(max(run.budget / _CALLS_A_PAIR, _MEASURE), _MOST_MEASURE))


def _after_repeats(s: ApartState, F: list[float]) -> ApartState:
    if len(F) < 2:
        return s  # ask again
    value = sum(f / len(F) for f in F)
    rounding = 1e4 * float(np.finfo(float).eps) * abs(value)
    unit = _unit(max(s.grain, *(abs(f - value) for f in F)) or rounding)
    noise = sqrt(sum(((f - value) / unit) ** 2 for f in F) / (len(F) - 1))
    least = max(rounding, s.grain) / unit
    return _with_room(s._replace(stage=LOOK, value=value, unit=unit, noise=max(noise, least)))


def _unit(change: float) -> float:
    """What changes of F are measured in: a power of two, which costs no bit."""
    return 2.0 ** min(max(frexp(change)[1], -1022), 1023) if change > 0.0 else 1.0


def _after_looks(s: ApartState, F: Array) -> ApartState:
    """Further out until a slope is seen, and on while it is one; then R, from the slope and the curvature there."""
    if s.noise == 0.0 and s.slope == 0.0:  # F is zero at x_0, whatever xi is: the first change says what size it has
        s = s._replace(unit=_unit(float(np.abs(F - s.value).max())))
    with np.errstate(over="ignore", invalid="ignore"):
        F = (F - s.value) / s.unit
        halves = np.stack((0.5 * (F[:, 0] - F[:, 1]), 0.5 * (F[:, 0] + F[:, 1])), axis=1)  # odd: slope; even: curvature
    halves = halves[(np.abs(halves) < _HUGE).all(axis=1)]
    if not len(halves) and s.stage == LOOK:
        return s._replace(stage=MEASURE, mu=s.mu / _FURTHER)  # calls fail out here
    n = s.run.domain.hull_dimension(len(s.x))
    if s.stage == LOOK:
        if s.grain > 0.0:  # with a shared xi slopes are seen as soon as they are more than steps; no need to go further
            seen = bool((np.abs(halves[:, 0]) > _STEPS * s.grain / s.unit).any())
            enough = seen or _enough(s) or s.mu >= _MOST_STEPS * s.R
            return s._replace(stage=MEASURE, changes=halves) if enough else _further(s, _FURTHER)
        seen = bool((np.abs(halves) > _SEEN * s.noise).any())
        odd, even = _odd(halves, 0.0), float(halves[:, 1].mean())
        growth = odd / s.slope if s.slope > 0.0 else _FURTHER
        if growth > _GROWS[1]:
            return s._replace(stage=MEASURE, mu=s.mu / _FURTHER)  # F explodes out here
        straight = sqrt(n) * odd > 2.0 * even and growth > _GROWS[0]
        further = _with_room(s._replace(mu=s.mu * (_FURTHER if seen else _UNSEEN), slope=odd if seen else 0.0))
        if (straight or not seen) and further.mu > s.mu and not _enough(s):
            return further
        return s._replace(stage=MEASURE, changes=halves)
    # One outlier is no slope: half of the pairs must confirm it.
    seen = len(halves) > 0 and bool((np.median(np.abs(halves), axis=0) > _CONFIRMED * _noises(s)).any())
    if not seen and not _enough(s):
        return _with_room(s._replace(stage=LOOK, mu=s.mu * _UNSEEN, slope=0.0))
    halves = np.concatenate((s.changes, halves))
    if not len(halves):
        return s  # every call has failed: ask again
    odd = _odd(halves, float(_noises(s)[0]))
    even, doubt = float(halves[:, 1].mean()), s.noise / sqrt(len(halves))
    R = s.mu * min(max(sqrt(n) * odd / (2.0 * even), 0.01), 1.0) if even > 2.0 * doubt else s.mu
    if not seen:
        R = s.run.initial_distance
    return _with_room(s._replace(
        stage=STEP, R=R, dual=bounds_matter(s.run, R), slope=sqrt(n) * odd / s.mu, mu=_FIRST_RADIUS * R,
        changes=halves[:0], check_at=first_check(s),
    ))  # fmt: skip


def _further(s: ApartState, factor: float) -> ApartState:
    return _with_room(s._replace(mu=factor * s.mu))


def _enough(s: ApartState) -> bool:
    """Whether no more calls are spent on the first scale."""
    return s.nfev > _START_SHARE * s.run.budget or s.mu >= min(s.run.domain.diameter, _FURTHEST)


def _noises(s: ApartState) -> Array:
    """The noise of odd and of even parts: points that share a xi differ by no more than steps."""
    return np.array([s.grain / s.unit if s.grain > 0.0 else s.noise, s.noise])


def _odd(halves: Array, noise: float) -> float:
    """The root mean square of the odd parts, without what noise adds to it."""
    return sqrt(max(float((halves[:, 0] ** 2).mean()) - 0.5 * noise**2, (0.25 * noise) ** 2))


def _numbered(s: ApartState, asked: ApartState, sizes: list[int]) -> ApartState:
    """s, where probes and samples are counted on from those of a stage with so many points each."""
    alike = 1 if asked.stage == REPEAT or not s.run.paired else 2  # points that share a xi
    return s._replace(asked=asked.asked + len(sizes), samples=asked.samples + sum(sizes) // alike)


def _after_step(s: ApartState, asked: ApartState, values: Values, drawn: list[tuple[Array, Array]]) -> ApartState:
    """Put the estimates together, move, and look at the radius and at the scale."""
    n = s.run.domain.hull_dimension(len(s.x))
    gradients, test = [], tested_at(s) * s.mu
    for v, (V, h) in zip(values, drawn, strict=True):
        with np.errstate(over="ignore", invalid="ignore"):
            F = np.array(v) / s.unit
            slopes = (F[0::2] - F[1::2]) / (2.0 * h)
        known = np.abs(slopes) < (ABSURD * sqrt(s.G) if s.t >= _KNOWN and s.G > 0.0 else _HUGE)
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
    s = s._replace(
        t=s.t + 1, late=late, s=s.s + g, G=s.G + float(g @ g), g_norm=float(length(g)), radial=s.radial + outward,
        radial_squares=s.radial_squares + outward**2,
    )  # fmt: skip
    s = _moved(s, g)
    t = s.t - s.begun
    s = s._replace(average=s.average + (1.0 - (1.0 - 1.0 / t) ** 2) * (s.x - s.average))
    s = judged(s, n)
    if t >= s.rescale_at:
        R = followed(s.R, distance(s.average, s.run.x0), s.radial, s.radial_squares)
        s = s._replace(R=R, mu=max(s.mu, s.least * R), radial=0.0, radial_squares=0.0, rescale_at=EVERY * t)
    return _with_room(s)


def _moved(s: ApartState, g: Array) -> ApartState:
    """x = argmin <g, x> + sqrt(Gamma / 2) / R |x - x_t|^2, or with the sum of all gradients, from x_0."""
    if s.G == 0.0:
        return s
    eta = s.R / sqrt(2.0 * (s.G + max(s.late, 0.0)))
    x = s.run.domain.project(s.run.x0 - eta * s.s if s.dual else s.x - eta * g)
    return s._replace(x=x, r=distance(x, s.run.x0), eta=eta)


def _with_room(s: ApartState) -> ApartState:
    """The centre of the probes: x, or the nearest point from which they stay in the domain."""
    domain = s.run.domain
    if not domain.inside:
        return s._replace(centre=s.x)
    reach = max(1.0, tested_at(s)) if s.stage == STEP else 1.0  # of the points that lie furthest out
    mu = min(s.mu, 0.5 * domain.fits(1.0) / reach)
    return s._replace(mu=mu, centre=domain.shrunk(reach * mu).nearest(s.x))


APART = Apart()
