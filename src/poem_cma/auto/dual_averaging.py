"""`auto`: dual averaging from x_0, at a scale and in a metric that it learns.

    x_{t+1} = argmin over X of  <s_t, x> + sqrt(Gamma_t) / (2R) |x - x_0|^2_D

with s the sum of the gradients, D a diagonal metric, Gamma the sum of their squares in it, and R the scale. The
gradients come from the estimators; a step may take several stages on one xi. Five kinds of stage:

START   a few estimates at x_0, with a tiny step;
RAY     values along the ray -s, further and further out, give the first scale;
STEP    one estimate around x, then a new x;
CHECK   where no scale was found: is the average better than x_0? If not, POEM takes over, whose scale can grow;
PICK    at the end, the averages, the last iterate and x_0 are compared on common samples.
"""

from __future__ import annotations

from math import inf, isfinite, nan
from typing import Any

import numpy as np

from poem_cma._types import Array
from poem_cma.auto.compare import CANDIDATES, after_check, after_pick, checks, picks
from poem_cma.auto.start import after_ray, after_start, on_ray
from poem_cma.auto.state import CHECK, DECAYS, DONE, PICK, RAY, START, STEP, AutoState, empty
from poem_cma.auto.steps import after_step, with_room
from poem_cma.auto.walks import Walks
from poem_cma.core import Method, Run, Values
from poem_cma.domains import Box
from poem_cma.randomness import Streams

__all__ = ["DUAL_AVERAGING", "DualAveraging"]


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
            metric=np.ones(d), squares=empty(d), tested=empty(d), active=empty(d), order=free_axes(run),
            kind="haar", choice="haar", q=q, trial=False, trial_calls=0, step_calls=0, active_trials=0,
            costs=empty(0), gradients=empty(0, d), subspace=empty(0, d), shares=empty(0), use_subspace=False,
            values=np.full((probes, 1 + q), nan), radii=empty(0), ray_values=empty(0), settled=True, picked=1,
            eta=0.0, g_norm=0.0, value=nan, value_spread=0.0, asked=0, samples=0, nfev=0,
        )  # fmt: skip
        return with_room(s)

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
            return [(j, [0, 1]) for j in range(checks(s.run))]
        if s.stage == PICK:
            return [(j, list(range(CANDIDATES))) for j in range(picks(s.run))]
        return []

    def points(self, method: Method, s: AutoState, i: int, walks: Walks) -> tuple[Array, list[int]]:
        """The points of probe i of the stage, and the numbers of their xi's."""
        j, places = self._asked(s, walks)[i]
        if s.stage == RAY:
            points = np.array([on_ray(s, r) for r in s.radii])
        elif s.stage == CHECK:
            points = np.stack((s.run.x0, s.average))
        elif s.stage == PICK:
            points = np.concatenate((s.averages, s.x[None], s.run.x0[None]))
        else:
            points = walks(s, j).points(places)
        return points, [s.samples + j] * len(points)

    def advance(self, method: Method, s: AutoState, values: Values, walks: Walks, nfev: int) -> Any:
        """The next state, from the values of the stage."""
        asked = self._asked(s, walks)
        calls = nfev - s.nfev
        s = s._replace(asked=s.asked + len(asked), nfev=nfev)
        if s.stage == RAY:
            after = after_ray(s, values)
            return self._fit(after, walks) if isinstance(after, AutoState) else after
        if s.stage == CHECK:
            return after_check(s, values)
        if s.stage == PICK:
            return after_pick(s, values)
        v = s.values.copy()
        for (j, places), F in zip(asked, values, strict=True):
            v[j, places] = [f if isfinite(f) else inf for f in F]  # infinite: not to be had
        s = s._replace(values=v, step_calls=s.step_calls + calls)
        if not self._asked(s, walks):
            s = after_start(s, walks) if s.stage == START else after_step(s, walks)
        return self._fit(s, walks)

    def _fit(self, s: AutoState, walks: Walks) -> AutoState:
        """End the run in time: a stage that does not fit in the budget gives way to the last one."""
        last = picks(s.run) * CANDIDATES
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


def free_axes(run: Run) -> Any:
    """The axes that a walk may take: all, but for variables that the domain holds fixed."""
    d = len(run.x0)
    if isinstance(run.domain, Box):
        return np.flatnonzero(run.domain.tangent(np.ones(d)) > 0.0)
    return np.arange(d)


DUAL_AVERAGING = DualAveraging()
