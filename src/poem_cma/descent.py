"""Algorithm 1, the one loop behind every method of the paper's Table 1, with Algorithm 2 as its first stage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import frexp, isfinite, sqrt
from typing import Any, NamedTuple

import numpy as np

from poem_cma._types import Array
from poem_cma.core import Method, Probe, Run, Symbols, Values, smoothed_value
from poem_cma.differences import Difference
from poem_cma.randomness import Streams
from poem_cma.search import Anisotropic, Directions, Search, anisotropic
from poem_cma.spectrum import Spectrum, spectrum_of

__all__ = ["DESCENT", "Descent", "Stage", "State"]


class Stage:
    """The kinds of stage."""

    LEARN = "learn"  # Algorithm 2 at x_0
    STEP = "step"  # one iteration of Algorithm 1


class State(NamedTuple):
    """All that a run has come to at step t; what must survive a crash is here.

    Gradients and what follows from them (G, eta, g_norm) are measured in units of `unit`, the power of two next to the
    steepest slope seen. It cancels from every step, exactly, and lets F have values of 1e-300 or 1e300.
    """

    run: Run
    search: Search
    stage: str
    t: int
    x: Array
    r: float  # |x_t - x_0|
    r_bar: float  # the largest so far, and at least r_eps
    mu: float
    h: float  # the distance that differences are taken over, where it is not mu
    G: float
    unit: float  # zero until a slope is not
    weight: float  # of x_t in the average
    weight_sum: float  # over k < t
    weighted_x: Array  # sum of weight times x_k, k < t
    best_score: float  # of the averages that were overtaken
    best_average: Array
    eta: float  # of the last step
    g_norm: float
    value: float  # smoothed over recent steps
    value_spread: float
    asked: int  # probes
    samples: int  # xi's
    nfev: int

    @property
    def dimension(self) -> float:
        """The number of dimensions that is searched: d, or d*."""
        return self.search.dimension

    @property
    def spectrum(self) -> Spectrum | None:
        """What Algorithm 2 found."""
        return self.search.spectrum if isinstance(self.search, Anisotropic) else None

    @property
    def score(self) -> float:
        """sum_{k<t} r_bar_k / r_bar_t, which the output maximises over t."""
        return self.weight_sum / self.weight

    @property
    def average(self) -> Array:
        """x_bar_t, the weighted mean of x_k, k < t; x_0 before the first step."""
        return self.weighted_x / self.weight_sum if self.weight_sum > 0.0 else self.run.x0


class Descent:
    """Projected descent: what every method of Table 1 is a row of parts for."""

    def randoms(self, method: Method, run: Run, seed: int) -> Directions:
        """Directions from random numbers."""
        return Directions(Streams(seed), method.difference.rows, len(run.x0))

    def begin(self, method: Method, run: Run) -> State:
        """The state before the first call."""
        x0 = run.x0
        search = method.search(len(x0), run.domain)  # isotropic, until one is learned
        stage = Stage.STEP if method.learning is None else Stage.LEARN
        s = State(
            run, search, stage, t=0, x=x0, r=0.0, r_bar=run.initial_distance, mu=0.0, h=0.0, G=0.0, unit=0.0,
            weight=1.0, weight_sum=0.0, weighted_x=0.0 * x0, best_score=-1.0, best_average=x0, eta=0.0, g_norm=0.0,
            value=float("nan"), value_spread=0.0, asked=0, samples=0, nfev=0,
        )  # fmt: skip
        return _open(method, s)

    def stage(self, method: Method, s: State, directions: Directions) -> list[int]:
        """How many points each probe has: the pairs of Algorithm 2, or a batch; none beyond the budget."""
        size, calls = s.run.pairs if s.stage == Stage.LEARN else s.run.batch, method.difference.calls
        return [calls] * size if s.nfev + size * calls <= s.run.budget else []

    def probe(self, method: Method, s: State, i: int, directions: Directions) -> Probe:
        """Probe i of the stage."""
        V = directions(s.search, s.asked + i)  # v_t ~ N(0, Σ̂), normalised
        points = method.difference.points(s.x, s.mu, s.h, V)  # x_t ± μ_t v_t
        m = method.difference.calls
        first = s.samples + (i if s.run.paired else i * m)
        numbers = [first] * m if s.run.paired else list(range(first, first + m))
        return Probe(points, numbers, 2 * (s.asked + i))

    def advance(self, method: Method, s: State, values: Values, directions: Directions, nfev: int) -> State:
        """The next state, from the values of all probes of the stage, after `nfev` calls in all."""
        if s.stage == Stage.LEARN:
            return _learn(method, s, values, directions, nfev)
        return _step(method, s, values, directions, nfev)

    def output(self, s: State) -> Array:
        """x_bar_tau, tau = argmax_t sum_{k<t} r_bar_k / r_bar_t; x_0 before the first step."""
        return s.average if s.score > s.best_score else s.best_average

    def base(self, method: Method) -> int | None:
        """The point of a probe that is asked again when it fails."""
        return method.difference.base

    def usable(self, method: Method, F: list[float]) -> bool:
        """Whether any difference is left."""
        return any(map(isfinite, method.difference.differences(F)))


DESCENT = Descent()


def _step(method: Method, s: State, values: Values, directions: Directions, nfev: int) -> State:
    """Lines 9 to 15 of Algorithm 1, and lines 6 and 8 of the next iteration."""
    run, search, t, x, r_bar = s.run, s.search, s.t, s.x, s.r_bar
    delta, V = _differences(method.difference, s, values, directions)  # ΔF_t
    n = len(values)
    asked, samples = s.asked + n, s.samples + (n if run.paired else n * method.difference.calls)
    if not delta:
        return s._replace(asked=asked, samples=samples, nfev=nfev)  # nothing was learned: the step is skipped
    unit, slopes = _slopes(s.unit, delta, method.difference.span(s.mu, s.h))  # ΔF_t / 2μ_t
    g = search.gradient(slopes, V)  # g_t = slope · Σ̃ v_t
    g2 = float(g.dot(g))
    G = (s.G * (s.unit / unit) ** 2 if unit > 0.0 else 0.0) + g2  # G_t = G_{t-1} + ‖g_t‖²
    d = search.dimension
    eta = method.step_size(Symbols(run, t, r_bar, G, unit, d, s.mu)) if G > 0.0 else 0.0  # η_t = r̄_t / √G_t
    x_next = run.domain.nearest(x - eta * g)  # x_{t+1} = Π_X(x_t − η_t g_t)

    weight_sum = s.weight_sum + s.weight
    weighted_x = s.weighted_x + s.weight * x  # x̄_{t+1} = weighted_x / weight_sum
    moved = x_next - run.x0
    r = sqrt(moved.dot(moved))
    r_bar = max(r_bar, r)  # r̄_{t+1} = max{r̄_t, ‖x_{t+1} − x_0‖}
    x_next, mu, h, weight = _ready(method, search, x_next, Symbols(run, t + 1, r_bar, G, unit, d, 0.0))
    best_score, best_average, score = s.best_score, s.best_average, s.weight_sum / s.weight
    if weight_sum / weight < score and score > best_score:  # x̄_t would be lost: it may be the output
        best_score, best_average = score, s.average
    F = values[0] if n == 1 else _joined(values)
    value, value_spread = smoothed_value(s.value, s.value_spread, t, F)
    return State(
        run, search, s.stage, t + 1, x_next, r, r_bar, mu, h, G, unit, weight, weight_sum, weighted_x,
        best_score, best_average, eta, sqrt(g2), value, value_spread, asked, samples, nfev,
    )  # fmt: skip


def _ready(method: Method, search: Search, x: Array, now: Symbols) -> tuple[Array, float, float, float]:
    """x_t with room for its probes in the domain, mu_t, h_t, and the weight of x_t in the average."""
    mu = method.smoothing(now)  # μ_t = r̄_t √(d*/(t+1))
    if now.run.domain.inside:
        x, mu = _with_room(now.run.domain, x, mu, method.difference.spread * search.reach)
    h = mu if method.spacing is None else method.spacing(now._replace(mu=mu))
    return x, mu, h, method.weight(now)


def _with_room(domain: Any, x: Array, mu: float, reach: float) -> tuple[Array, float]:
    """The nearest point whose probes stay in the domain, with a smaller radius where it has to be."""
    mu = min(mu, 0.5 * domain.inradius / reach)
    return domain.shrunk(mu * reach).nearest(x), mu


def _open(method: Method, s: State) -> State:
    """The state with the stage's radius and the room it needs."""
    if s.stage == Stage.LEARN:
        x, mu = s.x, s.run.radius
        if s.run.domain.inside:
            x, mu = _with_room(s.run.domain, x, mu, method.difference.spread * s.search.reach)
        return s._replace(x=x, mu=mu, h=mu)
    now = Symbols(s.run, s.t, s.r_bar, s.G, s.unit, s.search.dimension, 0.0)
    x, mu, h, weight = _ready(method, s.search, s.x, now)
    return s._replace(x=x, mu=mu, h=h, weight=weight)


