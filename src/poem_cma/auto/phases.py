"""The schedule: what is asked in each phase, and which phase comes next.

    scan -> gate -> near steps, far generations or, without noise, quasi-Newton steps -> judge -> done

Looks at the progress come in between. If there was none, the gate is asked again. A search whose spread has vanished
begins again with a new scan around its result.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, sqrt
from typing import Any

import numpy as np

from poem_cma._types import Array
from poem_cma.auto import averages, gate, judge, progress, scan
from poem_cma.auto.far import generation
from poem_cma.auto.far.state import Far
from poem_cma.auto.far.state import begin as far_from
from poem_cma.auto.messages import remark
from poem_cma.auto.near import phase as near_phase
from poem_cma.auto.near import replay
from poem_cma.auto.near.state import AGAIN, OFF, TEST, Near
from poem_cma.auto.near.state import begin as near_from
from poem_cma.auto.near.walk import radius
from poem_cma.auto.noiseless import phase as exact_phase
from poem_cma.auto.noiseless.slopes import lengths
from poem_cma.auto.noiseless.state import KINK, MINIMUM, Exact
from poem_cma.auto.noiseless.state import begin as exact_from
from poem_cma.auto.request import Draws, Request
from poem_cma.auto.state import CHECK, DONE, EXACT, FAR, GATE, JUDGE, MEANS, NEAR, SCAN, AutoState, Shown
from poem_cma.run.algorithm import smoothed_value

__all__ = ["advance", "go_on", "plan"]

#: A search whose spread is this part of its first one has come to its end.
COLLAPSED = 1e-9
#: If near steps have made the result clearly worse, the scale is divided by this.
SHORTER = 10.0
#: Where samples are evaluated again, their worth is looked at after this share of the evaluations that are left.
HALF = 0.5
#: Where slopes jump, a search that has found less by this part of a value is worth another one.
SAME = 1e-9
#: That search looks around the end at this part of the first distance.
AROUND = 0.01
#: A search by slopes needs so many gradients; for more variables their points, two for each, are too large.
GRADIENTS, MOST_SLOPES = 4, 3000
#: So many results of earlier searches are remembered.
FORMER = 3
#: Before near steps the scan is repeated on means over budget / 500 samples, 4 to 16: a length costs 5% at most.
PER_SAMPLE, FEWEST, MOST = 500, 4, 16


def plan(s: AutoState, draws: Draws) -> list[Request]:
    """What is asked now; nothing at the end."""
    run, address = s.run, s.clock.asked
    if s.phase in (SCAN, MEANS):
        return scan.requests(s.scan, run, draws, address)
    if s.phase == GATE:
        return gate.requests(s.x, s.gate.h, run, draws, address)
    if s.phase == NEAR:
        return near_phase.requests(near_of(s), run, draws, address)
    if s.phase == FAR:
        return generation.requests(far_of(s), run, draws, address)
    if s.phase == EXACT:
        return exact_phase.requests(exact_of(s), run)
    return judge.requests(s.judge) if s.phase in (CHECK, JUDGE) else []


def advance(s: AutoState, values: list[Array], draws: Draws, address: int) -> AutoState:
    """The next state, from one whose clock was set forward; its requests had the random numbers of `address`."""
    return _in_time(_AFTER[s.phase](s, values, draws, address), draws)


def regime(s: AutoState) -> str | None:
    """The regime that the method prescribes, if it does."""
    told: str | None = getattr(s.run.method.algorithm, "regime", None)
    return told


def near_of(s: AutoState) -> Near:
    """The search of a run that takes near steps."""
    assert isinstance(s.search, Near)
    return s.search


def far_of(s: AutoState) -> Far:
    """The search of a run that takes far generations."""
    assert isinstance(s.search, Far)
    return s.search


def exact_of(s: AutoState) -> Exact:
    """The search of a run without noise."""
    assert isinstance(s.search, Exact)
    return s.search


# After each phase.


def _after_scan(s: AutoState, values: list[Array], draws: Draws, address: int) -> AutoState:
    s = s._replace(scan=scan.update(s.scan, s.run, draws, address, values))
    if not s.scan.over:
        return s
    x, h = s.scan.centre, s.scan.h
    if s.phase == MEANS:
        return _near(s, x, h)
    if regime(s) == "far" or (regime(s) is None and gate.cost(s.run) > s.run.budget):
        return _far(s, x, h)
    return s._replace(phase=GATE, search=s.search._replace(x=x), gate=s.gate._replace(h=h))


def _after_gate(s: AutoState, values: list[Array], *_: Any) -> AutoState:
    s = s._replace(gate=gate.decide(s.gate, s.x, s.gate.h, values))
    if s.gate.noiseless and regime(s) is None and _slopes_affordable(s):
        if s.averages.t > 0:  # a search by pairs that has not come to its end says nothing of a kink
            return _exact(s._replace(lowest=inf), s.search.x, s.gate.h)
        return _exact(s, s.scan.centre, s.gate.h)
    near = s.gate.near if regime(s) is None else regime(s) == "near"
    if s.averages.t > 0:  # in the middle of a search: go on with it, or change to the other regime
        if isinstance(s.search, Near if near else Far):
            return s._replace(phase=NEAR if near else FAR)
        x = s.average
        s = s._replace(former=(*s.former, x)[-FORMER:])
        return _near(s, x, s.gate.h) if near else _far(s, x, s.gate.h)
    samples = int(min(s.run.budget / PER_SAMPLE, MOST))
    if not near or samples < FEWEST:
        return (_near if near else _far)(s, s.scan.centre, s.scan.h)
    again = scan.begin(s.run, s.scan.centre, s.scan.h, samples)
    return s._replace(phase=MEANS, scan=again._replace(found=s.scan.found, gain=s.scan.gain))


def _slopes_affordable(s: AutoState) -> bool:
    """Whether a few gradients by differences along all variables fit into the budget, and their points into memory."""
    d = len(s.run.x0)
    return d <= MOST_SLOPES and GRADIENTS * (d + 2) <= s.run.budget - s.clock.nfev


def _after_near(s: AutoState, values: list[Array], draws: Draws, address: int) -> AutoState:
    before = near_of(s)
    near, moved = near_phase.advance(before, s.run, draws, address, values)
    s = s._replace(search=near)
    if not moved:
        return s
    step, slope = near.R / sqrt(near.G) if near.G else 0.0, sqrt(max(near.G - before.G, 0.0))
    return _look(_moved(s, values, step, radius(near, max(near.walk.axes, 1)), slope))


def _after_far(s: AutoState, values: list[Array], draws: Draws, address: int) -> AutoState:
    far = generation.advance(far_of(s), s.run, draws, address, values)
    s = _moved(s._replace(search=far), values, far.spread, far.spread, generation.slope(far, values))
    return _scan_again(s) if far.spread < COLLAPSED * far.first else _look(s)


def _after_check(s: AutoState, values: list[Array], *_: Any) -> AutoState:
    s = s._replace(judge=judge.update(s.judge, values))
    if judge.requests(s.judge):
        return s
    near, chosen = isinstance(s.search, Near), s.judge.chosen
    best = s.judge.points[chosen]
    worse = not s.judge.left[-1]
    s = s._replace(progress=progress.looked(s.judge, s.clock.nfev), phase=NEAR if near else FAR)
    if chosen or regime(s) == "far":
        return s
    if near and worse:
        return _near(s, best, near_of(s).R / SHORTER)
    if near and near_of(s).memory.mode == AGAIN:
        return s._replace(search=near_of(s)._replace(memory=near_of(s).memory._replace(mode=OFF)))
    if regime(s) is not None:
        return s
    h = radius(near_of(s), len(best)) if near else far_of(s).spread * sqrt(len(best))
    return s._replace(phase=GATE, gate=s.gate._replace(h=h))


def _after_exact(s: AutoState, values: list[Array], *_: Any) -> AutoState:
    exact, same = exact_phase.advance(exact_of(s), s.run, values)
    if not same:
        return s._replace(phase=GATE, gate=s.gate._replace(noisy=True))
    moved = exact.x is not s.search.x
    s = s._replace(search=exact)
    if moved:
        shown = s.shown._replace(distance=float(lengths(exact, s.run).max()), slope=float(np.sqrt(exact.g @ exact.g)))
        t = s.clock.t + 1
        value, spread = smoothed_value(s.shown.value, s.shown.spread, s.clock.t, [exact.F * exact.unit])
        shown = shown._replace(value=value, spread=spread, step=float(np.sqrt(exact.step @ exact.step)))
        kept = averages.begin(exact.x)._replace(t=s.averages.t + 1)
        s = s._replace(averages=kept, clock=s.clock._replace(t=t), shown=shown)
    value = exact.F * exact.unit
    if exact.end == KINK and s.lowest - value <= SAME * abs(value):  # nor has a search by pairs found less
        exact = exact._replace(end=MINIMUM)
        s = s._replace(search=exact)
    if exact.end == KINK:
        s = s._replace(lowest=value)
        return _far(s._replace(former=(*s.former, exact.x)[-FORMER:]), exact.x, AROUND * exact.reach)
    if exact.end == MINIMUM:
        candidates = [exact.x, *s.former, s.scan.found, s.run.x0]
        return s._replace(phase=JUDGE, judge=judge.begin(candidates, 2 * len(candidates)))
    return s


def _after_judge(s: AutoState, values: list[Array], *_: Any) -> AutoState:
    s = s._replace(judge=judge.update(s.judge, values))
    if isinstance(s.search, Exact) and s.search.end == MINIMUM and s.judge.chosen:  # another one was lower
        return _exact(s, s.judge.points[s.judge.chosen], s.search.reach)
    return s


# What a phase begins with.


def _near(s: AutoState, x: Array, h: float) -> AutoState:
    R = min(h, 0.5 * s.run.domain.diameter)
    return _searched(
        s._replace(phase=NEAR, search=near_from(x.astype(s.run.x0.dtype, copy=False), R, NOISE * s.gate.own)), x
    )


#: Differences of values below so many standard deviations of their own noise are noise.
NOISE = 4.0


def _far(s: AutoState, x: Array, h: float) -> AutoState:
    return _searched(s._replace(phase=FAR, search=far_from(x, h, s.scan.informative)), x)


def _exact(s: AutoState, x: Array, h: float) -> AutoState:
    return _searched(s._replace(phase=EXACT, search=exact_from(x, h)), x)


def _searched(s: AutoState, x: Array) -> AutoState:
    """The beginning of a search at x."""
    return s._replace(averages=averages.begin(x), progress=progress.begin(s.run, x, s.clock.nfev))


def _scan_again(s: AutoState) -> AutoState:
    x = s.average
    return s._replace(
        phase=SCAN, former=(*s.former, x)[-FORMER:], scan=scan.begin(s.run, x)._replace(found=s.scan.found),
        averages=averages.begin(x), search=far_from(x, 0.0),
    )  # fmt: skip


def _look(s: AutoState) -> AutoState:
    """The state, or a look at the progress if one is due."""
    if not progress.due(s.progress, s.run, s.clock.nfev):
        return s
    return s._replace(phase=CHECK, judge=progress.comparison(s.progress, s.run, s.average))


def _moved(s: AutoState, values: list[Array], step: float, distance: float, slope: float) -> AutoState:
    """The state after a step: the averages, the clock and what is shown."""
    t = s.clock.t
    value, spread = smoothed_value(s.shown.value, s.shown.spread, t, [f for F in values for f in F.tolist()])
    shown = Shown(value, spread, step, distance, slope)
    kept = averages.add(s.averages, s.search.x)
    return s._replace(clock=s.clock._replace(t=t + 1), averages=kept, shown=shown)


def _in_time(s: AutoState, draws: Draws) -> AutoState:
    """The state, or the last comparison if the evaluations that are left do not suffice for anything else."""
    if s.phase == CHECK and not judge.requests(s.judge):
        return _in_time(_after_check(s, []), draws)
    if s.phase == JUDGE and not judge.requests(s.judge):
        return s._replace(phase=DONE, run=s.run._replace(remark=remark(s._replace(phase=DONE))))
    if s.phase in (JUDGE, DONE):
        return s
    left = s.run.budget - s.clock.nfev - judge.share(s.run)
    if s.phase == NEAR:
        last = left <= replay.SHARE * s.run.budget
        before = near_of(s)
        near = near_phase.opened(before, s.run, draws, s.clock.asked, s.clock.samples, last)
        fresh = near.walk.address != before.walk.address and near.walk.place < 0
        if near.memory.mode == TEST and before.memory.mode != TEST:  # old samples may mislead: look at half-time
            look = s.progress._replace(next=s.clock.nfev + HALF * left, x=s.average)
            s = s._replace(former=(*s.former, s.average)[-FORMER:], progress=look)
        s = s._replace(search=near, clock=s.clock._replace(samples=s.clock.samples + fresh))
    if sum(r.size for r in plan(s, draws)) <= left:
        return s
    candidates = [s.average, s.search.x, *s.averages.points[1:], *s.former, s.scan.found, s.run.x0]
    judged = judge.begin(candidates, int(s.run.budget - s.clock.nfev))
    return _in_time(s._replace(phase=JUDGE, judge=judged), draws)


def go_on(s: AutoState, draws: Draws) -> AutoState:
    """The state of a run that goes on with another budget: its last comparison is made again at the new end."""
    if s.phase in (JUDGE, DONE) and not s.converged:
        phase = SCAN if not s.averages.t else _SEARCHES[type(s.search)]
        s = s._replace(phase=phase, judge=judge.idle(len(s.run.x0)), run=s.run._replace(remark=""))
    return _in_time(s, draws)


_SEARCHES: dict[type, str] = {Near: NEAR, Far: FAR, Exact: EXACT}

_AFTER: dict[str, Callable[[AutoState, list[Array], Draws, int], AutoState]] = {
    SCAN: _after_scan, MEANS: _after_scan, GATE: _after_gate, NEAR: _after_near, FAR: _after_far,
    EXACT: _after_exact,    CHECK: _after_check, JUDGE: _after_judge,
}  # fmt: skip
