"""For peers that know no constraints: F at the nearest point of the domain, and what it costs to be outside."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from poem_cma.experiments.bench.task import Task

__all__ = ["Projected"]

_SMALL = 1e-3  # the distance over which the slope at x0 is measured


class Projected:
    """Values of populations.

    Parameters
    ----------
    task : Task
    shared : bool
        One mini-batch for a whole population, or one for each of its points.
    batch : int
        The size of a mini-batch.
    penalty : float
        The distance outside is charged at so many times the slope of F at x0.
    """

    def __init__(self, task: Task, *, shared: bool = False, batch: int = 1, penalty: float = 0.0) -> None:
        self.task, self.shared, self.batch = task, shared, batch
        self.charge = penalty * task.slope_size(_SMALL) / sqrt(task.d) if penalty else 0.0

    def __call__(self, X: Any) -> Any:
        """The values at the rows of X."""
        X = np.asarray(X, dtype=float)
        inside = X if self.task.problem.domain is None else np.array([self.task.project(x) for x in X])
        values = self.task.values(inside, shared=self.shared, batch=self.batch)
        return values + self.charge * np.linalg.norm(X - inside, axis=1) if self.charge else values