def _learn(method: Method, s: State, values: Values, directions: Directions, nfev: int) -> State:
    """Algorithm 2: the second moment of M two-point estimates at x_0, filtered, becomes the search distribution."""
    learning, run, d = method.learning, s.run, len(s.x)
    assert learning is not None
    delta = _joined([method.difference.differences(F) for F in values])
    kept = [i for i, change in enumerate(delta) if isfinite(change)]
    unit, slopes = _slopes(s.unit, [delta[i] for i in kept], method.difference.span(s.mu, s.h))

    def estimates() -> Iterator[Array]:  # drawn again, a block at a time, rather than kept
        for start in range(0, len(kept), directions.block):
            part = slice(start, start + directions.block)
            V = np.concatenate([directions(s.search, s.asked + i) for i in kept[part]])
            yield np.array(slopes[part])[:, None] * s.search.whiten(V)  # g_i = d ΔF_i / 2μ · v_i

    spectrum = spectrum_of(
        estimates(), d, len(kept), tol=learning.tol, ridge=learning.ridge / unit / unit if unit else 0.0,
        dimension=run.domain.hull_dimension(d),
    )  # fmt: skip
    search = anisotropic(spectrum, run.domain.tangent, learning.whitening) if spectrum.rank else s.search
    value, value_spread = smoothed_value(s.value, s.value_spread, s.t, _joined(values))
    n = len(values)
    return _open(method, s._replace(
        search=search, stage=Stage.STEP, unit=unit, value=value, value_spread=value_spread,
        asked=s.asked + n, samples=s.samples + (n if run.paired else n * method.difference.calls), nfev=nfev,
    ))  # fmt: skip


