"""How many calls the best peer needs for each of ours: the number the arena is for.

Let B be the budget, and take the median gaps at which `auto` and the best peer end. Whoever ends lower reaches the
other's last gap after c calls, for good: from there on its curve is never above it. The ratio is B / c where that is
`auto`, and c / B where it is the peer: the same question asked from both sides, and a lucky dip half way counts for
neither. Where both end at the same gap, at the optimum itself, the ratio is that of the calls they take to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Any

import numpy as np

from poem_cma.experiments.bench.results import Curve, ProblemResults

__all__ = ["Ratio", "calls_to_reach", "geometric_mean", "ratio", "ratios"]

OURS = "auto"


def calls_to_reach(calls: Any, gaps: Any, level: float) -> float | None:
    """The number of calls from which on a curve is never above a level; None where it ends above.

    Between two points the curve is taken as straight on two log axes.

    Examples
    --------
    >>> calls_to_reach([10, 100, 1000], [1.0, 0.1, 0.01], 0.1)
    100.0
    >>> round(calls_to_reach([10, 1000], [1.0, 0.01], 0.1), 9)
    100.0
    >>> calls_to_reach([10, 100, 1000], [1.0, 0.01, 0.2], 0.1)
    """
    calls, gaps = np.asarray(calls, dtype=float), np.asarray(gaps, dtype=float)
    above = np.flatnonzero(gaps > level)
    if not len(above):
        return float(calls[0])
    j = int(above[-1]) + 1
    if j == len(gaps):
        return None
    share = log(gaps[j - 1] / level) / log(gaps[j - 1] / gaps[j])
    return exp(log(calls[j - 1]) + share * log(calls[j] / calls[j - 1])) if share < 1.0 else float(calls[j])


@dataclass(frozen=True, eq=False)
class Ratio:
    """The best peer on a problem, beside ours."""

    problem: ProblemResults
    ours: Curve
    peer: Curve
    our_calls: float  # to the larger of the two last gaps; the budget for whose it is
    peer_calls: float

    @property
    def ahead(self) -> bool:
        """Whether ours ends as low as the peer, or lower."""
        return self.ours.final <= self.peer.final

    @property
    def value(self) -> float:
        """The peer's calls over ours."""
        return self.peer_calls / self.our_calls


def ratio(problem: ProblemResults) -> Ratio | None:
    """None where our curve, or any peer's, is not there."""
    ours, peers = problem.curve(OURS), problem.peers
    if ours is None or not peers:
        return None
    peer = peers[0]
    return Ratio(problem, ours, peer, _calls(ours, peer), _calls(peer, ours))


def _calls(curve: Curve, other: Curve) -> float:
    """The calls of a curve to the other's last gap; all of them where it does not get there."""
    reached = calls_to_reach(curve.calls, curve.median, other.final)
    return float(curve.calls[-1]) if reached is None else reached


def ratios(problems: Sequence[ProblemResults]) -> list[Ratio]:
    """Those of the noisy problems."""
    return [r for p in problems if p.noisy and (r := ratio(p)) is not None]


def geometric_mean(values: Sequence[float]) -> float:
    """The exponential of the mean logarithm; NaN of nothing.

    Examples
    --------
    >>> geometric_mean([1.0, 4.0])
    2.0
    """
    return float(np.exp(np.mean(np.log(values)))) if len(values) else float("nan")
