"""Pairs far apart: is the average worse than x_0?

The first scale comes from a few pairs, in which the mean's slope cannot be told from a sample's own; in many dimensions
it may be many times too large, and a run would spend its calls on finding back. So the average is compared with x_0 now
and then, and the run begins again at a smaller scale where it is worse beyond doubt. The last comparison says which of
the two is returned.
"""

from __future__ import annotations

from math import inf

import numpy as np

from poem_cma._types import Array
from poem_cma.auto.apart_state import CHECK, DONE, HUGE, STEP, ApartState
from poem_cma.auto.compare import FIRST_CHECK, PAIRS, SMALLER, checks, excess_of
from poem_cma.auto.plausible import plausible
from poem_cma.auto.remarks import NOTHING_BETTER
from poem_cma.core import Run

__all__ = ["after_check", "after_pick", "check_pairs", "first_check", "last_pairs", "with_check"]


_FEWEST_PAIRS = 4
_DOUBT = 2.5  # standard errors that the average must be worse by, for the run to begin again
_LATER = 1.7  # times as many calls


def last_pairs(run: Run) -> int:
    """How many pairs the last comparison takes: a call in a hundred; none in a short run."""
    n = checks(run) // 2
    return n if n >= _FEWEST_PAIRS else 0


def check_pairs(run: Run) -> int:
    """How many pairs a comparison on the way takes."""
    return min(PAIRS, last_pairs(run))


def first_check(s: ApartState) -> float:
    """The calls after which the average of a run that begins now is compared with x_0 for the first time."""
    return s.nfev + FIRST_CHECK * s.run.budget if last_pairs(s.run) else inf


def with_check(s: ApartState) -> ApartState:
    """The state, at a comparison if it is time for one."""
    return s._replace(stage=CHECK) if s.stage == STEP and s.nfev >= s.check_at else s


def after_check(s: ApartState, F: Array) -> ApartState:
    """Begin again at a smaller scale where the average is worse."""
    excess, doubt = excess_of(F)
    s = _noise_here(s, F[:, 1])
    if not excess > (_DOUBT if len(F) >= PAIRS else 2.0 * _DOUBT) * doubt:
        return s._replace(stage=STEP, check_at=_LATER * s.nfev)
    x0, nothing = s.run.x0, 0.0 * s.run.x0
    return s._replace(
        stage=STEP, x=x0, centre=x0, average=x0, r=0.0, R=SMALLER * s.R, mu=SMALLER * s.mu, most=SMALLER * s.most,
        s=nothing, G=0.0, late=0.0, begun=s.t, radial=0.0, radial_squares=0.0, rescale_at=1.0, bias=nothing,
        bias_squares=0.0, tests=0, check_at=first_check(s),
    )  # fmt: skip


def _noise_here(s: ApartState, F: Array) -> ApartState:
    """With the noise of values at the average, which may be another than at x_0; if no samples are in them, too."""
    F = F[np.isfinite(F)]
    if len(F) < _FEWEST_PAIRS or (s.run.paired and s.run.sampled):
        return s
    with np.errstate(over="ignore"):
        away = (F - np.median(F)) / s.unit
    away = away[plausible(np.abs(away)) & (np.abs(away) < HUGE)]
    return s._replace(noise=float(np.std(away, ddof=1))) if len(away) >= _FEWEST_PAIRS else s


def after_pick(s: ApartState, F: Array) -> ApartState:
    """x_0 is returned where the average looks worse: where they are hard to tell apart, little is lost either way."""
    excess, doubt = excess_of(F)
    if not excess > (0.0 if len(F) >= PAIRS else 2.0 * doubt) or doubt == inf:
        return s._replace(stage=DONE)
    remark = "; ".join(filter(None, (s.run.remark, NOTHING_BETTER)))
    return s._replace(stage=DONE, average=s.run.x0, run=s.run._replace(remark=remark))
