"""A problem that writes down who asked for what, and an arena small enough for the tests."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from poem_cma import Ball
from poem_cma.experiments.bench.scale import QUICK
from poem_cma.experiments.bench.task import Spent, Task
from poem_cma.problems import Problem

TINY = replace(
    QUICK, name="tiny", budget=300, seeds=2, axes=1, problems=("unshared-quadratic", "max-affine"),
)  # fmt: skip


class Book:
    """F(x; xi) = |x - 1|^2 / 2 + xi'x, every call written down as (xi, x)."""

    def __init__(self, d: int = 4, *, domain: Any = None, shareable: bool = True) -> None:
        self.entries: list[tuple[float, Any]] = []
        self.problem = Problem(
            name="book", x0=np.zeros(d), domain=domain, fun=self.fun, sample=lambda rng: 0.1 * rng.standard_normal(d),
            objective=lambda x: 0.5 * float((x - 1.0) @ (x - 1.0)), optimum=0.0, certificate="by hand", noisy=True,
            smooth=True, gradient=lambda x, xi: x - 1.0 + xi, shareable=shareable,
        )  # fmt: skip

    def fun(self, X: Any, xi: Any) -> Any:
        self.entries += [(float(xi[0]), x.copy()) for x in X]
        return 0.5 * ((X - 1.0) ** 2).sum(axis=1) + X @ xi

    def runs(self) -> list[int]:
        """How many calls in a row had the same xi."""
        lengths: list[int] = []
        last = None
        for xi, _ in self.entries:
            if xi == last:
                lengths[-1] += 1
            else:
                lengths.append(1)
            last = xi
        return lengths


BALL = Ball(1.0)


def play(player: Any, task: Task, setting: Any) -> dict[str, Any]:
    """A run to its end."""
    with suppress(Spent):
        player(task, setting)
    return task.finish()
