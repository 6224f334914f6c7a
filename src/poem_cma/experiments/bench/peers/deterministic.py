"""SciPy's methods without gradients, for problems without noise: the best point seen is recommended."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np

from poem_cma.experiments.bench.player import Player
from poem_cma.experiments.bench.task import Task

__all__ = ["PLAYERS"]


def play(task: Task, method: str) -> None:
    """`scipy.optimize.minimize` with its defaults and so many calls."""
    from scipy import optimize

    best = inf

    def value(x: Any) -> float:
        nonlocal best
        inside = task.project(np.asarray(x))
        f = float(task.values(inside[None])[0])
        if f < best:
            best = f
            task.recommend(np.array(inside))
        return f

    limit = {"COBYLA": "maxiter"}.get(method, "maxfev")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        minimize: Any = optimize.minimize
        minimize(value, np.array(task.x0), method=method, options={limit: task.budget})


def _player(method: str) -> Callable[..., None]:
    def run(task: Task) -> None:
        play(task, method)

    return run


PLAYERS = [
    Player(
        f"scipy-{method.lower()}",
        f"SciPy {method}",
        _player(method),
        role="deterministic",
        packages=("scipy",),
        pace=2e-3,
    )
    for method in ("COBYQA", "COBYLA", "Nelder-Mead", "Powell")
]
