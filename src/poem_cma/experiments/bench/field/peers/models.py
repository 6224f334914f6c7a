"""Methods that fit quadratic models: Py-BOBYQA, told that values are noisy, and COBYQA.

Until such a method returns a point of its own, the one with the lowest value is recommended.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from poem_cma.experiments.bench.field.player import Ending, FieldPlayer
from poem_cma.experiments.bench.field.task import FieldTask

__all__ = ["PLAYERS"]


def py_bobyqa(task: FieldTask) -> Ending:
    """`pybobyqa.solve` with objfun_has_noise=True; variables are scaled to a finite box."""
    import pybobyqa

    solution = pybobyqa.solve(
        task.tried, task.x0, bounds=task.walls, maxfun=task.budget, objfun_has_noise=True,
        scaling_within_bounds=task.problem.box is not None,
    )  # fmt: skip
    if solution.x is not None:
        task.recommend(np.array(solution.x))
    return Ending(solution.msg, solution.flag not in (solution.EXIT_SUCCESS, solution.EXIT_MAXFUN_WARNING))


def cobyqa(task: FieldTask) -> Ending:
    """SciPy's COBYQA with its defaults; it stops at its own tolerance."""
    from scipy import optimize

    bounds = None if task.walls is None else optimize.Bounds(*task.walls)
    minimize: Any = optimize.minimize
    result = minimize(task.tried, task.x0, method="COBYQA", bounds=bounds, options={"maxfev": task.budget})
    task.recommend(np.array(result.x))
    spent = result.nfev >= task.budget
    return Ending(result.message, not result.success and not spent)


PLAYERS = [
    FieldPlayer(
        "py-bobyqa", "Py-BOBYQA", py_bobyqa, "objfun_has_noise=True, otherwise its defaults; up to 20 variables",
        packages=("Py-BOBYQA",), up_to=20, most=1000, pace=0.1e-3, growth=0.5e-3,
    ),
    FieldPlayer(
        "cobyqa", "SciPy COBYQA", cobyqa, "its defaults, a new sample in every evaluation; up to 60 variables",
        packages=("scipy",), up_to=60, pace=0.4e-3, growth=0.04e-3,
    ),
]  # fmt: skip
