"""pycma: CMA-ES with its defaults, a first step that is told, and three ways to treat noise.

It is not stopped before the evaluations are spent. Where the domain is a box, it has pycma's own bounds. The favourite
of its final distribution is recommended.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from poem_cma.experiments.bench.field.player import FieldPlayer
from poem_cma.experiments.bench.field.task import FieldTask

__all__ = ["PLAYERS"]


def _start(task: FieldTask, sigma: float | None) -> Any:
    """A strategy whose first step is `sigma`, or a quarter of a finite box in each variable, or 0.5."""
    import cma

    options: dict[str, Any] = {
        "seed": task.seed + 1, "verbose": -9, "verb_log": 0, "verb_disp": 0, "maxfevals": np.inf,
    }  # fmt: skip
    if task.walls is not None:
        options["bounds"] = [side.tolist() for side in task.walls]
    if sigma is None and task.problem.box is not None:
        sigma, options["CMA_stds"] = 1.0, task.unit
    es = cma.CMAEvolutionStrategy(task.x0, sigma or 0.5, options)
    task.recommend(lambda: np.array(es.result.xfavorite))
    return es


def play(task: FieldTask, sigma: float | None = None, shared: bool = True) -> None:
    """Ask and tell; one sample for a whole generation, or a new one for each evaluation."""
    es = _start(task, sigma)
    while True:
        X = es.ask()
        es.tell(X, task.values(X, shared=shared))


def play_with_noise_handler(task: FieldTask) -> None:
    """pycma's own treatment of noise: it evaluates some points again, and repeats evaluations where ranks change."""
    import cma

    es = _start(task, None)
    handler = cma.NoiseHandler(es.N, maxevals=[1, 1, 30])
    while True:
        X, values = es.ask_and_eval(task.value, evaluations=handler.evaluations)
        es.tell(X, values)
        es.sigma *= handler(X, values, task.value, es.ask)


def _told(name: str, sigma: float, **where: Any) -> FieldPlayer:
    return FieldPlayer(
        name, f"pycma, sigma0 {sigma:g}", partial(play, sigma=sigma), f"sigma0 {sigma:g}; one sample a generation",
        packages=("cma",), pace=40e-6, growth=0.6e-6, **where,
    )  # fmt: skip


PLAYERS = [
    FieldPlayer(
        "pycma", "pycma", play, "sigma0 a quarter of the box in each variable, or 0.5; one sample a generation",
        packages=("cma",), pace=40e-6, growth=0.6e-6,
    ),
    _told("pycma-1", 1.0, where=lambda problem: problem.box is None or problem.suite == "noisy-bbob"),
    _told("pycma-2", 2.0, suites=("noisy-bbob",)),
    FieldPlayer(
        "pycma-fresh", "pycma, fresh samples", partial(play, shared=False),
        "as pycma, with a new sample in every evaluation", packages=("cma",), pace=40e-6, growth=0.6e-6,
        where=lambda problem: problem.shared,
    ),
    FieldPlayer(
        "pycma-noise", "pycma, NoiseHandler", play_with_noise_handler,
        "as pycma, with a new sample in every evaluation and NoiseHandler(maxevals=[1, 1, 30])", packages=("cma",),
        pace=40e-6, growth=0.6e-6,
    ),
]  # fmt: skip
