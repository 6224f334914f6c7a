"""Algorithm 1, the one loop behind every method of the paper's Table 1, with Algorithm 2 as its first stage."""

from __future__ import annotations

from collections.abc import Iterator
from math import frexp, isfinite, nan, sqrt
from typing import Any

import numpy as np

from poem_cma._types import Array
from poem_cma.domains.fitting import moved_inside
from poem_cma.paper.algorithm_2 import spectrum_of
from poem_cma.paper.directions import Directions, anisotropic
from poem_cma.paper.state import KINDS, Gradients, LastStep, Stage, State, Weights
from poem_cma.run.algorithm import Learned, Method, Run, Symbols, Values, mean_value, smoothed
from poem_cma.run.arithmetic import FARTHEST, distance, larger, length, plus, power_of_two
from poem_cma.run.randomness import Streams

__all__ = ["DESCENT", "Descent", "descend", "unit_of"]


class Descent:
    """Projected descent: what every method of Table 1 is a row of parts for."""

    record = State
    kinds = KINDS

    def with_budget(self, method: Method, s: State, budget: float, directions: Directions) -> State:
        """The state of a run that goes on with another budget; T, where a rule needs it, is that of the new budget."""
        step = s.run.batch * method.difference.calls
        steps = method.settings.get("steps") or (budget - s.run.pairs * method.difference.calls) // step
        return s._replace(run=s.run._replace(budget=budget, steps=steps))

    def randoms(self, method: Method, run: Run, seed: int) -> Directions:
        """Directions from random numbers."""
        return Directions(Streams(seed), method.difference.rows, len(run.x0), run.x0.dtype)

    def begin(self, method: Method, run: Run, learned: Learned | None = None) -> State:
        """The state before the first call."""
        x0 = run.x0
        search = method.search(len(x0), run.domain)  # isotropic, until one is learned
        stage, asked, samples, steps = Stage.STEP if method.learning is None else Stage.LEARN, 0, 0, 0
        if learned is not None:
            asked, samples = learned.used
            run, steps = run._replace(initial_distance=learned.distance), learned.search
            if learned.spectrum is not None and method.learning is not None:
                stage, search = Stage.STEP, anisotropic(learned.spectrum, run.domain.tangent, method.learning.whitening)
        s = _open(method, State(
            run, search, stage, t=0, x=x0, r=0.0, r_bar=run.initial_distance, mu=0.0, h=0.0,
            gradients=Gradients(G=0.0, late=0.0, unit=0.0, flat=True),
            weights=Weights(power_of_two(run.initial_distance), 1.0, 0.0, 0.0 * x0, best_score=-1.0, best_average=x0),
            last=LastStep(eta=0.0, g_norm=0.0, value=nan, spread=0.0), asked=asked, samples=samples, nfev=0,
        ))  # fmt: skip
        weight_sum = steps * s.weights.weight  # x0 is the average of the earlier steps
        return s._replace(weights=s.weights._replace(weight_sum=weight_sum, weighted_x=weight_sum * x0))

    def learned(self, method: Method, s: State) -> tuple[float, int]:
        """The distance of the last differences but for sqrt(d), and the number of steps."""
        return s.r_bar / sqrt(s.t + 1.0), s.t

    def stage(self, method: Method, s: State, directions: Directions) -> list[int]:
        """How many points each probe has: the pairs of Algorithm 2, or a batch; none beyond the budget."""
        size, calls = s.run.pairs if s.stage == Stage.LEARN else s.run.batch, method.difference.calls
        return [calls] * size if s.nfev + size * calls <= s.run.budget else []

    def points(self, method: Method, s: State, i: int, directions: Directions) -> tuple[Iterator[Array], list[int]]:
        """The points of probe i of the stage, and the numbers of their xi's."""
        difference, m = method.difference, method.difference.calls
        V = directions(s.search, s.asked + i).V  # v_t ~ N(0, Σ̂), normalised
        points = difference.points(s.x, s.mu, s.h, V)  # x_t ± μ_t v_t
        if not s.run.domain.outside:
            points = moved_inside(list(points), s.run.domain)
        if s.run.paired:
            return points, [s.samples + i] * m
        first = s.samples + i * m
        return points, list(range(first, first + m))

    def advance(self, method: Method, s: State, values: Values, directions: Directions, nfev: int) -> State:
        """The next state, from the values of all probes of the stage, after `nfev` calls in all."""
        if s.stage == Stage.LEARN:
            return _learn(method, s, values, directions, nfev)
        return self.landed(method, s, s, values, directions, nfev)

    def landed(
        self, method: Method, s: State, asked: State, values: Values, directions: Directions, nfev: int,
        alone: bool = True,
    ) -> State:  # fmt: skip
        """The state after s by a step that was asked from s, or from an earlier state."""
        if len(values) > 1:
            return _batch(method, s, asked, values, directions, nfev)
        F = values[0]
        delta = method.difference.change(F)  # ΔF_t
        if not isfinite(delta):
            return _skipped(method, s, 1, nfev)
        span = method.difference.span(asked.mu, asked.h)
        unit = s.gradients.unit
        unit = unit if abs(delta) <= unit * span else unit_of(unit, delta, span)
        slope = delta / unit / span if unit > 0.0 else 0.0  # ΔF_t / 2μ_t
        _, w, size = directions(s.search, asked.asked)  # Σ̃ v_t
        slope, g_norm = slope * s.search.gain, abs(slope) * size
        late = _behind(s, asked, unit, slope, w) if s.run.ahead else 0.0
        return descend(method, s, unit, slope, w, g_norm, mean_value(F), 1, nfev, late)

    def told(self, method: Method, s: State, values: Values, directions: Directions, nfev: int) -> tuple[State, bool]:
        """A step is a single stage."""
        return s, True

    def ahead(self, method: Method, s: State, flight: list[State]) -> State | None:
        """Where the step after those in flight begins; None if it must wait for them."""
        if s.stage == Stage.LEARN:
            return None
        n = s.run.batch
        calls = n * (method.difference.calls + (method.difference.base is not None))  # which may be asked again
        after = _skipped(method, flight[-1], n, s.nfev + len(flight) * calls)
        s = s._replace(asked=after.asked, samples=after.samples, nfev=after.nfev)
        return s if s.nfev + calls <= s.run.budget else None

    def output(self, s: State) -> Array:
        """x_bar_tau, tau = argmax_t sum_{k<t} r_bar_k / r_bar_t; x_0 before the first step."""
        return s.average if s.score > s.weights.best_score else s.weights.best_average

    def base(self, method: Method) -> int | None:
        """The point of a probe that is asked again when it fails."""
        return method.difference.base

    def usable(self, method: Method, F: list[float]) -> bool:
        """Whether the difference is left."""
        return isfinite(method.difference.change(F))


