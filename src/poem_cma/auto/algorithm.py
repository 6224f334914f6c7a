"""`auto`: descent, or dual averaging, at a scale and in a metric that it learns.

    x_{t+1} = argmin over X of  <g_t, x> + sqrt(Gamma_t / 2) / R |x - x_t|^2_D    (descent)
    x_{t+1} = argmin over X of  <s_t, x> + sqrt(Gamma_t / 2) / R |x - x_0|^2_D    (dual averaging)

with g the gradient and s the sum of all, D a diagonal metric, Gamma the sum of the squared gradients in it, and R the
scale. Descent forgets where it came from, which is better where nothing is in the way; dual averaging presses against
the bounds of a domain, which is better where the solution lies there. The gradients come from the estimators; a step
may take several stages on one xi. Seven kinds of stage:

START   a few estimates at x_0, with a tiny step;
RAY     values along the ray they point to, further and further out, give the first scale;
PROVE   each of them is asked on the ray that the others point to: is that scale theirs, or the function's?
STEP    one estimate around x, then a new x; the last fifth of them asks old samples again;
RACE    where two metrics are tried, their averages are compared after some steps with each;
CHECK   is the average worse than x_0? Then the run begins again at a smaller scale, or goes on with pairs far apart;
        is it better further out, where its distance says little? Then the scale grows; and is it better at all, where
        no scale was found? If not, POEM takes over, whose scale can grow;
PICK    at the end, the averages, the last iterate and x_0 are compared on common samples.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, isfinite, nan
from typing import Any

import numpy as np

from poem_cma._types import Array
from poem_cma.auto.ahead import step_ahead, taken_up
from poem_cma.auto.choose import too_dear
from poem_cma.auto.compare import after_check, check_pairs
from poem_cma.auto.estimators import step_length
from poem_cma.auto.further import further_points
from poem_cma.auto.pick import after_pick, candidates, finished, in_question, pick_calls, pick_samples
from poem_cma.auto.prove import after_proof, proof_places, proof_point
from poem_cma.auto.race import after_race, race_pairs, rival_average
from poem_cma.auto.ray import after_ray, on_ray, ray_asked, ray_places
from poem_cma.auto.replay import sample_number
from poem_cma.auto.scale import first_distance
from poem_cma.auto.start import after_start, first_estimates, with_samples_enough
from poem_cma.auto.state import (
    CHECK,
    DECAYS,
    HAAR,
    PICK,
    PROVE,
    RACE,
    RAY,
    REPLAY,
    START,
    STEP,
    WALK,
    AutoState,
    empty,
    even,
    has,
)
from poem_cma.auto.steps import after_step, next_step, onward, with_room
from poem_cma.auto.walks import Walks, samples_first
from poem_cma.core import Method, Run, Values
from poem_cma.domains import Box
from poem_cma.randomness import Streams

__all__ = ["AUTO", "Auto"]

_FEWEST_DIGITS, _MOST_DIGITS = 4, 11  # of numbers that were printed; with fewer F has steps
_FLOAT32, _FLOAT64 = float(np.finfo(np.float32).eps), float(np.finfo(float).eps)


class Auto:
    """The algorithm, without any state of its own."""

    record = AutoState

    def randoms(self, method: Method, run: Run, seed: int) -> Walks:
        """What turns random numbers into probes."""
        return Walks(Streams(seed))

    def begin(self, method: Method, run: Run) -> AutoState:
        """The state before the first call."""
        x0, d = run.x0, len(run.x0)
        tiny = first_distance(run)
        order = free_axes(run)
        kind, q, probes = first_estimates(run, len(order))
        zero = even(0.0, x0)
        s = AutoState(
            run=run, stage=START, t=0, x=x0, centre=x0, r=0.0, mu=tiny, s=zero, G=zero, late=0.0, unit=0.0, R=tiny,
            dual=False, radial=0.0, radial_squares=0.0, promised=0.0, promised_squares=0.0, check_at=inf,
            alarmed="", lap=0, alike=0, low=0, high=0, aside=empty(0, d), aside_numbers=empty(0), weight=0.0,
            path_weight=0.0, last_weight=0.0, rescale_at=0.0, grown=0,
            averages=np.array([x0] * len(DECAYS)), metric=even(1.0, x0), by_units=False, squares=zero, tested=zero,
            active=zero, order=order, kind=kind, choice=HAAR, q=q, trial=kind == WALK, trial_calls=0, step_calls=0,
            most_calls=inf, parallel=False, active_trials=0, costs=empty(0), gradients=empty(0, d),
            subspace=empty(0, d), shares=empty(0), learning=False, use_subspace=False, inside=0.0, outside=0.0,
            agreed=0, turn=zero, turns=0, overlap=0.0, memory=empty(0, d), numbers=np.zeros(0, dtype=int), kept=0,
            replayed=0, ridges=True, along=0.0, beside=0.0, before=x0, penalised=False, penalty=empty(2),
            hinted=empty(2), looks=0, eps=_FLOAT32, absurd=0, sparse=False, step=step_length(_FLOAT32),
            values=np.full((probes, 1 + q), nan), still=False, stairs=empty(2), own=empty(0, d), rays=empty(0, d),
            radii=empty(0), ray_values=empty(0, 0), ray_errors=empty(0, 0), favoured=0, between=False,
            exact=has(run, "newton") and run.method.noiseless is not None, settled=True, picked=0, rival=-1, eta=0.0,
            g_norm=0.0, value=nan, value_spread=0.0, asked=0, samples=0, nfev=0,
        )  # fmt: skip
        return with_room(s)

    def stage(self, method: Method, s: AutoState, walks: Walks) -> list[int]:
        """How many points each probe of the stage has; none when the run is over."""
        self._asked(s, walks)
        return walks.sizes

    def _asked(self, s: AutoState, walks: Walks) -> list[tuple[int, list[int]]]:
        """Which xi is asked at which places; worked out once for each state."""
        if walks.asked_by is not s:
            walks.asked, walks.asked_by = self._places(s, walks), s
            walks.sizes = [len(places) for _, places in walks.asked]
        return walks.asked

    def _places(self, s: AutoState, walks: Walks) -> list[tuple[int, list[int]]]:
        if s.stage in (START, STEP):
            asked = []
            values = s.values if s.stage == STEP else s.values[: samples_first(s)]
            for j, v in enumerate(values):
                if places := walks.needed(s, j, v):
                    asked.append((j, places))
            return asked
        if s.stage == RAY:
            return ray_asked(s)
        if s.stage == PROVE:
            return [(j, list(range(len(proof_places(s))))) for j in range(len(s.values))]
        if s.stage == RACE:
            return [(j, [0, 1]) for j in range(race_pairs(s.run))]
        if s.stage == CHECK:
            return [(j, list(range(2 + len(further_points(s))))) for j in range(check_pairs(s))]
        if s.stage == PICK:
            return [(j, list(range(len(in_question(s))))) for j in range(pick_samples(s))]
        return []

    def points(self, method: Method, s: AutoState, i: int, walks: Walks) -> tuple[Iterable[Array], list[int]]:
        """The points of probe i of the stage, and the numbers of their xi's."""
        j, places = self._asked(s, walks)[i]
        points: Iterable[Array]
        if s.stage in (START, STEP):
            points = walks(s, j).points(places)
        elif s.stage == RAY:
            rays = ray_places(s)
            points = (np.array(on_ray(s, *rays[place])) for place in places)
        elif s.stage == PROVE:
            points = (np.array(proof_point(s, j, i, r)) for i, r in proof_places(s))
        else:
            points = (x.copy() for x in _compared(s))
        number = sample_number(s, j) if s.stage == STEP and s.kind == REPLAY else s.samples + j
        return points, [number] * len(places)

    def advance(self, method: Method, s: AutoState, values: Values, walks: Walks, nfev: int) -> Any:
        """The next state, from the values of the stage."""
        if s.stage in (START, STEP):
            s, complete = self.told(method, s, values, walks, nfev)
            if complete and s.stage == STEP:
                return self.landed(method, s, s, values, walks, nfev, alone=True)
            after = after_start(s, walks) if complete else s
            return self._fit(after, walks) if isinstance(after, AutoState) else after
        eps = s.eps if s.eps != _FLOAT32 else _rounding(values)
        s = s._replace(asked=s.asked + len(self._asked(s, walks)), nfev=nfev, eps=eps)
        if s.stage in (RAY, PROVE):
            after = after_ray(s, values) if s.stage == RAY else after_proof(s, values)
            return self._fit(after, walks) if isinstance(after, AutoState) else after
        if s.stage == RACE:
            return self._fit(next_step(after_race(s, values)), walks)
        if s.stage == CHECK:
            after = after_check(s, values)
            return self._fit(with_room(after), walks) if isinstance(after, AutoState) else after
        return after_pick(s, values)

    def told(self, method: Method, s: AutoState, values: Values, walks: Walks, nfev: int) -> tuple[AutoState, bool]:
        """An estimate goes on while it needs more values."""
        asked = self._asked(s, walks)
        everything = sum(walks.sizes) == s.values.size
        s = s._replace(
            asked=s.asked + len(asked), nfev=nfev, values=_filled(s.values, asked, values, everything),
            eps=s.eps if s.eps != _FLOAT32 else _rounding(values), step_calls=s.step_calls + nfev - s.nfev,
        )  # fmt: skip
        if s.penalised or s.kind != HAAR:
            s = walks.without_penalty(s, asked)
        if s.stage == START:
            s = with_samples_enough(s)
        complete = everything or not self._asked(s, walks) or (s.trial and too_dear(s, sum(walks.sizes)))
        return s, complete or s.step_calls + sum(walks.sizes) > s.most_calls

    def landed(
        self, method: Method, s: AutoState, asked: AutoState, values: Values, walks: Walks, nfev: int, alone: bool
    ) -> Any:
        """The state after a step whose estimates are complete."""
        if asked is not s:
            s = taken_up(s, asked)._replace(nfev=nfev)
        s = after_step(s, asked, walks)
        if not alone:
            return s
        after = onward(s)
        return self._fit(after, walks) if isinstance(after, AutoState) else after

    def ahead(self, method: Method, s: AutoState, flight: list[AutoState]) -> AutoState | None:
        """Where the step after those in flight begins; None if it must wait for them."""
        return step_ahead(s, flight)

    def _fit(self, s: AutoState, walks: Walks) -> AutoState:
        """End the run in time: a stage that does not fit in the budget gives way to the last one."""
        last = pick_calls(s.run)
        left = s.run.budget - last - s.nfev
        if s.stage in (START, STEP) and s.values.size <= left:
            return s  # whichever places are asked
        if s.stage in (START, RAY, PROVE, STEP, RACE, CHECK) and sum(self.stage(None, s, walks)) > left:  # type: ignore[arg-type]
            s = s._replace(samples=s.samples + len(s.values))
            return s._replace(stage=PICK) if last else finished(s)
        return s

    def base(self, method: Method) -> None:
        """No value is shared by all others."""

    def usable(self, method: Method, F: list[float]) -> bool:
        """Whether failures have left anything of a probe."""
        return any(map(isfinite, F))

    def output(self, s: AutoState) -> Array:
        """The point to use."""
        x: Array = candidates(s)[s.picked]
        return x


