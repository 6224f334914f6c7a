"""Evolution strategies with covariance adaptation: pycma, and cmaes with its separable and learning-rate variants.

The step size at the start is given as a reach, sigma = reach / sqrt(d), the typical distance of a first sample. A user
who sets nothing has the sigma of the packages' own first examples. The mean of the distribution is recommended.
"""

from __future__ import annotations

import warnings
from math import sqrt
from typing import Any

import numpy as np

from poem_cma.experiments.bench.peers.projected import Projected
from poem_cma.experiments.bench.player import Axis, Player
from poem_cma.experiments.bench.task import Task

__all__ = ["PLAYERS"]


def play_pycma(
    task: Task, *, sigma: float | None = None, reach: float = 1.0, shared: bool = False, batch: int = 1,
    penalty: float = 0.0,
) -> None:  # fmt: skip
    """pycma's ask and tell, never stopped before the calls are spent."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import cma

        quiet = {"seed": task.seed + 1, "verbose": -9, "verb_log": 0, "verb_disp": 0, "maxfevals": np.inf}
        es = cma.CMAEvolutionStrategy(task.x0, sigma or reach / sqrt(task.d), quiet)
        value = Projected(task, shared=shared, batch=batch, penalty=penalty)
        task.recommend(lambda: np.array(es.mean))
        while True:
            X = es.ask()
            es.tell(X, value(X))


def play_cmaes(
    task: Task, kind: str, *, sigma: float | None = None, reach: float = 1.0, shared: bool = False, batch: int = 1,
    penalty: float = 0.0,
) -> None:  # fmt: skip
    """The package cmaes: CMA, SepCMA, or CMA with learning-rate adaptation (made for noise)."""
    import cmaes

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made: Any = {"mean": np.array(task.x0), "sigma": sigma or reach / sqrt(task.d), "seed": task.seed + 1}
        es = cmaes.SepCMA(**made) if kind == "sep" else cmaes.CMA(**made, lr_adapt=kind == "lra")
        value = Projected(task, shared=shared, batch=batch, penalty=penalty)
        task.recommend(lambda: np.array(es.mean))
        while True:
            X = [es.ask() for _ in range(es.population_size)]
            es.tell(list(zip(X, value(X).tolist(), strict=True)))


def _sep(task: Task, **setting: Any) -> None:
    play_cmaes(task, "sep", **setting)


def _full(task: Task, **setting: Any) -> None:
    play_cmaes(task, "full", **setting)


def _lra(task: Task, **setting: Any) -> None:
    play_cmaes(task, "lra", **setting)


START = {"reach": 1.0, "shared": True, "batch": 10, "penalty": 0.0}
AXES = (
    Axis("reach", (0.1, 1.0, 10.0)), Axis("reach", (1 / 3, 3.0), factors=True), Axis("batch", (3, 30)),
    Axis("shared", (False,)), Axis("penalty", (1.0,), constrained=True),
)  # fmt: skip

PLAYERS = [
    Player(
        "pycma", "pycma", play_pycma, {"sigma": 0.5}, START, AXES, packages=("cma",),
        growth=3e-6, up_to=500,
    ),
    Player("cmaes", "cmaes CMA", _full, {"sigma": 1.3}, START, AXES, packages=("cmaes",), growth=3e-6, up_to=500),
    Player("cmaes-lra", "cmaes LRA", _lra, {"sigma": 1.3}, START, AXES, packages=("cmaes",), growth=3e-6, up_to=500),
    Player("cmaes-sep", "cmaes SepCMA", _sep, {"sigma": 1.3}, START, AXES, packages=("cmaes",)),
]  # fmt: skip