DESCENT = Descent()


def descend(
    method: Method, s: State, unit: Any, slope: Any, w: Array, g_norm: Any, value: Any, n: int, nfev: int,
    late: float = 0.0,
) -> State:  # fmt: skip
    """Lines 11 to 15 of Algorithm 1, and lines 6 and 8 of the next iteration, with the gradient g_t = slope * w.

    For one run, or for many together: then numbers are columns and vectors are rows (see `arithmetic`).
    """
    run, t, x, seen, weights = s.run, s.t, s.x, s.gradients, s.weights
    before = seen.G if unit is seen.unit else 0.0 if seen.flat else seen.G * (seen.unit / unit) ** 2
    G = before + g_norm * g_norm  # G_t = G_{t-1} + ‖g_t‖²
    flat = seen.flat and not np.all(G > 0.0)
    now = Symbols(run, t, s.r_bar, G + late if late > 0.0 else G, unit, s.search.dimension, s.mu)
    eta = 0.0 if flat else method.step_size(now)  # η_t = r̄_t / √G_t
    eta = eta * (eta * g_norm < FARTHEST)  # else no step: squares of x would be no numbers
    x_next = run.domain.nearest(plus(x, -eta * slope, w))  # x_{t+1} = Π_X(x_t − η_t g_t)

    weight_sum = weights.weight_sum + weights.weight
    weighted_x = plus(weights.weighted_x, weights.weight, x)  # x̄_{t+1} = weighted_x / weight_sum
    r = distance(x_next, run.x0)
    now.t, now.r_bar = t + 1, larger(s.r_bar, r)  # r̄_{t+1} = max{r̄_t, ‖x_{t+1} − x_0‖}
    mu, h, weight = _ready(method, now)
    best_score, best_average = weights.best_score, weights.best_average
    weight = weight / weights.unit
    if now.r_bar is not s.r_bar:  # else the score only grows
        overtaken = weight_sum / weight < weights.weight_sum / weights.weight
        if overtaken is not False and np.count_nonzero(overtaken):  # x̄_t may be the output
            best_score, best_average = _best(s, overtaken)
    value, spread = smoothed(s.last.value, s.last.spread, t, value)
    samples = s.samples + (n if run.paired else n * method.difference.calls)
    return State(
        run, s.search, s.stage, t + 1, x_next, r, now.r_bar, mu, h, Gradients(G, late, unit, flat),
        Weights(weights.unit, weight, weight_sum, weighted_x, best_score, best_average),
        LastStep(eta, g_norm, value, spread), s.asked + n, samples, nfev,
    )  # fmt: skip


def _best(s: State, overtaken: Any) -> tuple[Any, Array]:
    """The best of the averages whose score falls; x̄_t joins them where it does."""
    best_score, best_average = s.weights.best_score, s.weights.best_average
    better = (s.score > best_score) & overtaken
    if not isinstance(better, np.ndarray):
        return (s.score, s.average) if better else (best_score, best_average)
    if not better.any():
        return best_score, best_average
    return np.where(better, s.score, best_score), np.where(better, s.average, best_average)


