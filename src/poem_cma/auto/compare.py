"""Comparisons on common samples: is the average better than x_0, and which point is returned?"""

from __future__ import annotations

from functools import cache
from math import inf, isfinite, log10, sqrt
from typing import Any

import numpy as np

from poem_cma._types import Array
from poem_cma.auto.plausible import plausible
from poem_cma.auto.remarks import NO_END, NO_PROGRESS, NOTHING_BETTER, STEPS, STILL_GROWING
from poem_cma.auto.scale import EVERY
from poem_cma.auto.state import CHECK, DECAYS, DONE, STEP, AutoState, even, has
from poem_cma.core import Method, Run, Values
from poem_cma.descent import DESCENT

__all__ = [
    "CANDIDATES", "DOUBT", "FIRST_CHECK", "LATER", "PAIRS", "SMALLER",
    "after_check", "after_pick", "candidates", "check_pairs", "checks", "excess_of", "finished", "first_check",
    "hand_over", "hand_over_noise", "hand_over_steps", "picks",
]  # fmt: skip

PAIRS = 8  # in a comparison with x_0 on the way
FIRST_CHECK = 0.05  # of the budget
DOUBT = 3.0  # standard errors that the average must be worse by, for the run to begin again
LATER = 3.0  # times as many calls
SMALLER = 0.25  # of the scale
_TO_BE_SURE = 32  # pairs, at least, in a second one
_CHANCE = 1.5  # standard errors that a candidate must be better by at the end, where there are many samples
_FAR = 1e9  # times the size of x_0, or 1
_OFTEN = 3  # looks at the scale in a row that have found it too small

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


def first_check(s: AutoState) -> float:
    """The calls after which the average of a run that begins now is compared with x_0 for the first time."""
    return s.nfev + FIRST_CHECK * s.run.budget if checks(s.run) else inf


def check_pairs(s: AutoState) -> int:
    """On how many samples the average is compared with x_0: on few now and then, on many where much depends on it.

    Few may miss the rare samples on which a mean lives.
    """
    many = checks(s.run)
    if isfinite(s.check_at):
        return max(many, _TO_BE_SURE) if s.alarmed else PAIRS
    return many


def after_check(s: AutoState, values: Values) -> Any:
    """Go on, unless the average is worse than x_0 beyond doubt, twice; or no better, where no scale was found.

    A convex F is higher at x than at x_0 by no more than <g, x - x_0>. Where the mean of these was negative, and F is
    higher all the same, it has steps, which short differences do not see: pairs far apart take over. Otherwise the
    scale was too large: the run begins again.
    """
    s = s._replace(stage=STEP, samples=s.samples + check_pairs(s))
    if not isfinite(s.check_at):
        change = np.array(values) @ np.array([-1.0, 1.0])
        change = change[np.isfinite(change)]
        return hand_over(s, NO_PROGRESS) if len(change) >= 4 and change.mean() >= 0.0 else s
    excess, doubt = excess_of(np.array(values))
    if not excess > DOUBT * doubt:
        return s._replace(alarmed=False, check_at=LATER * s.nfev)
    if not s.alarmed:
        return s._replace(alarmed=True, stage=CHECK)
    return hand_over_steps(s, STEPS) if s.promised < 0.0 else _begin_again(s)


def _begin_again(s: AutoState) -> AutoState:
    """From x_0, at a smaller scale."""
    x0, nothing = s.run.x0, even(0.0, s.x)
    return s._replace(
        x=x0, centre=x0, r=0.0, averages=np.tile(x0, (len(DECAYS), 1)), R=SMALLER * s.R, mu=SMALLER * s.mu, s=nothing,
        G=nothing, late=0.0, path_weight=0.0, radial=0.0, radial_squares=0.0, promised=0.0, rescale_at=EVERY * s.weight,
        alarmed=False, check_at=first_check(s),
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


def after_pick(s: AutoState, values: Values) -> AutoState:
    """Return another candidate than the usual average only if it is better beyond chance.

    The more samples, the smaller what is left to gain, and the more standard errors a difference must be worth.
    """
    V = np.array(values)
    V = V[np.isfinite(V).all(axis=1)]
    picked = s.picked
    if len(V) >= 4:
        with np.errstate(over="ignore"):
            E = V - V[:, [picked]]
        E = E[plausible(np.abs(E).max(axis=1))]
        E = E / (float(np.abs(E).max()) or 1.0)  # squares of 1e300 would overflow
        gain, error = E.mean(axis=0), E.std(axis=0, ddof=1) / sqrt(len(E))
        at_worst = gain + min(max(1.0, log10(len(E))), _CHANCE) * error
        picked = int(at_worst.argmin()) if at_worst.min() < 0.0 else picked
    return finished(s._replace(picked=picked, samples=s.samples + picks(s.run)))


def finished(s: AutoState) -> AutoState:
    """The end, with a word on what went wrong."""
    x, x0 = candidates(s)[s.picked], s.run.x0
    far = float(np.abs(x - x0).max()) > _FAR * max(1.0, float(np.abs(x0).max()))
    remark = STILL_GROWING if s.grown >= _OFTEN else ""
    if x is x0:  # also as the average before replays, of which there were none
        remark = NOTHING_BETTER
    elif far and not isfinite(s.run.domain.diameter):
        remark = NO_END
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


def hand_over_steps(s: AutoState, why: str, grain: float = 0.0) -> Any:
    """Pairs far apart take over, because F has steps; where their size is known, as far apart as they were seen."""
    begun = _begun(s, s.run.method.unshared, why)._replace(own=False, grain=grain)
    distance = s.step * s.mu
    return begun._replace(mu=distance, R=distance) if grain > 0.0 else begun


def _begun(s: AutoState, method: Method | None, why: str) -> Any:
    assert method is not None
    state = (method.algorithm or DESCENT).begin(method, s.run._replace(method=method, remark=why))
    return state._replace(asked=s.asked, samples=s.samples + len(s.values), nfev=s.nfev)
