"""Zeroth-order baselines, each a few lines: ZO-SGD, ZO-AdaMM, and SGD with several directions on one xi.

Step sizes are given as lengths: `step` is about how far the run may travel. It is divided by the size of the gradient
estimates at x0, measured by calls that are not charged, so that one grid serves problems of any scale.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from poem_cma.experiments.bench.player import Axis, Player
from poem_cma.experiments.bench.task import Task

__all__ = ["PLAYERS", "directions", "gains", "play_adamm", "play_sgd"]

STEPS = (0.1, 1.0, 10.0, 100.0)


def gains(decay: str, steps: int) -> Any:
    """Factors of the step size: 1/sqrt(t), or a straight line to zero whose sum of squares is about that of sqrt.

    Examples
    --------
    >>> gains("sqrt", 4).round(2).tolist(), gains("linear", 4).round(2).tolist()
    ([1.0, 0.71, 0.58, 0.5], [0.5, 0.38, 0.25, 0.12])
    """
    t = np.arange(steps)
    return 1.0 / np.sqrt(t + 1.0) if decay == "sqrt" else (1.0 - t / steps) / sqrt(steps)


def directions(rng: np.random.Generator, d: int, q: int) -> Any:
    """q orthonormal directions, uniformly distributed, as rows (q, d)."""
    V = rng.standard_normal((q, d))
    if q == 1:
        return V / np.linalg.norm(V)
    return np.linalg.qr(V.T)[0].T * rng.choice([-1.0, 1.0], size=(q, 1))


def play_sgd(
    task: Task, *, step: float, decay: str, smoothing: float, directions_a_step: int = 1, shared: bool = True
) -> None:
    """x <- Proj(x - eta_t g), where g is made of central differences (one direction) or forward ones (several)."""
    d, q = task.d, min(directions_a_step, task.d)
    rng = np.random.default_rng([task.seed, 11])
    size = step / task.slope_size(smoothing, shared=shared) * (sqrt(q) if q > 1 else 1.0)
    x = task.x0
    for gain in gains(decay, task.budget // (q + 1)):
        V = directions(rng, d, q)
        if q == 1:
            plus, minus = task.values(np.concatenate([x + smoothing * V, x - smoothing * V]), shared=shared)
            g = d * (plus - minus) / (2.0 * smoothing) * V[0]
        else:
            F = task.values(np.concatenate([x[None], x + smoothing * V]), shared=shared)
            g = (d / q) * ((F[1:] - F[0]) / smoothing) @ V
        x = task.project(x - size * gain * g)
        task.recommend(x)


def play_adamm(
    task: Task, *, step: float, decay: str, smoothing: float, beta1: float = 0.9, beta2: float = 0.99,
    shared: bool = True,
) -> None:  # fmt: skip
    """ZO-AdaMM (Chen et al. 2019): AMSGrad on pairwise gradients, projected in the metric sqrt(v)."""
    d = task.d
    rng = np.random.default_rng([task.seed, 11])
    x, m, v, v_max = task.x0, np.zeros(d), np.zeros(d), np.full(d, 1e-300)
    for gain in gains(decay, task.budget // 2):
        u = directions(rng, d, 1)
        plus, minus = task.values(np.concatenate([x + smoothing * u, x - smoothing * u]), shared=shared)
        g = d * (plus - minus) / (2.0 * smoothing) * u[0]
        m = beta1 * m + (1.0 - beta1) * g
        v = beta2 * v + (1.0 - beta2) * g**2
        v_max = np.maximum(v_max, v)
        root = np.sqrt(v_max)
        x = x - step / sqrt(d) * gain * m / root
        if task.problem.domain is not None:
            x = task.problem.domain.project(x, np.maximum(root / root.max(), 1e-9))
        task.recommend(x)


_SEARCH = (Axis("step", STEPS), Axis("step", (1 / 3, 3.0), factors=True))
_REST = (Axis("smoothing", (0.1, 1.0)), Axis("shared", (False,)))

PLAYERS = [
    Player(
        "zo-sgd", "ZO-SGD", play_sgd,
        default={"step": 1.0, "decay": "sqrt", "smoothing": 1e-3},
        start={"step": 1.0, "decay": "linear", "smoothing": 1e-3, "shared": True},
        axes=(*_SEARCH, Axis("decay", ("sqrt",)), *_REST),
    ),
    Player(
        "zo-sgd-many", "SGD, several directions", play_sgd,
        default={"step": 1.0, "decay": "sqrt", "smoothing": 1e-3, "directions_a_step": 16},
        start={"step": 1.0, "decay": "linear", "smoothing": 1e-3, "directions_a_step": 16, "shared": True},
        axes=(*_SEARCH, Axis("decay", ("sqrt",)), Axis("directions_a_step", (4, 64)), *_REST[:1]),
    ),
    Player(
        "zo-adamm", "ZO-AdaMM", play_adamm,
        default={"step": 1.0, "decay": "sqrt", "smoothing": 1e-3},
        start={"step": 1.0, "decay": "linear", "smoothing": 1e-3, "beta2": 0.99, "shared": True},
        axes=(*_SEARCH, Axis("beta2", (0.3,)), *_REST),
    ),
]  # fmt: skip