def _batch(method: Method, s: State, asked: State, values: Values, directions: Directions, nfev: int) -> State:
    """The step along the mean of several estimates; without those that failed, the mean is as unbiased."""
    delta = [method.difference.change(F) for F in values]
    kept = [i for i, change in enumerate(delta) if isfinite(change)]
    if not kept:
        return _skipped(method, s, len(values), nfev)
    unit, slopes = _slopes(s.gradients.unit, asked, method, [delta[i] for i in kept])
    W = np.array([directions(s.search, asked.asked + i).w for i in kept])
    g = (np.array(slopes) * (s.search.gain / len(kept))).astype(W.dtype) @ W
    late = _behind(s, asked, unit, 1.0, g) if s.run.ahead else 0.0
    return descend(method, s, unit, 1.0, g, length(g), mean_value(_joined(values)), len(values), nfev, late)


def _behind(s: State, asked: State, unit: float, slope: float, w: Array) -> float:
    """What gradients that come late add to G (McMahan and Streeter 2014): 2 <g, those that have come in meanwhile>.

    Where gradients that were on their way at the same time agree, steps were longer than they should have been; where
    they are mostly noise, nothing was lost. What has come in meanwhile is seen in how far x has moved.
    """
    late, eta = s.gradients.late, s.last.eta
    if not eta > 0.0:
        return late
    change = s.gradients.unit / unit
    return change * (change * late + 2.0 * slope / eta * float(w @ (asked.x - s.x)))


def _skipped(method: Method, s: State, n: int, nfev: int) -> State:
    """Nothing was learned: the step is asked again, on other samples."""
    samples = s.samples + (n if s.run.paired else n * method.difference.calls)
    return s._replace(asked=s.asked + n, samples=samples, nfev=nfev)


def _ready(method: Method, now: Symbols) -> tuple[Any, Any, Any]:
    """mu_t, h_t, and the weight of x_t in the average."""
    now.mu = mu = method.smoothing(now)  # μ_t = r̄_t √(d*/(t+1))
    h = mu if method.spacing is None else method.spacing(now)
    return mu, h, method.weight(now)


def _open(method: Method, s: State) -> State:
    """The state with the stage's radius."""
    if s.stage == Stage.LEARN:
        return s._replace(mu=s.run.radius, h=s.run.radius)
    now = Symbols(s.run, s.t, s.r_bar, s.gradients.G, s.gradients.unit, s.search.dimension, 0.0)
    mu, h, weight = _ready(method, now)
    return s._replace(mu=mu, h=h, weights=s.weights._replace(weight=weight / s.weights.unit))


def _learn(method: Method, s: State, values: Values, directions: Directions, nfev: int) -> State:
    """Algorithm 2: the second moment of M two-point estimates at x_0, filtered, becomes the search distribution."""
    learning, run, d = method.learning, s.run, len(s.x)
    assert learning is not None
    delta = [method.difference.change(F) for F in values]
    kept = [i for i, change in enumerate(delta) if isfinite(change)]
    unit, slopes = _slopes(s.gradients.unit, s, method, [delta[i] for i in kept])

    def estimates() -> Iterator[Array]:  # drawn again, a block at a time, rather than kept
        for start in range(0, len(kept), directions.size):
            part = slice(start, start + directions.size)
            W = np.array([directions(s.search, s.asked + i).w for i in kept[part]])
            yield (s.search.gain * np.array(slopes[part]))[:, None] * W  # g_i = d ΔF_i / 2μ · v_i

    spectrum = spectrum_of(
        estimates(), d, len(kept), tol=learning.tol, ridge=learning.ridge / unit / unit if unit else 0.0,
        dimension=run.domain.hull_dimension(d),
    )  # fmt: skip
    search = anisotropic(spectrum, run.domain.tangent, learning.whitening) if spectrum.rank else s.search
    value, spread = smoothed(s.last.value, s.last.spread, s.t, mean_value(_joined(values)))
    return _open(method, _skipped(method, s, len(values), nfev)._replace(
        search=search, stage=Stage.STEP, gradients=s.gradients._replace(unit=unit),
        last=s.last._replace(value=value, spread=spread),
    ))  # fmt: skip


def _joined(parts: Values) -> list[float]:
    return [value for part in parts for value in part]


def _slopes(unit: float, s: State, method: Method, delta: list[float]) -> tuple[float, list[float]]:
    """Slopes, and the unit that they are measured in: the one so far, or a larger one."""
    span = method.difference.span(s.mu, s.h)
    unit = unit_of(unit, max(delta, key=abs, default=0.0), span)
    return unit, [change / unit / span if unit > 0.0 else 0.0 for change in delta]


def unit_of(unit: float, change: float, span: float) -> float:
    """The power of two next to the slope change / span, or `unit` where that is steeper."""
    if abs(change) <= unit * span:
        return unit
    exponent = frexp(change)[1] - frexp(span)[1]
    return max(unit, 2.0 ** min(max(exponent, -1022), 1023))
