"""nevergrad: SPSA, TBPSA, NGOpt and its noisy one-plus-one, by ask and tell."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np

from poem_cma.experiments.bench.peers.projected import Projected
from poem_cma.experiments.bench.player import Axis, Player
from poem_cma.experiments.bench.task import Task

__all__ = ["PLAYERS"]


def play(
    task: Task, registered: str, *, reach: float | None = None, shared: bool = False, batch: int = 1,
    penalty: float = 0.0,
) -> None:  # fmt: skip
    """A registered optimiser; `reach` sets the scale of its parametrisation, as `set_mutation(sigma=...)` does.

    Values can share their xi only where two of them are compared: SPSA asks for its pair in turn.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import nevergrad as ng

        variables = ng.p.Array(init=np.array(task.x0))
        if reach is not None:
            variables.set_mutation(sigma=reach / sqrt(task.d))
        variables.random_state = np.random.RandomState(task.seed + 1)
        optimizer = ng.optimizers.registry[registered](variables, budget=task.budget // batch)
        value = Projected(task, batch=batch, penalty=penalty)
        task.recommend(lambda: task.project(np.array(optimizer.provide_recommendation().value)))
        numbers: list[int] = []
        asked = 0
        while True:
            candidate = optimizer.ask()
            if shared and asked % 2 == 0:
                numbers = task.fresh(batch)
            x = np.array(candidate.value)[None]
            loss = task.at(task.project(x[0])[None], numbers) if shared else value(x)
            optimizer.tell(candidate, float(loss[0]))
            asked += 1


def _player(registered: str) -> Callable[..., None]:
    def run(task: Task, **setting: Any) -> None:
        play(task, registered, **setting)

    return run


def _make(name: str, registered: str, shares: bool = False) -> Player:
    # The mean of ten values at a time: ten times as quick as single ones, and no worse under noise.
    start = {"reach": 1.0, "shared": shares, "batch": 10, "penalty": 0.0}
    reaches = (1.0, 30.0, 1000.0) if shares else (0.1, 1.0, 10.0)  # its SPSA has a tiny step size
    axes = [Axis("reach", reaches), Axis("reach", (1 / 3, 3.0), factors=True), Axis("batch", (30,))]
    axes.append(Axis("shared", (False,)) if shares else Axis("penalty", (1.0,), constrained=True))
    return Player(
        name, f"nevergrad {registered}", _player(registered), {}, start, tuple(axes), packages=("nevergrad",),
        pace=350e-6, growth=0.5e-6,
    )  # fmt: skip


PLAYERS = [
    _make("ng-spsa", "SPSA", shares=True),
    _make("ng-tbpsa", "TBPSA"),
    _make("ng-oneplusone", "OptimisticNoisyOnePlusOne"),
    _make("ng-ngopt", "NGOpt"),
]
