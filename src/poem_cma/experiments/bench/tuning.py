"""Tuning a peer on the very problem it will play: one axis after the other, the best so far being kept.

The calls this takes are not charged to the peer. It is done on seeds other than those reported.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from poem_cma.experiments.bench.player import Axis, Player, Setting
from poem_cma.problems import Problem

__all__ = ["axes_for", "tune"]

#: Along these it makes no difference on a problem whose noise cannot be shared.
_SHARING = ("shared", "paired")
#: There these come first: differences over a small distance would be nothing but noise.
_DISTANCES = ("smoothing", "c")


def axes_for(player: Player, problem: Problem, most: int) -> list[Axis]:
    """The axes to go through for this problem, so many at most.

    Examples
    --------
    >>> from poem_cma import problems
    >>> from poem_cma.experiments.bench.players import PLAYERS
    >>> [axis.name for axis in axes_for(PLAYERS["zo-sgd"], problems.load("noisy-quadratic"), most=9)]
    ['step', 'step', 'decay', 'smoothing', 'shared']
    >>> [axis.name for axis in axes_for(PLAYERS["zo-sgd"], problems.load("unshared-quadratic"), most=9)]
    ['smoothing', 'step', 'step', 'decay']
    """
    axes = [axis for axis in player.axes if problem.domain is not None or not axis.constrained]
    if problem.noisy and not problem.shareable:
        axes = [axis for axis in axes if axis.name not in _SHARING]
        axes.sort(key=lambda axis: axis.name not in _DISTANCES)
        most += 1
    return axes[:most]


def tune(
    score: Callable[[Setting], float], start: Setting, axes: Sequence[Axis]
) -> tuple[Setting, list[dict[str, Any]]]:
    """The best setting, and all that were tried with their scores, the least being the best.

    Examples
    --------
    >>> axes = [Axis("step", (0.1, 1.0, 10.0)), Axis("step", (0.5, 2.0), factors=True)]
    >>> best, tried = tune(lambda s: abs(s["step"] - 2.0), {"step": 1.0}, axes)
    >>> best, len(tried)
    ({'step': 2.0}, 5)
    """
    best = start
    tried: dict[str, dict[str, Any]] = {}
    for axis in axes:
        for setting in axis.settings(best):
            key = json.dumps(dict(setting), sort_keys=True)
            if key not in tried:
                tried[key] = {"setting": dict(setting), "score": score(setting)}
        best = min(tried.values(), key=lambda row: row["score"])["setting"]
    return best, list(tried.values())
