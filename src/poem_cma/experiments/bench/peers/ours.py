"""Our own methods, with nothing set."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

import poem_cma as pc
from poem_cma._types import Array
from poem_cma.experiments.bench.player import Player
from poem_cma.experiments.bench.provenance import OURS
from poem_cma.experiments.bench.task import Task
from poem_cma.problems import Problem
from poem_cma.run.oracle import Oracle, matrix
from poem_cma.run.randomness import Streams

__all__ = ["PLAYERS"]


def play(task: Task, method: str) -> None:
    """`minimize` by hand, so that the recommendation can be looked at on the way."""
    problem = task.problem
    shared = problem.noisy and problem.shareable
    if shared:
        oracle = Oracle(problem.fun, problem.sample, Streams(task.seed), vectorized=True)
    elif problem.noisy:  # the optimiser is told nothing: it must notice
        oracle = Oracle(problem.with_noise(np.random.default_rng([task.seed, 3])), None, Streams(0), vectorized=True)
    else:
        oracle = Oracle(lambda X: problem.fun(X, None), None, Streams(0), vectorized=True)
    opt = pc.Optimizer(task.x0, method=method, domain=problem.domain, budget=task.budget, seed=task.seed)
    opt.history.most = 64  # it is not needed here
    task.recommend(lambda: opt.result().x)

    def charged(points: Iterable[Array], numbers: list[int]) -> Any:
        rows = matrix(points)  # making them is our time, not the oracle's
        return task.charge(len(rows), partial(oracle, rows, numbers))

    while opt.answer(charged):
        pass


def replicas(problem: Problem, budget: int, seeds: Sequence[int]) -> list[Any]:
    """Where `auto` ends, all runs advanced together: where noise is shared, or there is none."""
    results = pc.replicate(
        problem.fun if problem.noisy else lambda X: problem.fun(X, None), problem.x0, seeds=seeds,
        sample=problem.sample if problem.noisy else None, domain=problem.domain, budget=budget, vectorized=True,
        evaluate=0,
    )  # fmt: skip
    return [result.x for result in results]


PLAYERS = [
    Player(
        name,
        title,
        play,
        {"method": name},
        role="ours",
        pace=80e-6,
        code=(*OURS, *code),
        plans=name == "auto",
        replicas=replicas if name == "auto" else None,
    )
    for name, title, code in (
        ("auto", "auto", ("auto", "replicate.py")),
        ("poem", "POEM", ()),
        ("poem-cma", "POEM-CMA", ()),
    )
]
