"""A Ray cluster, by the module ``ray`` after ``ray.init()``."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any

from poem_cma.workers.task import Objective, Reply, Task, perform, to_payload

__all__ = ["Ray"]

_SECONDS_BETWEEN_COUNTS = 0.5


class Ray:
    """Tasks of one CPU each. Retries are ours, not Ray's."""

    depth = 2  # each CPU has its next task waiting

    def __init__(self, ray: Any, objective: Objective) -> None:
        if not ray.is_initialized():
            raise RuntimeError("workers=ray needs a running cluster: call ray.init() first")
        self._ray = ray
        self._objective = objective
        self._perform = ray.remote(num_cpus=1, max_retries=0)(_perform)
        self._payload = [ray.put(to_payload(objective))]  # in a list: a worker fetches it only if it needs it
        self._tickets: dict[Any, int] = {}
        self._counted = 0.0
        self._cpus = 0

    def slots(self) -> int:
        """CPUs in the cluster now."""
        if time.monotonic() - self._counted > _SECONDS_BETWEEN_COUNTS:
            self._cpus = int(self._ray.cluster_resources().get("CPU", 0))
            self._counted = time.monotonic()
        return self._cpus

    def start(self, ticket: int, task: Task, avoid: Collection[Any]) -> Any:
        """Submit a task."""
        reference = self._perform.remote(
            self._objective.token, self._payload, task.points, task.numbers, int(task.stream)
        )
        self._tickets[reference] = ticket
        return "ray"

    def collect(self, seconds: float) -> list[tuple[int, Reply | str]]:
        """Replies, or why there is none, as soon as there are any, or nothing after so many seconds."""
        if not self._tickets:
            time.sleep(seconds)
            return []
        ready, _ = self._ray.wait(list(self._tickets), num_returns=1, timeout=seconds)
        if ready:  # and whatever is ready with it
            ready, _ = self._ray.wait(list(self._tickets), num_returns=len(self._tickets), timeout=0)
        return [(self._tickets.pop(reference), self._outcome(reference)) for reference in ready]

    def _outcome(self, reference: Any) -> Reply | str:
        try:
            reply: Reply = self._ray.get(reference)
        except Exception as error:  # the worker died, the node is gone, the task was cancelled
            return f"the worker failed ({type(error).__name__}: {str(error).splitlines()[0]})"
        return reply

    def abandon(self, ticket: int) -> None:
        """Kill the process that is at a task; Ray starts another."""
        for reference, owner in list(self._tickets.items()):
            if owner == ticket:
                del self._tickets[reference]
                self._ray.cancel(reference, force=True)

    def close(self) -> None:
        """Drop what is not answered. The cluster is the user's."""
        for reference in self._tickets:
            self._ray.cancel(reference, force=True)
        self._tickets.clear()


def _perform(token: str, payload: list[Any], points: Any, numbers: list[int], stream: int) -> Reply:
    """On a worker: fetch the objective if it is the first task here."""
    reply = perform(token, None, points, numbers, stream)
    if reply is None:
        import ray

        reply = perform(token, ray.get(payload[0]), points, numbers, stream)
    assert reply is not None
    return reply