def _compared(s: AutoState) -> Iterable[Array]:
    """The points that are asked on every xi where points are compared."""
    if s.stage == RACE:
        return rival_average(s), s.average
    if s.stage == CHECK:
        return s.run.x0, s.average, *further_points(s)
    return [candidates(s)[i] for i in in_question(s)]


def _filled(values: Array, asked: list[tuple[int, list[int]]], told: Values, everything: bool) -> Array:
    """What is known of the step's samples, with what was told."""
    if everything and isfinite(sum(map(sum, told))):
        return np.array(told)
    v = values.copy()
    for (j, places), F in zip(asked, told, strict=True):
        row = v[j]
        for place, f in zip(places, F, strict=True):
            row[place] = f if isfinite(f) else inf  # infinite: not to be had
    return v


def _rounding(values: Values) -> float:
    """To which precision F is rounded: that of float32, if all values are such numbers, or that of a printed number."""
    known = [f for F in values for f in F if isfinite(f)]
    with np.errstate(over="ignore"):
        single = all(float(np.float32(f)) == f for f in known)
    if single:
        return _FLOAT32
    digits = max(map(_digits, known))
    return 10.0**-digits if _FEWEST_DIGITS <= digits <= _MOST_DIGITS else _FLOAT64


def _digits(f: float) -> int:
    """How many digits a number has, as it is printed."""
    return len(repr(float(f)).partition("e")[0].replace(".", "").strip("-0")) or 1


def free_axes(run: Run) -> Any:
    """The axes that a walk may take: all, but for variables that the domain holds fixed."""
    d = len(run.x0)
    if isinstance(run.domain, Box):
        return np.flatnonzero(run.domain.tangent(np.ones(d)) > 0.0)
    return np.arange(d)


AUTO = Auto()
