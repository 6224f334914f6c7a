"""Does the run make progress? Its result is compared with that of the last look, at doubling intervals."""

from __future__ import annotations

from math import isfinite
from typing import NamedTuple

from poem_cma._types import Array, Size
from poem_cma.auto import judge as judging
from poem_cma.auto.judge import Judge
from poem_cma.auto.judge import begin as compare
from poem_cma.run.algorithm import Run

__all__ = ["Progress", "begin", "comparison", "due", "looked"]

#: First look at progress: share of the budget, or evaluations without a budget.
FIRST_SHARE, FIRST_CALLS = 1 / 8, 1000
#: Cost of a look: share of the budget, or evaluations.
SHARE, CALLS = 0.02, 100
#: No look with less than this share of the budget left: too late to react.
LEFT = 0.1


class Progress(NamedTuple):
    """The last look."""

    next: Size  # evaluations at which the next one is due
    x: Array  # the result at the last one
    improving: bool = False  # whether it was surely better than the one before


def begin(run: Run, x: Array, nfev: int) -> Progress:
    """A search begins at x."""
    return Progress(nfev + (FIRST_SHARE * run.budget if isfinite(run.budget) else FIRST_CALLS), x)


def due(progress: Progress, run: Run, nfev: int) -> bool:
    """Whether a look is due."""
    if not isfinite(run.budget):
        return nfev >= progress.next
    affordable = SHARE * run.budget >= 2 * judging.FIRST
    return affordable and nfev >= progress.next and run.budget - nfev > LEFT * run.budget


def comparison(progress: Progress, run: Run, x: Array) -> Judge:
    """The result at the last look, and that of now."""
    return compare(
        [run.domain.rounded(progress.x), run.domain.rounded(x)],
        int(SHARE * run.budget) if isfinite(run.budget) else CALLS,
    )


def looked(judge: Judge, nfev: int) -> Progress:
    """After a look; the next one is due when as many evaluations have been used again."""
    return Progress(2.0 * nfev, judge.points[judge.chosen], bool(judge.chosen and not judge.left[0]))
