"""How many calls the best peer needs for each of ours: the number the arena is for.

Let B be the budget and g the median gap at which the best peer ends. If `auto` reaches g after c calls, the ratio is
B / c, one or more. If it does not, it ends at a larger gap h, which the peer reaches after c calls, and the ratio is
c / B, less than one. So it is the same question asked from both sides, and it cannot be had without counting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Any

import numpy as np

from poem_cma.bench.results import Curve, ProblemResults

__all__ = ["Ratio", "calls_to_reach", "geometric_mean", "ratio", "ratios"]

OURS = "auto"


def calls_to_reach(calls: Any, gaps: Any, level: float) -> float | None:
    """The first number of calls at which a curve is at or below a level; None where it never is.

    Between two points the curve is taken as straight on two log axes.

    Examples
    --------
    >>> calls_to_reach([10, 100, 1000], [1.0, 0.1, 0.01], 0.1)
    100.0
    >>> round(calls_to_reach([10, 1000], [1.0, 0.01], 0.1), 9)
    100.0
    >>> calls_to_reach([10, 1000], [1.0, 0.01], 0.001)
    """
    calls, gaps = np.asarray(calls, dtype=float), np.asarray(gaps, dtype=float)
    below = np.flatnonzero(gaps <= level)
    if not len(below):
        return None
    j = int(below[0])
    if j == 0 or gaps[j] == level:
        return float(calls[j])
    share = log(gaps[j - 1] / level) / log(gaps[j - 1] / gaps[j])
    return exp(log(calls[j - 1]) + share * log(calls[j] / calls[j - 1]))


@dataclass(frozen=True, eq=False)
class Ratio:
    """The best peer on a problem, beside ours."""

    problem: ProblemResults
    ours: Curve
    peer: Curve
    calls: float  # ours to the peer's last gap; where it is not reached, the peer's to our last gap
    reached: bool
    budget: int

    @property
    def value(self) -> float:
        """The peer's calls over ours."""
        return self.budget / self.calls if self.reached else self.calls / self.budget


def ratio(problem: ProblemResults, budget: int) -> Ratio | None:
    """None where our curve, or any peer's, is not there."""
    ours, peers = problem.curve(OURS), problem.peers
    if ours is None or not peers:
        return None
    peer = peers[0]
    calls = calls_to_reach(ours.calls, ours.median, peer.final)
    if calls is not None:
        return Ratio(problem, ours, peer, calls, True, budget)
    back = calls_to_reach(peer.calls, peer.median, ours.final)
    assert back is not None  # the peer ends below
    return Ratio(problem, ours, peer, back, False, budget)


def ratios(problems: Sequence[ProblemResults], budget: int) -> list[Ratio]:
    """Those of the noisy problems."""
    return [r for p in problems if p.noisy and (r := ratio(p, budget)) is not None]


def geometric_mean(values: Sequence[float]) -> float:
    """The exponential of the mean logarithm; NaN of nothing.

    Examples
    --------
    >>> geometric_mean([1.0, 4.0])
    2.0
    """
    return float(np.exp(np.mean(np.log(values)))) if len(values) else float("nan")
