"""Our methods, with nothing set; and POEM told the distance, which the others are told too where they need a scale."""

from __future__ import annotations

from typing import Any

import numpy as np

import poem_cma as pc
from poem_cma.experiments.bench.field.player import Ending, FieldPlayer
from poem_cma.experiments.bench.field.task import FieldTask
from poem_cma.experiments.bench.provenance import OURS

__all__ = ["PLAYERS", "warns"]


def play(task: FieldTask, method: Any, **settings: Any) -> Ending:
    """`minimize`, as a user calls it: samples are shared where the problem has any to share."""
    problem = task.problem
    given = {"domain": problem.domain, "method": method, "budget": task.budget, "seed": task.seed, **settings}
    if problem.shared:
        result = pc.minimize(task.asked, task.x0, sample=problem.sample, **given)
    else:
        result = pc.minimize(lambda x: task.asked(x), task.x0, **given)
    task.recommend(np.array(result.x))
    return Ending(result.message, warns(result.success, result.message))


def warns(success: bool, message: str) -> bool:
    """Whether a result says that it may be poor: it failed, or the message has a remark after the reason to stop.

    Examples
    --------
    >>> warns(True, "the budget of 300 calls is spent"), warns(True, "the budget of 300 calls is spent; F has steps")
    (False, True)
    """
    return not success or ";" in message


def auto(task: FieldTask) -> Ending:
    """`minimize` as it is."""
    return play(task, "auto")


def poem(task: FieldTask) -> Ending:
    """POEM as it is."""
    return play(task, "poem")


def poem_told(task: FieldTask) -> Ending:
    """POEM with the initial distance that is told: a quarter of the box, or 1."""
    if task.problem.box is None:
        return play(task, pc.methods.poem(initial_distance=1.0))
    return play(task, pc.methods.poem(initial_distance=0.25), scale=4.0 * task.unit)


PLAYERS = [
    FieldPlayer("auto", "auto", auto, "nothing set", "ours", pace=150e-6, code=(*OURS, "auto")),
    FieldPlayer("poem", "POEM", poem, "nothing set", "ours", pace=15e-6, code=OURS),
    FieldPlayer(
        "poem-told", "POEM, told the scale", poem_told,
        "the initial distance is a quarter of the box in each variable, or 1", "ours", pace=15e-6, code=OURS,
    ),
]  # fmt: skip
