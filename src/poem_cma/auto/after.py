"""What follows from the values of each phase."""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

import numpy as np

from poem_cma._types import Array
from poem_cma.auto import averages, axes, gate, judge, progress, scan, sensitivity
from poem_cma.auto.far import generation, noise
from poem_cma.auto.far.state import Far
from poem_cma.auto.far.state import again as far_again
from poem_cma.auto.far.state import moved as far_moved
from poem_cma.auto.near import phase as near_phase
from poem_cma.auto.near.state import AGAIN, OFF, Near
from poem_cma.auto.near.state import again as near_again
from poem_cma.auto.near.step import TERMS, moved_to
from poem_cma.auto.near.walk import radius
from poem_cma.auto.noiseless import phase as exact_phase
from poem_cma.auto.noiseless.slopes import lengths
from poem_cma.auto.noiseless.state import KINK, MINIMUM, Exact
from poem_cma.auto.request import Draws
from poem_cma.auto.searches import (
    FORMER,
    begin_exact,
    begin_far,
    begin_near,
    exact_of,
    far_of,
    moved,
    near_of,
    near_searched,
    regime,
    scan_again,
    searched,
)
from poem_cma.auto.state import AXES, CHECK, EXACT, FAR, GATE, JUDGE, NEAR, SCAN, TRIAL, AutoState
from poem_cma.run.algorithm import smoothed_value

__all__ = ["AFTER", "after_check", "after_trial"]

#: A search has ended when its spread is this fraction of the first one.
COLLAPSED = 1e-9
#: The scale is divided by this when near steps have made the result clearly worse.
SHORTER = 4.0
#: At a kink another search is worthwhile if one by pairs has not won this fraction of the value.
SAME = 1e-9
#: Distance of that search, in units of the first distance.
AROUND = 0.01
#: A look at near steps costs this part of the evaluations so far at most.
LOOK = 0.05
#: A quasi-Newton search needs this many gradients, and at most this many variables (memory).
GRADIENTS, MOST_SLOPES = 4, 3000


def after_scan(s: AutoState, values: list[Array], draws: Draws, address: int) -> AutoState:
    """After the values at a length: the next length, the gate, or a search."""
    s = s._replace(scan=scan.update(s.scan, s.run, draws, address, values))
    if not s.scan.over:
        return s
    x, h = s.scan.centre, s.scan.h
    if regime(s) == "far" or (regime(s) is None and not gate.possible(s.run)):
        return begin_far(s, x, h)
    return s._replace(phase=GATE, search=s.search._replace(x=x), gate=gate.prepared(s.gate, x, h, s.scan))


def after_gate(s: AutoState, values: list[Array], *_: Any) -> AutoState:
    """After a test of the gate: a search begins, goes on, or changes its regime."""
    s = s._replace(gate=gate.decide(s.gate, values, s.clock.nfev))
    if gate.unsure(s.gate, s.run):
        return s._replace(gate=s.gate._replace(few=False, asked=s.gate.asked - 1))
    if s.gate.noiseless and regime(s) is None and _slopes_affordable(s):
        if s.averages.t > 0:  # a search by pairs that has not come to its end says nothing of a kink
            return begin_exact(s._replace(lowest=inf), s.search.x, s.gate.h)
        return begin_exact(s, s.scan.centre, s.gate.h)
    near = s.gate.near if regime(s) is None else regime(s) == "near"
    if s.averages.t > 0:  # in the middle of a search: go on with it, or change to the other regime
        if isinstance(s.search, Near if near else Far):
            return look_along_axes(s) if axes.affordable(s.run, s.search) else s._replace(phase=NEAR if near else FAR)
        x = s.average
        s = s._replace(former=(*s.former, x)[-FORMER:])
        return begin_near(s, x, s.gate.h) if near else begin_far(s, x, s.gate.h)
    return (begin_near if near else begin_far)(s, s.scan.centre, s.scan.h)


def _slopes_affordable(s: AutoState) -> bool:
    """Whether a few gradients by differences along all variables fit into the budget, and their points into memory."""
    d = len(s.run.x0)
    return d <= MOST_SLOPES and GRADIENTS * (d + 2) <= s.run.budget - s.clock.nfev


def after_near(s: AutoState, values: list[Array], draws: Draws, address: int) -> AutoState:
    """After a part of a near step."""
    before = near_of(s)
    near, stepped = near_phase.advance(before, s.run, draws, address, values)
    if not stepped:
        return s._replace(search=near)
    s = s._replace(search=near, slopes=sensitivity.exact(s.slopes, near.s - before.s))
    step, slope = near.R / sqrt(near.G) if near.G else 0.0, sqrt(max(near.G - before.G, 0.0))
    return _look(moved(s, values, step, radius(near, max(near.walk.axes, 1)), slope))


def after_far(s: AutoState, values: list[Array], draws: Draws, address: int) -> AutoState:
    """After a generation."""
    far = generation.advance(far_of(s), s.run, draws, address, values)
    s = moved(s._replace(search=far), values, far.spread, far.spread, generation.slope(far, values))
    if far.spread < COLLAPSED * far.first:
        return scan_again(s)
    h = far.spread * sqrt(len(far.x))
    if (
        regime(s) is None
        and gate.possible(s.run)
        and gate.again(s.gate, s.run, h, noise.rules(far.noise), s.clock.nfev)
    ):
        return _doubted(s, h)
    if regime(s) is None and far.spread < far.looked / gate.SHRUNK and axes.affordable(s.run, s.search):
        return look_along_axes(s)
    return _look(s)


