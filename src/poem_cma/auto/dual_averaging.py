"""`auto`: dual averaging from x_0, at a scale and in a metric that it learns.

    x_{t+1} = argmin over X of  <s_t, x> + sqrt(Gamma_t) / (2R) |x - x_0|^2_D

with s the sum of the gradients, D a diagonal metric, Gamma the sum of their squares in it, and R the scale. The
gradients come from the estimators; a step may take several stages on one xi. Five kinds of stage:

START   a few estimates at x_0, with a tiny step;
RAY     values along the ray -s, further and further out, give the first scale;
STEP    one estimate around x, then a new x;
CHECK   once, is the average better than x_0? If not, POEM takes over: its scale grows where this one's may not;
PICK    at the end, the averages, the last iterate and x_0 are compared on common samples.
"""

from __future__ import annotations

from math import inf, isfinite, nan, sqrt
from typing import Any

import numpy as np

from poem_cma import core
from poem_cma._types import Array
from poem_cma.auto.choose import WALK, learn, next_estimator
from poem_cma.auto.estimators import Haar, Staircase, draw_haar, draw_staircase
from poem_cma.auto.scale import choose_radius, rescaled
from poem_cma.auto.state import DECAYS, AutoState, empty, in_unit
from poem_cma.core import Method, Probe, Run, Values
from poem_cma.domains import Box
from poem_cma.randomness import Stream, Streams

__all__ = ["DUAL_AVERAGING", "DualAveraging"]

START, RAY, STEP, CHECK, PICK, DONE = "start", "ray", "step", "check", "pick", "done"

LEAST_BUDGET = 20  # below it POEM does the work

_RADII_AT_ONCE = 3
_MOST_RADII = 19
_GIVE_UP_START = 0.1  # of the budget
_CHECK_AT = 0.15  # of the budget
_REACH = 1.2  # probes stray no further from the centre than this many smoothing radii


class Walks:
    """The estimators of the step under way, drawn from (seed, number) when first asked for."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._held: dict[int, Haar | Staircase] = {}
        self._of: tuple[Any, ...] = ()

    def __call__(self, s: AutoState, j: int) -> Haar | Staircase:
        """The estimator of the step's j-th xi."""
        if self._of != (s.t, s.samples, s.kind):
            self._held, self._of = {}, (s.t, s.samples, s.kind)
        number = s.samples + j
        if number not in self._held:
            self._held[number] = _draw(s, self._streams.at(Stream.DIRECTIONS, number))
        return self._held[number]


def _draw(s: AutoState, rng: np.random.Generator) -> Haar | Staircase:
    domain = s.run.domain
    if s.kind == WALK:
        tangent = domain.tangent if isinstance(domain, Box) else _unchanged
        rate = (s.active[s.order] + 1.0) / (s.tested[s.order] + 1.0)
        dense = s.active_trials > 3 and float(rate.mean()) > 0.8
        return draw_staircase(rng, s.centre, s.mu, s.metric, tangent, s.order, s.q, dense)
    subspace = s.subspace if s.use_subspace else s.subspace[:0]
    n = domain.hull_dimension(len(s.x))
    return draw_haar(rng, s.centre, s.mu, s.metric, domain.tangent, n, s.q, subspace)


def _unchanged(V: Array) -> Array:
    return V


