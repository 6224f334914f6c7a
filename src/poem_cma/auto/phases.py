"""The schedule: what is asked in each phase, and which phase comes next.

    scan -> gate -> near steps, far generations or, without noise, quasi-Newton steps -> judge -> done

Looks at the progress come in between. If there was none, the gate is asked again, and single axes are looked along. A
search whose spread has vanished begins again with a new scan around its result.
"""

from __future__ import annotations

from poem_cma._types import Array
from poem_cma.auto import axes, gate, judge, resume, scan
from poem_cma.auto.after import AFTER, after_check, after_trial
from poem_cma.auto.far import generation
from poem_cma.auto.far.state import Far
from poem_cma.auto.messages import remark
from poem_cma.auto.near import phase as near_phase
from poem_cma.auto.near.state import TEST, Near
from poem_cma.auto.noiseless import phase as exact_phase
from poem_cma.auto.noiseless.state import Exact
from poem_cma.auto.request import Draws, Request
from poem_cma.auto.searches import FORMER, exact_of, far_of, near_of
from poem_cma.auto.state import AXES, CHECK, DONE, EXACT, FAR, GATE, JUDGE, NEAR, SCAN, TRIAL, AutoState

__all__ = ["advance", "go_on", "plan"]

#: Repeated samples are checked after this share of the remaining evaluations.
HALF = 0.5


def plan(s: AutoState, draws: Draws) -> list[Request]:
    """What is asked now; nothing at the end."""
    run, address = s.run, s.clock.asked
    if s.phase == SCAN:
        return scan.requests(s.scan, run, draws, address)
    if s.phase == GATE:
        return gate.requests(s.gate, s.x, run, draws, address)
    if s.phase == NEAR:
        return near_phase.requests(near_of(s), run, draws, address)
    if s.phase == FAR:
        return generation.requests(far_of(s), run, draws, address)
    if s.phase == EXACT:
        return exact_phase.requests(exact_of(s), run)
    if s.phase == AXES:
        return axes.requests(s.average, s.scan.h, run, s.search)
    return judge.requests(s.judge) if s.phase in (CHECK, TRIAL, JUDGE) else []


def advance(s: AutoState, values: list[Array], draws: Draws, address: int) -> AutoState:
    """The next state, from one whose clock was set forward; its requests had the random numbers of `address`."""
    return _in_time(AFTER[s.phase](s, values, draws, address), draws)


def _in_time(s: AutoState, draws: Draws) -> AutoState:
    """The state, or the last comparison if the evaluations that are left do not suffice for anything else."""
    if s.phase == CHECK and not judge.requests(s.judge):
        return _in_time(after_check(s, []), draws)
    if s.phase == TRIAL and not judge.requests(s.judge):
        return _in_time(after_trial(s, []), draws)
    if s.phase == JUDGE and not judge.requests(s.judge):
        return s._replace(phase=DONE, run=s.run._replace(remark=remark(s._replace(phase=DONE))))
    if s.phase in (JUDGE, DONE):
        return s
    left = s.run.budget - s.clock.nfev - judge.share(s.run)
    if s.phase == NEAR:
        before = near_of(s)
        near = near_phase.opened(before, s.run, draws, s.clock.asked, s.clock.samples, left)
        fresh = near.walk.address != before.walk.address and near.walk.place < 0
        if near.memory.mode == TEST and before.memory.mode != TEST:  # old samples may mislead: look at half-time
            look = s.progress._replace(next=s.clock.nfev + HALF * left, x=s.average)
            s = s._replace(former=(*s.former, s.average)[-FORMER:], progress=look)
        s = s._replace(search=near, clock=s.clock._replace(samples=s.clock.samples + fresh))
    if sum(r.size for r in plan(s, draws)) <= left:
        return s
    last = [] if s.phase == NEAR else [s.search.x]  # of a near search it is the average and noise
    averaged = [*resume.mixed(s), s.average, *last, *s.averages.points[1:]]
    candidates = [s.run.domain.rounded(x) for x in (*averaged, s.progress.x, *s.former, s.scan.found, s.run.x0)]
    judged = judge.begin(candidates, int(s.run.budget - s.clock.nfev))
    return _in_time(s._replace(phase=JUDGE, judge=judged), draws)


def go_on(s: AutoState, draws: Draws) -> AutoState:
    """The state of a run that goes on with another budget: its last comparison is made again at the new end."""
    if s.phase in (JUDGE, DONE) and not s.converged:
        phase = SCAN if not s.averages.t else _SEARCHES[type(s.search)]
        s = s._replace(phase=phase, judge=judge.idle(len(s.run.x0)), run=s.run._replace(remark=""))
    return _in_time(s, draws)


_SEARCHES: dict[type, str] = {Near: NEAR, Far: FAR, Exact: EXACT}
