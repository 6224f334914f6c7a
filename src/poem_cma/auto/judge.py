"""Is it better? Candidates are compared on common fresh samples, as many as their noise asks for."""

from __future__ import annotations

from math import copysign, log1p, sqrt
from typing import NamedTuple

import numpy as np

from poem_cma._types import Array, Partial, Points, Series
from poem_cma.auto.request import Request, at
from poem_cma.run.algorithm import Run

__all__ = ["HINT", "LIKELY", "SURE", "Judge", "begin", "idle", "requests", "share", "t_value", "update"]

#: Levels of evidence for all comparisons, in standard errors.
HINT, LIKELY, SURE = 1.0, 2.0, 3.0
#: Share of the budget for the last comparison, and samples of its first round.
SHARE, FIRST = 0.06, 8
#: Least number of evaluations, and of samples for each candidate. One sample shows no error.
LEAST, PAIR = 6, 2


class Judge(NamedTuple):
    """A comparison of candidates."""

    points: Points  # (n, d); the first is the one that is returned unless values speak against it
    values: Partial  # (n, samples so far); NaN where a candidate was dropped or an evaluation failed
    left: Series  # (n,) of bool: which are still compared
    chosen: int
    most: int  # evaluations that it may use


def idle(d: int) -> Judge:
    """No comparison."""
    return Judge(np.zeros((0, d)), np.zeros((0, 0)), np.zeros(0, dtype=bool), 0, 0)


def share(run: Run) -> int:
    """Evaluations that are kept for the last comparison."""
    return max(LEAST, int(SHARE * run.budget)) if np.isfinite(run.budget) else 0


def begin(points: list[Array], most: int) -> Judge:
    """A comparison of these points, equal ones left out; of the first and the last ones, if it may not use more."""
    kept: list[Array] = []
    for x in points:
        if np.isfinite(x).all() and not any(np.array_equal(x, y) for y in kept):
            kept.append(x)
    if len(kept) > (affordable := max(most // PAIR, 2)):
        kept = [kept[0], *kept[1 - affordable :]]
    n = len(kept)
    return Judge(np.array(kept), np.zeros((n, 0)), np.ones(n, dtype=bool), 0, most)


def requests(judge: Judge) -> list[Request]:
    """The next round: as many samples as there were so far, on those that are left. None at the end."""
    n, k = int(judge.left.sum()), judge.values.shape[1]
    rounds = min(max(k, FIRST), judge.most // max(n, 1))  # as many again
    if n < 2 or rounds < 1:
        return []
    return [at(judge.points[judge.left], j) for j in range(rounds)]


def update(judge: Judge, values: list[Array]) -> Judge:
    """Drop candidates that are clearly worse than another one, and choose among the others."""
    fresh = np.full((len(judge.points), len(values)), np.nan)
    fresh[judge.left] = np.array(values).T
    told = np.concatenate([judge.values, fresh], axis=1)
    chosen, left = 0, judge.left.copy()
    for j in range(1, len(left)):
        if left[j] and better(told[j], told[chosen]):
            chosen = j
    for j in range(len(left)):
        if left[j] and j != chosen and t_value(told[j], told[chosen]) > SURE:
            left[j] = False
    return judge._replace(values=told, left=left, chosen=chosen, most=judge.most - sum(map(len, values)))


def t_value(a: Array, b: Array) -> float:
    """The mean of a - b in standard errors, corrected for few samples. A failed evaluation is worse than any other.

    It is robust: one outlier, however large, makes no more than one standard error.
    """
    both = ~(np.isnan(a) & np.isnan(b))
    a, b = a[both], b[both]
    D = a - b
    known = D[np.isfinite(D)]
    worst = float(np.abs(known).max()) if len(known) else 1.0
    D = np.where(np.isnan(a), worst, np.where(np.isnan(b), -worst, D))
    if not len(D) or not D.any():
        return 0.0
    if len(D) < 2:
        return 0.0
    D = D / np.abs(D).max()  # squares of 1e300 would overflow
    error = float(D.std(ddof=1)) / sqrt(len(D))
    return _normal(float(D.mean()) / max(error, 1e-12), len(D) - 1)


def _normal(t: float, freedom: int) -> float:
    """The normal deviate that is as rare as a value t of Student's distribution (Wallace 1959).

    The standard error of few samples is uncertain itself: with two samples t is below -2 in 15% of all comparisons of
    equal points.
    """
    scale = (8.0 * freedom + 1.0) / (8.0 * freedom + 3.0)
    return copysign(scale * sqrt(freedom * log1p(t * t / freedom)), t)


def better(a: Array, b: Array) -> bool:
    """Whether a is lower than b: likely by the mean, or by a hint that the median does not contradict."""
    t = t_value(a, b)
    with np.errstate(invalid="ignore"):
        D = a - b
    known = D[~np.isnan(D)]  # there may be none, where one of the two has failed on every sample
    return t < -LIKELY or (t < -HINT and len(known) > 0 and float(np.median(known)) <= 0.0)
