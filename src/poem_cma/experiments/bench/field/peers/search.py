"""Random search, and Nelder-Mead as SciPy has it: what needs no further package."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from poem_cma.experiments.bench.field.player import FieldPlayer
from poem_cma.experiments.bench.field.task import REACH, FieldTask

__all__ = ["PLAYERS"]

REPLICATIONS = 10


def random_search(task: FieldTask) -> None:
    """x0 and uniform points of the box, each by the mean over the same samples; the lowest mean is recommended."""
    rng = np.random.default_rng([task.seed, 2])
    lower, upper = task.bounds
    numbers = task.fresh(REPLICATIONS)
    x, best = task.x0, inf
    while True:
        value = task.mean(x, numbers)
        if value < best:
            best = value
            task.recommend(x.copy())
        x = rng.uniform(lower, upper)


def nelder_mead(task: FieldTask) -> None:
    """SciPy's simplex, a new sample in every evaluation; its point with the lowest value is recommended."""
    from scipy import optimize

    bounds = None if task.walls is None else optimize.Bounds(*task.walls)
    minimize: Any = optimize.minimize
    minimize(task.tried, task.x0, method="Nelder-Mead", bounds=bounds, options={"maxfev": task.budget})


PLAYERS = [
    FieldPlayer(
        "random-search", "random search", random_search,
        f"uniform in the box, or in x0 plus or minus max({REACH:g}, |x0|); {REPLICATIONS} evaluations a point, the "
        "same samples for all",
    ),
    FieldPlayer(
        "nelder-mead", "SciPy Nelder-Mead", nelder_mead, "its defaults, a new sample in every evaluation",
        packages=("scipy",), growth=0.2e-6,
    ),
]  # fmt: skip
