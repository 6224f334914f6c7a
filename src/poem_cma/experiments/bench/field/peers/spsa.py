"""noisyopt's SPSA with its defaults: gain and distance 1, pairs on one sample."""

from __future__ import annotations

from typing import Any

import numpy as np

from poem_cma.experiments.bench.field.player import FieldPlayer
from poem_cma.experiments.bench.field.task import FieldTask

__all__ = ["PLAYERS"]


def play(task: FieldTask) -> None:
    """`minimizeSPSA`, with bounds where the domain is a box."""
    from noisyopt import minimizeSPSA

    numbers: dict[int, int] = {}

    def value(x: Any, seed: int | None = None) -> float:
        if seed is None:  # the end point, once more
            return task.value(x)
        if seed not in numbers:
            numbers.clear()
            numbers[seed] = task.fresh(1)[0]
        return task.at(x, numbers[seed])

    def after_step(x: Any) -> None:
        task.recommend(np.array(x))

    bounds = None if task.walls is None else np.column_stack(task.walls)
    minimizeSPSA(value, task.x0.copy(), bounds=bounds, niter=task.budget // 2, callback=after_step)


PLAYERS = [
    FieldPlayer(
        "noisyopt-spsa", "noisyopt SPSA", play, "minimizeSPSA with its defaults, pairs on one sample",
        packages=("noisyopt",),
    )
]  # fmt: skip
