"""noisyopt's SPSA. It draws from numpy's global generator, which is put back as it was."""

from __future__ import annotations

from typing import Any

import numpy as np

from poem_cma.domains.sets import Box
from poem_cma.experiments.bench.player import Axis, Player
from poem_cma.experiments.bench.task import Task

__all__ = ["PLAYERS"]


def play(
    task: Task, *, a: float | None = None, step: float = 1.0, c: float = 1.0, paired: bool = True, batch: int = 1
) -> None:
    """`minimizeSPSA` with bounds where the domain is a box; elsewhere its iterate is projected after every step.

    `a` is its gain; `step` sets it as a length, divided by the size of the gradient estimates at x0.
    """
    from noisyopt import minimizeSPSA

    pairs = task.budget // (2 * batch)
    domain = task.problem.domain
    bounds = np.c_[domain.lower, domain.upper] if isinstance(domain, Box) else None
    numbers: dict[int, list[int]] = {}  # noisyopt names a xi by a seed

    def value(x: Any, seed: int | None = None) -> float:
        if seed is None:
            return float(task.values(x[None], batch=batch)[0])
        if seed not in numbers:
            numbers.clear()
            numbers[seed] = task.fresh(batch)
        return float(task.at(x[None], numbers[seed])[0])

    def after_step(x: Any) -> None:
        if bounds is None:
            x[:] = task.project(x)  # in place: this is the iterate itself
        task.recommend(np.array(x))

    gain = step / task.slope_size(1e-3 if paired else c, shared=paired) * pairs**0.1 if a is None else a
    before = np.random.get_state()  # noqa: NPY002
    np.random.seed(task.seed)  # noqa: NPY002
    try:
        minimizeSPSA(
            value, np.array(task.x0), bounds=bounds, niter=pairs, paired=paired, a=gain, c=c, callback=after_step
        )
    finally:
        np.random.set_state(before)  # noqa: NPY002


PLAYERS = [
    Player(
        "noisyopt-spsa", "noisyopt SPSA", play,
        default={"a": 1.0, "c": 1.0},
        start={"step": 1.0, "c": 0.1, "paired": True, "batch": 1},
        axes=(
            Axis("step", (0.1, 1.0, 10.0, 100.0)), Axis("step", (1 / 3, 3.0), factors=True),
            Axis("c", (0.01, 1.0)), Axis("paired", (False,)),
        ),
        packages=("noisyopt",),
    )
]  # fmt: skip
