"""Comparisons on common samples: is the average better than x_0, and which point is returned?"""

from __future__ import annotations

from functools import cache
from math import isfinite, sqrt
from typing import Any

import numpy as np

from poem_cma._types import Array
from poem_cma.auto.plausible import plausible
from poem_cma.auto.state import DECAYS, DONE, STEP, AutoState, has
from poem_cma.core import Method, Run, Values
from poem_cma.descent import DESCENT

__all__ = [
    "CANDIDATES", "NOTHING_BETTER", "NO_PROGRESS", "after_check", "after_pick", "candidates", "checks", "finished",
    "hand_over", "hand_over_noise", "picks",
]  # fmt: skip

NOTHING_BETTER = (
    "no point was found that is better than x0: give a larger budget, the typical size of each variable (scale=), or "
    "noise that the points of a probe share (sample=)"
)
_STILL_GROWING = (
    "the run was still moving further away from x0, faster and faster, when the budget ended: a larger budget, or the "
    "typical size of each variable (scale=), should help"
)
_OFTEN = 3  # looks at the scale in a row that have found it too small
NO_PROGRESS = (
    "auto found no scale at which F falls and handed over to POEM: the variables may be of different size (scale=), "
    "or the budget be too small"
)

CANDIDATES = len(DECAYS) + 3  # the averages, the one before samples were asked again, the last iterate, and x_0


def picks(run: Run) -> int:
    """How many samples the last comparison takes: two calls in a hundred."""
    return _samples(run.budget, CANDIDATES, 4) if has(run, "pick") else 0


def checks(run: Run) -> int:
    """How many samples the comparison with x_0 takes: two calls in a hundred; none in a short run."""
    return _samples(run.budget, 2, 8) if has(run, "check") else 0


@cache
def _samples(budget: float, points: int, fewest: int) -> int:
    n = int(min(400, 0.02 * budget / points)) if isfinite(budget) else 0
    return n if n >= fewest else 0


def after_check(s: AutoState, values: Values) -> Any:
    """Go on unless the average is no better than x_0."""
    change = np.array(values) @ np.array([-1.0, 1.0])
    change = change[np.isfinite(change)]
    s = s._replace(stage=STEP, samples=s.samples + checks(s.run))
    return hand_over(s, NO_PROGRESS) if len(change) >= 4 and change.mean() >= 0.0 else s


def after_pick(s: AutoState, values: Values) -> AutoState:
    """Return another candidate than the usual average only if it is better by more than a standard error."""
    V = np.array(values)
    V = V[np.isfinite(V).all(axis=1)]
    picked = s.picked
    if len(V) >= 4:
        with np.errstate(over="ignore"):
            E = V - V[:, [picked]]
        E = E[plausible(np.abs(E).max(axis=1))]
        E = E / (float(np.abs(E).max()) or 1.0)  # squares of 1e300 would overflow
        gain, error = E.mean(axis=0), E.std(axis=0, ddof=1) / sqrt(len(E))
        gain = np.where(gain < -error, gain, 0.0)
        picked = int(gain.argmin()) if gain.min() < 0.0 else picked
    return finished(s._replace(picked=picked, samples=s.samples + picks(s.run)))


def finished(s: AutoState) -> AutoState:
    """The end, with a word on what went wrong."""
    nothing = candidates(s)[s.picked] is s.run.x0  # also as the average before replays, of which there were none
    remark = NOTHING_BETTER if nothing else _STILL_GROWING if s.grown >= _OFTEN else ""
    return s._replace(stage=DONE, run=s.run._replace(remark=remark))


def candidates(s: AutoState) -> list[Array]:
    """The points of which the best is returned."""
    return [*s.averages, s.before, s.x, s.run.x0]


def hand_over(s: AutoState, why: str) -> Any:
    """POEM takes over from x_0: its smoothing radius is large, and its scale grows where this one's may not."""
    return _begun(s, s.run.method.fallback, why)


def hand_over_noise(s: AutoState, why: str) -> Any:
    """Pairs far apart take over, whose noise need not be shared."""
    return _begun(s, s.run.method.unshared, why)


def _begun(s: AutoState, method: Method | None, why: str) -> Any:
    assert method is not None
    state = (method.algorithm or DESCENT).begin(method, s.run._replace(method=method, remark=why))
    return state._replace(asked=s.asked, samples=s.samples + len(s.values), nfev=s.nfev)
