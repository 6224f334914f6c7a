"""The limit: distance over gradients (Ivgi, Hinder and Carmon 2023) with true stochastic subgradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from poem_cma.experiments.bench.player import Player
from poem_cma.experiments.bench.task import Task

__all__ = ["PLAYERS"]

GAMMA = 8.0  # of the polynomial-decay average, as its authors have it


def play(task: Task, *, cost: str, first: float = 0.01) -> None:
    """x <- Proj(x - r g / sqrt(G)), r the largest distance so far, G the sum of |g|^2; the average is recommended.

    A gradient costs d + 1 calls, which is what it takes to find one by differences, or one call ("gradient").
    """
    price = task.d + 1 if cost == "calls" else 1
    x = average = np.array(task.x0)
    r, G, t = first * (1.0 + float(np.linalg.norm(x))), 0.0, 0
    while True:
        g: Any = task.gradient(x, price)
        G += float(g @ g)
        if G > 0.0:
            x = task.project(x - r / np.sqrt(G) * g)
        r = max(r, float(np.linalg.norm(x - task.x0)))
        weight = (1.0 + GAMMA) / (t + 1.0 + GAMMA)
        average = (1.0 - weight) * average + weight * x
        task.recommend(average)
        t += 1


PLAYERS = [
    Player("dog", "DoG, a gradient counted as d + 1 calls", play, {"cost": "calls"}, role="limit"),
    Player("dog-gradients", "DoG, a gradient counted as one call", play, {"cost": "gradient"}, role="limit"),
]
