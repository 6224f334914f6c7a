"""The arithmetic of the field: relative scores, who is first, who ends worse than x0, and who wins against whom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

__all__ = [
    "FIRST",
    "MOST",
    "NEAR",
    "WORSE",
    "count_harm",
    "duel",
    "mean_of_medians",
    "relative",
    "share_below",
    "standings",
]

#: As good as the lowest median.
FIRST = 0.005
#: Close to the lowest median.
NEAR = 0.1
#: A run with a higher score ended worse than x0.
WORSE = 1.02
#: Scores above this are all as bad, so that one run does not fill a mean or a picture.
MOST = 2.0


def relative(value: float, start: float, best: float) -> float:
    """(f(x) - best) / (f(x0) - best): 0 at the best value known, 1 at x0, above 1 if worse than x0.

    Examples
    --------
    >>> relative(3.0, start=5.0, best=1.0)
    0.5
    """
    return min((value - best) / (start - best), 1e9)


def standings(medians: Mapping[str, float]) -> dict[str, str]:
    """For each method at one place: "first" within 0.005 of the lowest median, "near" within 0.1, or "behind".

    Examples
    --------
    >>> standings({"a": 0.0, "b": 0.004, "c": 0.1, "d": 0.7})
    {'a': 'first', 'b': 'first', 'c': 'near', 'd': 'behind'}
    """
    least = min(medians.values())
    above = {name: median - least for name, median in medians.items()}
    return {
        name: "first" if gap <= FIRST else "near" if gap <= NEAR + 1e-12 else "behind" for name, gap in above.items()
    }


def count_harm(scores: Iterable[float], said: Iterable[bool]) -> tuple[int, int]:
    """How many runs ended worse than x0, and how many of those said so.

    Examples
    --------
    >>> count_harm([0.5, 1.01, 1.03, 7.0], [True, False, False, True])
    (2, 1)
    """
    spoke = [told for score, told in zip(scores, said, strict=True) if score > WORSE]
    return len(spoke), sum(spoke)


def duel(ours: Mapping[Any, float], theirs: Mapping[Any, float]) -> tuple[int, int, int]:
    """Where both have played: how often the first has the lower median, how often they are level, how often not.

    Examples
    --------
    >>> duel({"p": 0.0, "q": 0.2, "r": 0.9}, {"p": 0.5, "q": 0.203, "r": 0.1, "s": 0.0})
    (1, 1, 1)
    """
    gaps = [ours[place] - theirs[place] for place in ours if place in theirs]
    return sum(g < -FIRST for g in gaps), sum(abs(g) <= FIRST for g in gaps), sum(g > FIRST for g in gaps)


def mean_of_medians(medians: Sequence[float]) -> float:
    """The mean, where a median above 2 counts as 2.

    Examples
    --------
    >>> mean_of_medians([0.0, 0.5, 9.0])
    0.8333333333333334
    """
    return float(np.minimum(medians, MOST).mean())


def share_below(medians: Sequence[float], limits: Any) -> Any:
    """A profile: the share of places at which the median is at most each limit.

    Examples
    --------
    >>> share_below([0.01, 0.2, 1.0, 3.0], [0.01, 0.1, 1.0]).tolist()
    [0.25, 0.25, 0.75]
    """
    return (np.asarray(medians)[:, None] <= np.asarray(limits, dtype=float)).mean(axis=0)
