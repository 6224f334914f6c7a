"""`auto` as an algorithm: states, requests, and the next state."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite, nan

import numpy as np

from poem_cma._types import Array
from poem_cma.auto import averages, gate, judge, phases, progress, resume, scan, sensitivity
from poem_cma.auto.far.state import begin as far_from
from poem_cma.auto.request import HUGE, Draws, Request
from poem_cma.auto.searches import far_of
from poem_cma.auto.state import DONE, FAR, KINDS, NEAR, SCAN, AutoState, Clock, Shown
from poem_cma.run.algorithm import Learned, Method, Run, Values

__all__ = ["AUTO", "ONLY_FAR", "ONLY_NEAR", "Auto"]


class Auto:
    """The algorithm behind the methods `auto`, `near` and `far`."""

    record = AutoState
    kinds = KINDS

    def __init__(self, regime: str | None = None) -> None:
        self.regime = regime  # the one that is always taken; None lets the gate decide

    def randoms(self, method: Method, run: Run, seed: int) -> Draws:
        """Random numbers by address."""
        return Draws(seed, run)

    def begin(self, method: Method, run: Run, learned: Learned | None = None) -> AutoState:
        """The state before the first evaluation."""
        x = np.asarray(run.x0, dtype=float)
        shown = Shown(nan, 0.0, 0.0, 0.0, 0.0)
        s = AutoState(
            run, SCAN, Clock(0, 0, 0, 0), scan.begin(run, x), gate.begin(), far_from(x, 0.0), averages.begin(x),
            progress.begin(run, x, 0), (), judge.idle(len(x)), shown,
            sensitivity.begin(len(x)),
        )  # fmt: skip
        if learned is None:
            return s
        s = resume.continued(s, learned)
        return phases.go_on(s, Draws(0, run))

    def learned(self, method: Method, s: AutoState) -> tuple[float, resume.Kept]:
        """What another run that continues from the result needs."""
        return resume.kept(s)

    def _plan(self, s: AutoState, draws: Draws) -> list[Request]:
        return draws.plan(s, phases.plan)

    def stage(self, method: Method, s: AutoState, draws: Draws) -> list[int]:
        """How many points each request of the stage has."""
        return [request.size for request in self._plan(s, draws)]

    def points(self, method: Method, s: AutoState, i: int, draws: Draws) -> tuple[Iterable[Array], list[int]]:
        """The points of a request, and the numbers of their xi's."""
        plan = self._plan(s, draws)
        request, dtype = plan[i], s.run.x0.dtype
        points = request.points()
        if dtype != np.float64:
            points = (s.run.domain.project(x.astype(dtype)) for x in points)
        if s.run.paired:
            number = s.clock.samples + request.sample if request.sample >= 0 else -1 - request.sample
            return points, [number] * request.size
        first = s.clock.samples + sum(r.size for r in plan[:i])
        return points, list(range(first, first + request.size))

    def advance(self, method: Method, s: AutoState, values: Values, draws: Draws, nfev: int) -> AutoState:
        """The next state, from the values of all requests."""
        plan = self._plan(s, draws)
        fresh = 1 + max(request.sample for request in plan) if s.run.paired else sum(request.size for request in plan)
        clock = s.clock._replace(asked=s.clock.asked + len(plan), samples=s.clock.samples + max(fresh, 0), nfev=nfev)
        told = [np.array(F, dtype=float) for F in values]
        with np.errstate(all="ignore"):  # values near 1e300, and points that failed
            if not clock.unit and (unit := _unit(told)):
                clock = clock._replace(unit=unit)
                s = s._replace(shown=s.shown._replace(value=s.shown.value / unit, spread=s.shown.spread / unit))
            if clock.unit:
                told = [F / clock.unit for F in told]
                told = [np.where(np.abs(F) < HUGE, F, np.nan) for F in told]
            if s.phase == FAR:
                points = np.asarray(plan[0].points())
                s = s._replace(slopes=sensitivity.pairs(s.slopes, far_of(s), points, told[0]))
            return phases.advance(s._replace(clock=clock), told, draws, s.clock.asked)

    def ahead(self, method: Method, s: AutoState, flight: list[AutoState]) -> AutoState | None:
        """Steps are not asked ahead: a generation is a batch for many workers."""
        return None

    def told(self, method: Method, s: AutoState, values: Values, draws: Draws, nfev: int) -> tuple[AutoState, bool]:
        """A stage is complete with its values."""
        return self.advance(method, s, values, draws, nfev), True

    def landed(
        self, method: Method, s: AutoState, asked: AutoState, values: Values, draws: Draws, nfev: int, alone: bool
    ) -> AutoState:
        """The state after a stage that is complete."""
        return asked

    def output(self, s: AutoState) -> Array:
        """The point to use."""
        x: Array = s.judge.points[s.judge.chosen] if s.phase == DONE and len(s.judge.points) else s.averages.points[0]
        return x.astype(s.run.x0.dtype, copy=False)

    def base(self, method: Method) -> None:
        """No value is needed by all the others."""

    def usable(self, method: Method, F: list[float]) -> bool:
        """Whether failures have left anything of a request."""
        return any(map(isfinite, F))

    def with_budget(self, method: Method, s: AutoState, budget: float, draws: Draws) -> AutoState:
        """The state of a run that goes on with another budget: its last comparison is made again at the new end."""
        return phases.go_on(s._replace(run=s.run._replace(budget=budget)), draws)


def _unit(values: list[Array]) -> float:
    """A power of two near the median of the differences that are not zero; zero if there is none.

    Squares of values are then far from the limits of floating point, whatever the unit of F.
    """
    D = np.abs(np.concatenate([F[1:] - F[0] for F in values]))
    D = D[np.isfinite(D) & (D > 0.0)]
    return float(2.0 ** np.floor(np.log2(np.median(D)))) if len(D) else 0.0


AUTO, ONLY_NEAR, ONLY_FAR = Auto(), Auto(NEAR), Auto(FAR)
