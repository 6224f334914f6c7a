"""Optuna's TPE and CMA-ES samplers, up to 300 evaluations: an evaluation costs them milliseconds."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from poem_cma.experiments.bench.field.player import FieldPlayer
from poem_cma.experiments.bench.field.task import REACH, FieldTask

__all__ = ["PLAYERS"]


def play(task: FieldTask, kind: str) -> None:
    """A study whose first trial is x0; the parameters of its best trial are recommended."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    lower, upper = task.bounds
    names = [f"x{j:03d}" for j in range(task.d)]
    start = dict(zip(names, task.x0.tolist(), strict=True))
    seed = task.seed + 1
    samplers: dict[str, Any] = {
        "tpe": lambda: optuna.samplers.TPESampler(seed=seed),
        "cma": lambda: optuna.samplers.CmaEsSampler(x0=start, seed=seed),
    }
    study = optuna.create_study(sampler=samplers[kind]())
    study.enqueue_trial(start)
    for _ in range(task.budget):
        trial = study.ask()
        x = np.array([trial.suggest_float(name, low, up) for name, low, up in zip(names, lower, upper, strict=True)])
        value = task.tried(x)
        study.tell(trial, value if np.isfinite(value) else 1e300)


_BOX = f"box of the domain, or x0 plus or minus max({REACH:g}, |x0|); x0 first; up to 300 evaluations, 40 variables"

PLAYERS = [
    FieldPlayer(
        "optuna-tpe", "Optuna TPE", partial(play, kind="tpe"), f"its defaults; {_BOX}", packages=("optuna",),
        most=300, up_to=40, pace=1e-3, growth=0.15e-3,
    ),
    FieldPlayer(
        "optuna-cma", "Optuna CMA-ES", partial(play, kind="cma"), f"its defaults; {_BOX}",
        packages=("optuna", "cmaes"), most=300, up_to=40, pace=0.4e-3, growth=0.02e-3,
    ),
]  # fmt: skip
