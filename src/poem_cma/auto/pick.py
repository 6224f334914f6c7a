"""The last comparison: which point is returned?

It has two calls in a hundred. In the first half all candidates are asked on common samples; the second half asks the
usual average, and of the others the one that seemed best, for they are what the question is about.
"""

from __future__ import annotations

from functools import cache
from math import inf, isfinite, log10, sqrt

import numpy as np

from poem_cma._types import Array
from poem_cma.auto.plausible import plausible
from poem_cma.auto.remarks import NO_END, NOTHING_BETTER, STILL_GROWING
from poem_cma.auto.state import DECAYS, DONE, AutoState, has
from poem_cma.core import Run, Values

__all__ = ["after_pick", "candidates", "finished", "in_question", "pick_calls", "pick_samples", "without_end"]

_CANDIDATES = len(DECAYS) + 3
_BEFORE, _X0 = len(DECAYS), _CANDIDATES - 1

_SHARE, _MOST_CALLS = 0.02, 2400  # of the budget
_FIRST_ROUND = 0.5  # of these calls
_FEWEST = 4  # samples
_CHANCE = 2.0  # standard errors that a candidate must be better by, where there are many samples
_BACK, _FEW = 2.0, 2.0  # standard errors that x_0 must be better by, for runs seldom make things worse; more where few
_HINT, _SURE = 0.5, 2.0  # standard errors of what slopes have said, to speak against x_0, or for it
_TINY = 1e-300
_FAR = 1e9  # times the size of x_0, or 1
_OFTEN = 3  # looks at the scale in a row that have found it too small


def candidates(s: AutoState) -> list[Array]:
    """The points of which the best is returned: averages, that before old samples were asked again, the last, x_0."""
    return [*s.averages, s.before, s.x, s.run.x0]


def in_question(s: AutoState) -> list[int]:
    """Which candidates are asked: first all, then the usual one and its rival."""
    if s.rival >= 0:
        return [s.picked, s.rival]
    return [i for i in range(_CANDIDATES) if i != _BEFORE or s.replayed]


def pick_calls(run: Run) -> int:
    """How many calls are kept for the last comparison; none in a short run."""
    return _calls(run.budget) if has(run, "pick") else 0


@cache
def _calls(budget: float) -> int:
    calls = int(min(_MOST_CALLS, _SHARE * budget)) if isfinite(budget) else 0
    return calls if calls >= _FEWEST * _CANDIDATES else 0


def pick_samples(s: AutoState) -> int:
    """On how many samples they are asked."""
    return _rounds(s)[s.rival >= 0]


def _rounds(s: AutoState) -> tuple[int, int]:
    calls, all_of_them = pick_calls(s.run), _CANDIDATES if s.replayed else _CANDIDATES - 1
    first = max(_FEWEST, int(_FIRST_ROUND * calls / all_of_them))
    return first, (calls - first * all_of_them) // 2


def after_pick(s: AutoState, values: Values) -> AutoState:
    """Return another candidate than the usual average only if it is better beyond chance."""
    asked, V = in_question(s), np.array(values)
    V = V[np.isfinite(V).all(axis=1)]
    usual = asked.index(s.picked)
    with np.errstate(over="ignore"):
        change = V - V[:, [usual]]
    change = change[plausible(np.abs(change).max(axis=1))] if len(V) else change
    s = s._replace(samples=s.samples + pick_samples(s))
    if s.rival >= 0:
        both = np.concatenate((s.values, change[:, 1 - usual]))[:, None]
        return finished(s._replace(picked=s.rival) if _at_worst(s, both, [s.rival])[0] < 0.0 else s)
    at_worst = _at_worst(s, change, asked)
    at_worst[usual] = inf
    best = int(at_worst.argmin())
    if _rounds(s)[1] > 0 and len(change):
        return s._replace(rival=asked[best], values=change[:, best])
    return finished(s._replace(picked=asked[best]) if at_worst[best] < 0.0 else s)


def _at_x0(s: AutoState, n: int) -> float:
    """How many standard errors x_0 must be better by, on n samples: it depends on what slopes have said of it.

    A convex F is higher at x than at x_0 by no more than <g, x - x_0>. All along the way there were far more of these
    than there are samples now, which may all be of a kind.
    """
    chance = sqrt(s.promised_squares)
    if s.promised < -_HINT * chance:
        return inf
    return 0.0 if s.promised > _SURE * chance else _BACK * (1.0 + _FEW / n)


def _at_worst(s: AutoState, change: Array, asked: list[int]) -> Array:
    """The mean change of F for each candidate, and so many standard errors more, in units of the largest change.

    The more samples, the smaller what is left to gain, and the more standard errors a difference must be worth.
    """
    n = len(change)
    if n < _FEWEST:
        return np.zeros(len(asked))
    change = change / (float(np.abs(change).max()) or 1.0)  # squares of 1e300 would overflow
    doubt = min(max(1.0, log10(n)), _CHANCE)
    errors = np.array([doubt if i != _X0 else _at_x0(s, n) for i in asked])
    spread = np.maximum(change.std(axis=0, ddof=1), _TINY)  # lest nothing is multiplied by infinity
    at_worst: Array = change.mean(axis=0) + errors / sqrt(n) * spread
    return at_worst


def finished(s: AutoState) -> AutoState:
    """The end, with a word on what went wrong."""
    remark = without_end(s.run, candidates(s)[s.picked]) or (STILL_GROWING if s.grown >= _OFTEN else "")
    if s.picked == _X0 and s.run.method.name != "rough":  # which has begun at a better point
        remark = NOTHING_BETTER
    return s._replace(stage=DONE, run=s.run._replace(remark=remark))


def without_end(run: Run, x: Array) -> str:
    """What is to be said where x is so far away that F may have no minimum."""
    far = float(np.abs(x - run.x0).max()) > _FAR * max(1.0, float(np.abs(run.x0).max()))
    return NO_END if far and not isfinite(run.domain.diameter) else ""
