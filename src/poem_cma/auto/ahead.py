"""Steps that are asked before the one under way is complete."""

from __future__ import annotations

from poem_cma.auto.choose import usual_calls
from poem_cma.auto.pick import pick_calls
from poem_cma.auto.replay import PLACES, remembered
from poem_cma.auto.state import REPLAY, STEP, WALK, AutoState
from poem_cma.auto.steps import next_step, spent

__all__ = ["step_ahead", "taken_up"]


def step_ahead(s: AutoState, flight: list[AutoState]) -> AutoState | None:
    """Where the step after those in flight begins, as seen from s; None if it must wait for them.

    How many calls those will take is not known yet: they count with the most. Near the end of the budget a walk gets no
    more than twice what one usually takes; where that is not enough, it makes do with coarser differences.
    """
    if s.stage != STEP or s.nfev >= s.check_at or (not s.settled and spent(s)):
        return None
    last = flight[-1]
    s = s._replace(
        kind=last.kind, q=last.q, trial=last.trial, values=last.values, samples=last.samples, before=last.before,
        replayed=last.replayed + (len(last.values) if last.kind == REPLAY else 0),
        trial_calls=s.trial_calls + sum(a.values.size // len(a.values) for a in flight if a.trial),
        nfev=s.nfev + int(sum(_most(a) for a in flight)),
    )  # fmt: skip
    s = next_step(s)
    left = s.run.budget - pick_calls(s.run) - s.nfev
    if _most(s) > left and s.kind == WALK:
        s = s._replace(most_calls=2 * usual_calls(s) * len(s.values))
    return s if _most(s) <= left else None


def _most(s: AutoState) -> float:
    """The calls that a step may take."""
    if s.kind == REPLAY:
        return sum(PLACES if remembered(s, j) is not None else s.q + 1 for j in range(len(s.values)))
    return min(s.most_calls, s.values.size)


def taken_up(s: AutoState, asked: AutoState) -> AutoState:
    """s, about to land the step that was asked from an earlier state, with all values told."""
    return s._replace(
        kind=asked.kind, q=asked.q, trial=asked.trial, values=asked.values, samples=asked.samples, mu=asked.mu,
        before=asked.before, step_calls=asked.step_calls, eps=min(s.eps, asked.eps),
    )  # fmt: skip