def _doubted(s: AutoState, h: float) -> AutoState:
    """A test of the gate at distance h, or, where noise leaves no doubt about its answer, a look along single axes."""
    if s.gate.quiet:
        return s._replace(phase=GATE, gate=gate.prepared(s.gate, s.x, h, s.scan))
    s = s._replace(gate=s.gate._replace(asked=s.gate.asked + 1, at=s.clock.nfev))
    return look_along_axes(s) if axes.affordable(s.run, s.search) else s


def look_along_axes(s: AutoState) -> AutoState:
    """A look along single axes from the result so far."""
    search = s.search._replace(looked=s.search.spread) if isinstance(s.search, Far) else s.search
    return s._replace(phase=AXES, search=search)


def after_axes(s: AutoState, values: list[Array], *_: Any) -> AutoState:
    """After a look along single axes: the best points are compared with the result."""
    points = axes.promising(s.average, s.scan.h, s.run, s.search, values[0])
    return s._replace(phase=TRIAL, judge=judge.begin(points, axes.samples(s.run)))


def after_trial(s: AutoState, values: list[Array], *_: Any) -> AutoState:
    """After a round of that comparison: a point that is surely better is where the search goes on."""
    s = s._replace(judge=judge.update(s.judge, values)) if values else s
    if judge.requests(s.judge):
        return s
    s = s._replace(phase=NEAR if isinstance(s.search, Near) else FAR)
    if not s.judge.chosen or s.judge.left[0]:
        return s
    x, found = s.average, s.judge.points[s.judge.chosen]
    s = s._replace(former=(*s.former, x)[-FORMER:], averages=averages.begin(found))
    if isinstance(s.search, Near):
        return s._replace(search=moved_to(s.search, found))
    return s._replace(search=far_moved(far_of(s), found, found - x))


def after_check(s: AutoState, values: list[Array], *_: Any) -> AutoState:
    """After a round of a look at the progress."""
    s = s._replace(judge=judge.update(s.judge, values))
    if judge.requests(s.judge):
        return s
    best = s.judge.points[s.judge.chosen]
    s = s._replace(progress=progress.looked(s.judge, s.clock.nfev))
    if isinstance(s.search, Near):
        return _near_checked(s._replace(phase=NEAR), best)
    s = s._replace(phase=FAR)
    if not s.judge.left[-1]:
        return searched(s._replace(search=far_again(far_of(s), best)), best)
    if regime(s) is not None or s.run.domain.variables is not None or s.judge.chosen:
        return s
    return _doubted(s, far_of(s).spread * sqrt(len(best)))


def _near_checked(s: AutoState, best: Array) -> AutoState:
    """A near search goes on, begins again with a shorter scale or, where progress has stopped, looks elsewhere."""
    near, chosen = near_of(s), s.judge.chosen
    if not chosen and near.memory.mode == AGAIN:  # go on with fresh samples from where that began
        return s._replace(search=moved_to(near, best)._replace(memory=near.memory._replace(mode=OFF)))
    if not s.judge.left[-1] or _likely_worse(s.judge.values):
        return near_searched(s._replace(search=near_again(near, best, near.R / SHORTER)), best)
    early = s.clock.nfev < progress.FIRST_SHARE * s.run.budget < inf
    if regime(s) is not None or s.run.domain.variables is not None or early or s.progress.improving:
        return s
    if chosen or not gate.affordable(s.gate, s.run):
        return look_along_axes(s) if axes.affordable(s.run, s.search) else s
    return _doubted(s, radius(near, len(best)))


def after_exact(s: AutoState, values: list[Array], *_: Any) -> AutoState:
    """After the values of a quasi-Newton step."""
    exact, same = exact_phase.advance(exact_of(s), s.run, values)
    if not same:
        return s._replace(phase=GATE, gate=s.gate._replace(noisy=True))
    stepped = exact.x is not s.search.x
    s = s._replace(search=exact)
    if stepped:
        s = s._replace(slopes=sensitivity.exact(s.slopes, exact.g * exact.unit))
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
        return begin_far(s._replace(former=(*s.former, exact.x)[-FORMER:]), exact.x, AROUND * exact.reach)
    if exact.end == MINIMUM:
        candidates = [exact.x, *s.former, s.scan.found, s.run.x0]
        return s._replace(phase=JUDGE, judge=judge.begin(candidates, 2 * len(candidates)))
    return s


def after_judge(s: AutoState, values: list[Array], *_: Any) -> AutoState:
    """After a round of the last comparison."""
    s = s._replace(judge=judge.update(s.judge, values))
    if isinstance(s.search, Exact) and s.search.end == MINIMUM and s.judge.chosen:  # another one was lower
        return begin_exact(s, s.judge.points[s.judge.chosen], s.search.reach)
    return s


def _look(s: AutoState) -> AutoState:
    """The state, or a look at the progress if one is due."""
    too_soon = isinstance(s.search, Near) and s.search.t < TERMS
    if too_soon or not progress.due(s.progress, s.run, s.clock.nfev):
        return s
    compared = progress.comparison(s.progress, s.run, s.average)
    if isinstance(s.search, Near):
        compared = compared._replace(most=min(compared.most, max(int(LOOK * s.clock.nfev), 2 * judge.FIRST)))
    return s._replace(phase=CHECK, judge=compared)


def _likely_worse(F: Array) -> bool:
    """Whether the last candidate is likely worse than the first: by the mean, or by the signs if tails are heavy."""
    D = F[-1] - F[0]
    D = D[np.isfinite(D)]
    signs = float(np.sign(D).sum()) / sqrt(max(len(D), 1))
    return judge.t_value(F[-1], F[0]) > judge.LIKELY or (D.sum() > 0.0 and signs > judge.SURE)


AFTER = {
    SCAN: after_scan, GATE: after_gate, NEAR: after_near, FAR: after_far, EXACT: after_exact,
    CHECK: after_check, AXES: after_axes, TRIAL: after_trial, JUDGE: after_judge,
}  # fmt: skip