def _differences(difference: Difference, s: State, values: Values, directions: Directions) -> tuple[list[float], Array]:
    """The differences of a step that did not fail, and the directions they were taken along."""
    if len(values) == 1:
        delta, V = difference.differences(values[0]), difference.along(directions(s.search, s.asked))
    else:
        delta = _joined([difference.differences(F) for F in values])
        V = np.concatenate([difference.along(directions(s.search, s.asked + i)) for i in range(len(values))])
    if not isfinite(sum(delta)):
        kept = [j for j, change in enumerate(delta) if isfinite(change)]
        return [delta[j] for j in kept], V[kept]  # the mean over the others is as unbiased
    return delta, V


def _joined(parts: Sequence[list[float]]) -> list[float]:
    return parts[0] if len(parts) == 1 else [value for part in parts for value in part]


def _slopes(unit: float, delta: list[float], span: float) -> tuple[float, list[float]]:
    """Slopes, in units of a power of two that is at least `unit` and next to the steepest of them."""
    peak = abs(delta[0]) if len(delta) == 1 else max(map(abs, delta), default=0.0)
    if peak > unit * span:
        exponent = frexp(peak)[1] - frexp(span)[1]
        unit = max(unit, 2.0 ** min(max(exponent, -1022), 1023))
    if unit == 0.0:
        return unit, delta
    return unit, [delta[0] / unit / span] if len(delta) == 1 else [change / unit / span for change in delta]
