"""nevergrad's TBPSA, its method for noise, with its defaults."""

from __future__ import annotations

import numpy as np

from poem_cma.experiments.bench.field.player import FieldPlayer
from poem_cma.experiments.bench.field.task import FieldTask

__all__ = ["PLAYERS"]


def play(task: FieldTask) -> None:
    """Ask and tell; a finite box is told as the bounds of the array."""
    import nevergrad as ng

    variables = ng.p.Array(init=task.x0)
    if task.problem.box is not None:
        lower, upper = task.bounds
        # It refuses a start on a bound.
        inside = 1e-9 * (upper - lower)
        start = np.clip(task.x0, lower + inside, upper - inside)
        variables = ng.p.Array(init=start).set_bounds(lower, upper)
    variables.random_state = np.random.RandomState(task.seed + 1)
    optimizer = ng.optimizers.registry["TBPSA"](variables, budget=task.budget)
    task.recommend(lambda: np.array(optimizer.provide_recommendation().value))
    while True:
        candidate = optimizer.ask()
        optimizer.tell(candidate, task.value(candidate.value))


PLAYERS = [
    FieldPlayer(
        "ng-tbpsa", "nevergrad TBPSA", play, "its defaults, with the bounds of a finite box; fresh samples",
        packages=("nevergrad",), pace=250e-6,
    )
]  # fmt: skip
