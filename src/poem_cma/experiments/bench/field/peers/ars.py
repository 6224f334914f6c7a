"""Augmented random search, version V1 (Mania, Guy and Recht 2018), written here.

In each step it evaluates N normal directions in both signs, each pair on one sample, and moves by
alpha / (N s) * sum (F- - F+) v, where s is the standard deviation of the 2 N values.
"""

from __future__ import annotations

from contextlib import suppress
from math import inf
from typing import Any

import numpy as np

from poem_cma.experiments.bench.field.player import Ending, FieldPlayer
from poem_cma.experiments.bench.field.task import FieldTask, Spent

__all__ = ["GRID", "PLAYERS"]

#: Steps and radii that are tried, in units of the scale that is told (a quarter of the box, or 1).
GRID = ((0.02, 0.03), (0.1, 0.1), (0.1, 0.3), (0.3, 0.3), (0.3, 1.0), (1.0, 1.0))
DIRECTIONS = 8


def run(task: FieldTask, alpha: float = 0.02, nu: float = 0.03) -> None:
    """Until the evaluations are spent; the last iterate is recommended."""
    rng = np.random.default_rng([task.seed, 2])
    x = task.x0.copy()
    while True:
        V = rng.standard_normal((DIRECTIONS, task.d)) * task.unit
        numbers = task.fresh(DIRECTIONS)
        values = np.array(
            [[task.at(x + side * nu * v, n) for side in (1, -1)] for v, n in zip(V, numbers, strict=True)]
        )
        spread = float(values.std()) or 1.0
        x = task.project(x + alpha / (DIRECTIONS * spread) * (values[:, 1] - values[:, 0]) @ V)
        task.recommend(x)


def best_of_grid(task: FieldTask) -> Ending:
    """One run for each setting of the grid; the judge chooses among their last points."""
    best, chosen = inf, ""
    nfev, inside = 0, 0.0
    point: Any = task.x0
    for alpha, nu in GRID:
        trial = FieldTask(task.problem, task.budget, task.seed)
        with suppress(Spent):
            run(trial, alpha, nu)
        nfev, inside = max(nfev, trial.nfev), inside + trial.seconds_inside
        if (value := trial.judged()) < best:
            best, chosen, point = value, f"alpha {alpha:g}, nu {nu:g}", trial.recommended()
    task.nfev, task.seconds_inside = nfev, inside
    task.recommend(point)
    return Ending(f"the judge chose {chosen}" if chosen else "no setting ended at a finite value")


PLAYERS = [
    FieldPlayer("ars", "ARS V1", run, f"alpha 0.02, nu 0.03, N = {DIRECTIONS}, in units of a quarter of the box, or 1"),
    FieldPlayer(
        "ars-best", "ARS, best of a grid", best_of_grid,
        f"tuned: the judge chooses among {len(GRID)} runs, (alpha, nu) = "
        + ", ".join(f"({a:g}, {n:g})" for a, n in GRID),
        "tuned", runs=len(GRID),
    ),
]  # fmt: skip
