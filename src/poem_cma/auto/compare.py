"""Comparisons with x_0 on common samples, on the way: is the average better?"""

from __future__ import annotations

from math import inf, isfinite, sqrt
from typing import Any

import numpy as np

from poem_cma._types import Array
from poem_cma.auto.further import TIMES, at_larger_scale, blind
from poem_cma.auto.plausible import plausible
from poem_cma.auto.remarks import NO_PROGRESS, STEPS
from poem_cma.auto.scale import EVERY
from poem_cma.auto.state import CHECK, DECAYS, FURTHER, STEP, WORSE, AutoState, even, has
from poem_cma.core import Method, Run, Values
from poem_cma.descent import DESCENT

__all__ = [
    "DOUBT", "FIRST_CHECK", "LATER", "PAIRS", "SMALLER",
    "after_check", "check_pairs", "checks", "excess_of", "first_check",
    "hand_over", "hand_over_noise", "hand_over_steps",
]  # fmt: skip

PAIRS = 8  # in a comparison with x_0 on the way
FIRST_CHECK = 0.05  # of the budget
DOUBT = 3.0  # standard errors that the average must be worse by, for the run to begin again
LATER = 3.0  # times as many calls
SMALLER = 0.25  # of the scale
_HINT, _SURE = 1.0, 2.0  # standard errors of a first impression, and of one that is believed
_FURTHER_PAIRS = 24  # at most, where points further out are compared, too
_TO_BE_SURE = 32  # pairs, at least, in a second one
_SHARE, _MOST_CHECKS, _FEWEST_CHECKS = 0.02, 400, 8  # of the calls, and of the samples, in a large comparison


def checks(run: Run) -> int:
    """How many samples the comparison with x_0 takes: two calls in a hundred; none in a short run."""
    n = int(min(_MOST_CHECKS, _SHARE * run.budget / 2)) if isfinite(run.budget) and has(run, "check") else 0
    return n if n >= _FEWEST_CHECKS else 0


def first_check(s: AutoState) -> float:
    """The calls after which the average of a run that begins now is compared with x_0 for the first time."""
    return s.nfev + FIRST_CHECK * s.run.budget if checks(s.run) else inf


def check_pairs(s: AutoState) -> int:
    """On how many samples the average is compared with x_0: on few now and then, on many where much depends on it.

    Few may miss the rare samples on which a mean lives.
    """
    many = checks(s.run)
    if not isfinite(s.check_at):
        return many
    first = max(PAIRS, min(many // 4, _FURTHER_PAIRS)) if blind(s) else PAIRS
    return {"": first, WORSE: max(many, _TO_BE_SURE), FURTHER: max(many // 4, PAIRS)}[s.alarmed]


def after_check(s: AutoState, values: Values) -> Any:
    """Go on, unless the average is worse than x_0, or better further out, twice; or no better where no scale was found.

    A convex F is higher at x than at x_0 by no more than <g, x - x_0>. Where the sum of these was negative by more than
    chance, and F is higher all the same, it has steps, which short differences do not see: pairs far apart take over.
    Otherwise the scale was too large: the run begins again.
    """
    s = s._replace(stage=STEP, samples=s.samples + check_pairs(s))
    if not isfinite(s.check_at):
        change = np.array(values) @ np.array([-1.0, 1.0])
        change = change[np.isfinite(change)]
        return hand_over(s, NO_PROGRESS) if len(change) >= 4 and change.mean() >= 0.0 else s
    V = np.array(values)
    excess, doubt = excess_of(V[:, :2])
    worse = excess > 0.0 and s.promised > _SURE * sqrt(s.promised_squares)  # as slopes have said all along
    if worse or excess > DOUBT * doubt:
        if s.alarmed != WORSE:
            return s._replace(alarmed=WORSE, stage=CHECK)
        steps = s.promised < -_SURE * sqrt(s.promised_squares)
        return hand_over_steps(s, STEPS) if steps else _begin_again(s)
    if s.alarmed != FURTHER and _better(V, 1, 2, _HINT):
        return s._replace(alarmed=FURTHER, stage=CHECK)
    s = s._replace(alarmed="", check_at=LATER * s.nfev)
    if V.shape[1] == 2 + len(TIMES) and _better(V, 1, 2, _SURE):
        return at_larger_scale(s, TIMES[_better(V, 2, 3, _SURE)])._replace(check_at=first_check(s))
    return s


def _better(V: Array, i: int, j: int, errors: float) -> bool:
    """Whether values in the j-th column, if there is one, are lower than in the i-th by so many standard errors."""
    if j >= V.shape[1]:
        return False
    excess, doubt = excess_of(V[:, [i, j]])
    return excess < -errors * doubt


def _begin_again(s: AutoState) -> AutoState:
    """From x_0, at a smaller scale."""
    x0, nothing = s.run.x0, even(0.0, s.x)
    return s._replace(
        x=x0, centre=x0, r=0.0, averages=np.tile(x0, (len(DECAYS), 1)), R=SMALLER * s.R, mu=SMALLER * s.mu, s=nothing,
        G=nothing, late=0.0, path_weight=0.0, radial=0.0, radial_squares=0.0, promised=0.0, promised_squares=0.0,
        rescale_at=EVERY * s.weight,
        alarmed="", check_at=first_check(s),
    )  # fmt: skip


def excess_of(F: Array) -> tuple[float, float]:
    """By how much values in the second column are higher than in the first on the mean, and its standard error."""
    with np.errstate(over="ignore", invalid="ignore"):
        change = F[:, 1] - F[:, 0]
    change = change[np.isfinite(change)]
    change = change[plausible(np.abs(change))]
    if len(change) < 4:
        return 0.0, inf
    size = float(np.abs(change).max()) or 1.0  # squares of 1e300 would overflow
    mean, doubt = float((change / size).mean()), float((change / size).std(ddof=1)) / sqrt(len(change))
    return (mean, doubt) if isfinite(mean) else (0.0, inf)


def hand_over(s: AutoState, why: str) -> Any:
    """POEM takes over from x_0: its smoothing radius is large, and its scale grows where this one's may not."""
    return _begun(s, s.run.method.fallback, why)


def hand_over_noise(s: AutoState, why: str, noise: float) -> Any:
    """Pairs far apart take over, whose noise need not be shared, after values that differed by so much."""
    return _begun(s, s.run.method.unshared, why)._replace(noise=noise)


def hand_over_steps(s: AutoState, why: str, distance: float = 0.0, grain: float = 0.0) -> Any:
    """Pairs far apart take over, because F has steps; as far apart as these were seen, where their size is known."""
    begun = _begun(s, s.run.method.unshared, why)._replace(own=False, grain=grain)
    return begun._replace(mu=distance, R=distance) if grain > 0.0 else begun


def _begun(s: AutoState, method: Method | None, why: str) -> Any:
    assert method is not None
    state = (method.algorithm or DESCENT).begin(method, s.run._replace(method=method, remark=why))
    return state._replace(asked=s.asked, samples=s.samples + len(s.values), nfev=s.nfev)
