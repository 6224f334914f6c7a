"""No workers at all: tasks are worked on where they are collected, one after the other."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from poem_cma.workers.task import Objective, Reply, Task, evaluate

__all__ = ["Here"]

#: Tasks that are evaluated in one call of a function of rows hold about so many numbers.
ROWS_AT_ONCE = 2**21


class Here:
    """This process. A function of rows gets everything at once."""

    def __init__(self, objective: Objective, dimension: int) -> None:
        self._oracle = objective.oracle(objective.on_failure)
        self._together = objective.vectorized == "rows"
        self._most = max(1, ROWS_AT_ONCE // dimension) if self._together else 1
        self._tasks: list[tuple[int, Task]] = []

    in_hand = 1

    def slots(self) -> int:
        """One at a time, or all that there are."""
        return self._most

    def start(self, ticket: int, tasks: list[Task], avoid: Collection[Any]) -> Any:
        """Take a task; they come one by one, as nothing has to travel."""
        (task,) = tasks
        self._tasks.append((ticket, task))
        return "here"

    def collect(self, seconds: float) -> list[tuple[int, list[Reply] | str]]:
        """Work on what was taken."""
        tasks, self._tasks = self._tasks, []
        if not self._together:
            return [(ticket, [evaluate(self._oracle, t.points, t.numbers, t.stream)]) for ticket, t in tasks]
        points = np.concatenate([t.points for _, t in tasks])
        reply = evaluate(self._oracle, points, [n for _, t in tasks for n in t.numbers], tasks[0][1].stream)
        replies: list[tuple[int, list[Reply] | str]] = []
        values, seconds = reply.values, reply.seconds / len(tasks)
        for ticket, t in tasks:
            replies.append((ticket, [reply._replace(values=values[: len(t.points)], seconds=seconds)]))
            values = values[len(t.points) :]
        return replies

    def abandon(self, ticket: int) -> None:
        """Nothing can be: this process is the one that waits."""

    def close(self) -> None:
        """Nothing to end."""