class DualAveraging:
    """The algorithm, without any state of its own."""

    def randoms(self, method: Method, run: Run, seed: int) -> Walks:
        """What turns random numbers into probes."""
        return Walks(Streams(seed))

    def begin(self, method: Method, run: Run) -> AutoState:
        """The state before the first call."""
        x0, d = run.x0, len(run.x0)
        tiny = 1e-6 * max(1.0, float(np.abs(x0).max()))
        if isfinite(run.domain.diameter):
            tiny = min(tiny, 1e-3 * run.domain.diameter)
        probes = int(min(max(run.budget // 500, 1), 8))
        q = int(min(max(run.budget / (20 * probes) - 1, 1), 32, run.domain.hull_dimension(d)))
        s = AutoState(
            run=run, stage=START, t=0, x=x0, centre=x0, r=0.0, mu=tiny, s=empty(d), G=empty(d), unit=0.0, R=tiny,
            radial=0.0, weight=0.0, path_weight=0.0, rescale_at=0.0, averages=np.tile(x0, (len(DECAYS), 1)),
            metric=np.ones(d), squares=empty(d), tested=empty(d), active=empty(d), order=_free_axes(run),
            kind="haar", choice="haar", q=q, trial=False, trial_calls=0, step_calls=0, active_trials=0,
            costs=empty(0), gradients=empty(0, d), subspace=empty(0, d), shares=empty(0), use_subspace=False,
            values=np.full((probes, 1 + q), nan), radii=empty(0), ray_values=empty(0), checked=False, picked=1,
            eta=0.0, g_norm=0.0, value=nan, value_spread=0.0, asked=0, samples=0, nfev=0,
        )  # fmt: skip
        return _with_room(s)

    def stage(self, method: Method, s: AutoState, walks: Walks) -> list[int]:
        """How many points each probe of the stage has; none when the run is over."""
        return [len(places) for _, places in self._asked(s, walks)]

    def _asked(self, s: AutoState, walks: Walks) -> list[tuple[int, list[int]]]:
        """Which xi is asked at which places."""
        if s.stage in (START, STEP):
            needs = [(j, walks(s, j).needed(v)) for j, v in enumerate(s.values)]
            return [(j, places) for j, places in needs if places]
        if s.stage == RAY:
            return [(j, list(range(len(s.radii)))) for j in range(len(s.values))]
        if s.stage == CHECK:
            return [(j, [0, 1]) for j in range(_checks(s.run))]
        if s.stage == PICK:
            return [(j, list(range(len(DECAYS) + 2))) for j in range(_picks(s.run))]
        return []

    def probe(self, method: Method, s: AutoState, i: int, walks: Walks) -> Probe:
        """Probe i of the stage."""
        j, places = self._asked(s, walks)[i]
        if s.stage == RAY:
            points = np.array([_on_ray(s, r) for r in s.radii])
        elif s.stage == CHECK:
            points = np.stack((s.run.x0, s.average))
        elif s.stage == PICK:
            points = np.concatenate((s.averages, s.x[None], s.run.x0[None]))
        else:
            points = walks(s, j).points(places)
        return Probe(points, [s.samples + j] * len(points), 2 * (s.asked + i))

    def advance(self, method: Method, s: AutoState, values: Values, walks: Walks, nfev: int) -> Any:
        """The next state, from the values of the stage."""
        asked = self._asked(s, walks)
        calls = nfev - s.nfev
        s = s._replace(asked=s.asked + len(asked), nfev=nfev)
        if s.stage == RAY:
            after = _after_ray(s, values)
            return self._fit(after, walks) if isinstance(after, AutoState) else after
        if s.stage == CHECK:
            return _after_check(s, values)
        if s.stage == PICK:
            return _after_pick(s, values)
        v = s.values.copy()
        for (j, places), F in zip(asked, values, strict=True):
            v[j, places] = [f if isfinite(f) else inf for f in F]  # infinite: not to be had
        s = s._replace(values=v, step_calls=s.step_calls + calls)
        if not self._asked(s, walks):
            s = _after_start(s, walks) if s.stage == START else _after_step(s, walks)
        return self._fit(s, walks)

    def _fit(self, s: AutoState, walks: Walks) -> AutoState:
        """End the run in time: a stage that does not fit in the budget gives way to the last one."""
        last = _picks(s.run) * (len(DECAYS) + 2)
        if s.stage in (START, RAY, STEP, CHECK) and s.nfev + sum(self.stage(None, s, walks)) > s.run.budget - last:  # type: ignore[arg-type]
            s = s._replace(stage=PICK if last else DONE, samples=s.samples + len(s.values))
        return s

    def base(self, method: Method) -> None:
        """No value is shared by all others."""

    def usable(self, method: Method, F: list[float]) -> bool:
        """Whether failures have left anything of a probe."""
        return any(map(isfinite, F))

    def output(self, s: AutoState) -> Array:
        """The point to use."""
        if s.picked < len(DECAYS):
            x: Array = s.averages[s.picked]
            return x
        return s.x if s.picked == len(DECAYS) else s.run.x0


def _free_axes(run: Run) -> Any:
    """The axes that a walk may take: all, but for variables that the domain holds fixed."""
    d = len(run.x0)
    if isinstance(run.domain, Box):
        return np.flatnonzero(run.domain.tangent(np.ones(d)) > 0.0)
    return np.arange(d)


def _picks(run: Run) -> int:
    """How many samples the last comparison takes: two calls in a hundred."""
    n = int(min(400, 0.02 * run.budget / (len(DECAYS) + 2))) if isfinite(run.budget) else 0
    return n if n >= 4 else 0


def _checks(run: Run) -> int:
    """How many samples the comparison with x_0 takes: one call in a hundred; none in a short run."""
    n = int(min(400, 0.01 * run.budget / 2)) if isfinite(run.budget) else 0
    return n if n >= 8 else 0


def _with_room(s: AutoState) -> AutoState:
    """The centre of the probes: x, or the nearest point from which they stay in the domain."""
    domain = s.run.domain
    if not domain.inside:
        return s._replace(centre=s.x)
    reach = _REACH / np.sqrt(s.metric)
    mu = min(s.mu, 0.5 * domain._fits(reach))
    return s._replace(mu=mu, centre=domain.shrunk(mu * reach).nearest(s.x))


def _on_ray(s: AutoState, radius: float) -> Array:
    length = sqrt(s.s @ s.s)
    x: Array = s.run.domain.project(s.run.x0 - radius * s.s / length) if radius > 0.0 else s.run.x0
    return x


def _estimate(s: AutoState, walks: Walks, j: int) -> tuple[AutoState, Array | None, Array]:
    """The gradient of the step's j-th xi, in units of the state's `unit`, and the slopes it was made of."""
    estimator, v = walks(s, j), s.values[j]
    if not estimator.usable(v):
        return s, None, v
    change, steps = estimator.differences(v)
    peak = float(np.nanmax(np.abs(change), initial=0.0))
    if peak == 0.0:
        return s, empty(len(s.x)), np.zeros_like(change)
    exponent = int(np.frexp(peak)[1])
    slopes = np.ldexp(change, -exponent) / steps
    top = exponent + int(np.frexp(float(np.nanmax(np.abs(slopes))))[1])
    s = in_unit(s, max(s.unit, 2.0 ** min(max(top, -1022), 1023)))
    slopes = np.ldexp(slopes, exponent - int(np.frexp(s.unit)[1]) + 1)
    return s, estimator.gradient(slopes, len(s.x)), slopes


def _smoothed(s: AutoState) -> tuple[float, float]:
    """As in the core, from the first value of each xi."""
    F = [v for v in s.values[:, 0].tolist() if isfinite(v)]
    return core.smoothed_value(s.value, s.value_spread, s.t, F)


def _after_start(s: AutoState, walks: Walks) -> AutoState:
    """Add the estimates at x_0 to the dual average; then look along the ray."""
    w = s.q / len(s.x)
    for j in range(len(s.values)):
        s, g, _ = _estimate(s, walks, j)
        if g is not None:
            s = s._replace(s=s.s + w * g, G=s.G + (w * g) ** 2, weight=s.weight + w)
    s = s._replace(value=_smoothed(s)[0])
    if s.s @ s.s == 0.0:
        return _start_again(s)
    radii = np.concatenate(([0.0, 0.0], s.R * 10.0 ** np.arange(_RADII_AT_ONCE)))  # x_0 twice: is its noise shared?
    return s._replace(stage=RAY, radii=radii, ray_values=empty(0))


def _start_again(s: AutoState) -> AutoState:
    """Nothing was seen: more estimates at x_0, unless enough was spent on them; then POEM's first scale."""
    n = len(s.values)
    s = s._replace(samples=s.samples + n, values=np.full((n, 1 + s.q), nan), step_calls=0)
    if s.nfev > _GIVE_UP_START * s.run.budget:
        return _next_step(s._replace(R=s.run.initial_distance))
    return s._replace(stage=START)


def _after_ray(s: AutoState, values: Values) -> Any:
    """Go on outwards while it pays; then the scale is where most of the decrease is had."""
    V = np.array(values)
    if s.radii[0] == 0.0:
        if not _same(V[:, 0], V[:, 1]):
            return _hand_over(s)
        s = s._replace(values=np.where(np.isfinite(V[:, :1]), V[:, :1], V[:, 1:2]))  # at x_0, for each xi
        V = V[:, 1:]
    means = np.append(s.ray_values, _mean_changes(V, s.values[:, 0]))
    tiny = s.R
    outermost = float(s.radii[-1])
    best = means.min()
    stuck = np.array_equal(_on_ray(s, outermost), _on_ray(s, outermost / 10.0))
    if means[-1] <= best and not stuck and len(means) < _MOST_RADII:
        return s._replace(radii=outermost * 10.0 ** np.arange(1, 1 + _RADII_AT_ONCE), ray_values=means)
    radius = choose_radius(means, tiny)
    if radius is None:
        return _start_again(s)
    return _next_step(s._replace(R=radius * sqrt(s.G.sum()) / sqrt(s.s @ s.s)), moved=True)


def _mean_changes(V: Array, base: Array) -> Array:
    """The mean change of F against x_0 at each radius, over the xi's for which both are known; infinite if few are."""
    change = V - base[:, None]
    known = np.isfinite(change)
    sums = np.where(known, change, 0.0).sum(axis=0)
    return np.where(2 * known.sum(axis=0) >= len(V), sums / np.maximum(known.sum(axis=0), 1), inf)


def _same(a: Array, b: Array) -> bool:
    """Whether two calls at the same point, on the same xi, gave the same value."""
    return bool((np.isnan(a) | np.isnan(b) | (np.abs(a - b) <= 1e-12 * np.abs(a))).all())


def _hand_over(s: AutoState) -> Any:
    """The noise is not shared by the calls on one xi: small differences are of no use, and POEM takes over."""
    method = s.run.method.fallback
    assert method is not None
    poem = core.begin(method, s.run._replace(method=method))
    return poem._replace(asked=s.asked, samples=s.samples + len(s.values), nfev=s.nfev)


def _next_step(s: AutoState, moved: bool = False) -> AutoState:
    """Move to where the dual average points, and get ready for an estimate there."""
    if moved or s.G.any():
        s = _moved(s)
    count = s.run.batch
    s = s._replace(
        stage=STEP, samples=s.samples + len(s.values), step_calls=0,
        mu=max(0.5 * s.R / sqrt(s.t + 1.0), 1e-9 * float(np.abs(s.x).max()), 1e-30),
        rescale_at=s.rescale_at or 1.15 * s.weight,
    )  # fmt: skip
    s = next_estimator(s, max(2.0, (s.run.budget - _picks(s.run) * (len(DECAYS) + 2) - s.nfev) / count))
    size = s.q + 1 if s.kind == WALK else 1 + s.q + (len(s.subspace) if s.use_subspace else 0)
    if s.kind != WALK:
        n = s.run.domain.hull_dimension(len(s.x)) - (len(s.subspace) if s.use_subspace else 0)
        size -= s.q - min(s.q, n)
    return _with_room(s._replace(values=np.full((count, size), nan)))


def _moved(s: AutoState) -> AutoState:
    Gamma = float((s.G / s.metric).sum())
    if Gamma == 0.0:
        return s
    eta = s.R / sqrt(Gamma)
    target = s.run.x0 - eta * s.s / s.metric
    even = (s.metric == s.metric[0]).all()
    x = s.run.domain.project(target) if even else s.run.domain.project(target, s.metric)
    moved = x - s.run.x0
    return s._replace(x=x, r=sqrt(moved @ moved), eta=eta)


def _after_step(s: AutoState, walks: Walks) -> AutoState:
    """Put the estimates of the step together, add them to the dual average, and go on."""
    total, count = empty(len(s.x)), 0
    for j in range(len(s.values)):
        unit = s.unit
        s, g, slopes = _estimate(s, walks, j)
        if unit > 0.0:
            total = total * (unit / s.unit)
        if g is None:
            continue
        total, count = total + g, count + 1
        s = _noted(s, walks, j, g, slopes)
    if count == 0:
        return _next_step(s)  # every estimate failed: the step is skipped
    g = total / count
    value, spread = _smoothed(s)
    w = 1.0 if s.kind != WALK and s.use_subspace else s.q / len(s.order)
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
    s = _next_step(s)
    if not s.checked and s.nfev > _CHECK_AT * s.run.budget and _checks(s.run):
        s = s._replace(stage=CHECK, checked=True)
    return s


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


def _after_check(s: AutoState, values: Values) -> Any:
    """Go on if the average is visibly better than x_0."""
    change = np.array(values) @ np.array([-1.0, 1.0])
    change = change[np.isfinite(change)]
    s = s._replace(stage=STEP, samples=s.samples + _checks(s.run))
    if len(change) < 4 or not change.any():
        return s
    change = change / np.abs(change).max()  # squares of 1e300 would overflow
    if change.mean() < -2.0 * change.std(ddof=1) / sqrt(len(change)):
        return s
    return _hand_over(s)


def _after_pick(s: AutoState, values: Values) -> AutoState:
    """Return another candidate than the usual average only if it is better by more than a standard error."""
    V = np.array(values)
    V = V[np.isfinite(V).all(axis=1)]
    picked = s.picked
    if len(V) >= 4:
        E = V - V[:, [picked]]
        E = E / (float(np.abs(E).max()) or 1.0)  # squares of 1e300 would overflow
        gain, error = E.mean(axis=0), E.std(axis=0, ddof=1) / sqrt(len(E))
        error[-1] *= 3.0  # x_0 is there in case everything went wrong
        gain = np.where(gain < -error, gain, 0.0)
        picked = int(gain.argmin()) if gain.min() < 0.0 else picked
    return s._replace(stage=DONE, picked=picked, samples=s.samples + _picks(s.run))


DUAL_AVERAGING = DualAveraging()
