"""A Ray cluster, by the module ``ray`` after ``ray.init()``.

A task of Ray's own costs the driver a millisecond and more. So each CPU gets one actor, which keeps the objective, and
calls go to it directly.
"""

from __future__ import annotations

import contextlib
import pickle
import time
from collections.abc import Collection
from typing import Any

from poem_cma.run.failures import described
from poem_cma.workers.crew import NotBegun
from poem_cma.workers.task import Objective, Reply, Task, calls_of, perform, to_payload

__all__ = ["Ray", "cpus"]

_SECONDS_BETWEEN_COUNTS = 0.5
_SECONDS_TO_BEGIN = 30.0


def cpus(ray: Any) -> int:
    """CPUs in the cluster now."""
    if not ray.is_initialized():
        raise RuntimeError("workers=ray needs a running cluster: call ray.init() first")
    return int(ray.cluster_resources().get("CPU", 0))


class Bench:
    """The actor: where a CPU works."""

    def __init__(self, token: str, payload: list[Any]) -> None:
        self._token, self._payload = token, payload  # in a list: it is fetched when it is needed

    def ready(self) -> None:
        """Says that it is there."""

    def perform(self, calls: bytes) -> bytes:
        """A parcel; the first one fetches the objective."""
        replies = perform(self._token, None, pickle.loads(calls))
        if replies is None:
            import ray

            replies = perform(self._token, ray.get(self._payload[0]), pickle.loads(calls))
        return pickle.dumps(replies, pickle.HIGHEST_PROTOCOL)


class Ray:
    """One actor for each CPU. CPUs may come and go: newcomers get an actor, the calls of those that left are lost."""

    def __init__(self, ray: Any, objective: Objective) -> None:
        cpus(ray)  # is there a cluster?
        self._ray = ray
        self._token = objective.token
        self._bench = ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(Bench)
        self._payload = [ray.put(to_payload(objective))]
        self._coming: dict[Any, Any] = {}  # actors that have not begun, by the reference that says when they have
        self._actors: dict[Any, list[Any]] = {}  # those that have, with the references of the replies they owe
        self._busy: dict[Any, tuple[int, Any]] = {}  # by the reference of the reply: the ticket and the actor
        self._counted = 0.0
        self._count()
        if self._coming:
            self._greet(ray.wait(list(self._coming), num_returns=len(self._coming), timeout=_SECONDS_TO_BEGIN)[0])

    in_hand = 1

    def slots(self) -> int:
        """Actors that are ready now."""
        if time.monotonic() - self._counted > _SECONDS_BETWEEN_COUNTS:
            self._count()
        return len(self._actors)

    def _count(self) -> None:
        """See how many CPUs there are, and who has begun."""
        if self._coming:
            self._greet(self._ray.wait(list(self._coming), num_returns=len(self._coming), timeout=0)[0])
        for _ in range(cpus(self._ray) - len(self._coming) - len(self._actors)):
            actor = self._bench.remote(self._token, self._payload)
            self._coming[actor.ready.remote()] = actor
        self._counted = time.monotonic()

    def _greet(self, begun: list[Any]) -> None:
        for reference in begun:
            actor = self._coming.pop(reference)
            with contextlib.suppress(Exception):  # it may have died at once: the next count will tell
                self._ray.get(reference)
                self._actors[actor] = []

    def start(self, ticket: int, tasks: list[Task], avoid: Collection[Any]) -> Any:
        """Give a parcel to the actor with the least to do, another than those to avoid if there are others."""
        others = [a for a in self._actors if a not in avoid] or list(self._actors)
        actor = min(others, key=lambda a: len(self._actors[a]), default=None)
        if actor is None or len(self._actors[actor]) >= self.in_hand:
            return None
        reference = actor.perform.remote(pickle.dumps(calls_of(tasks), pickle.HIGHEST_PROTOCOL))
        self._busy[reference] = (ticket, actor)
        self._actors[actor].append(reference)
        return actor

    def collect(self, seconds: float) -> list[tuple[int, list[Reply] | str]]:
        """Replies, or why there are none, as soon as there are any, or nothing after so many seconds."""
        expected = [*self._busy, *self._coming]
        if not expected:
            time.sleep(seconds)
            return []
        ready, _ = self._ray.wait(expected, num_returns=1, timeout=seconds)
        if ready and len(expected) > 1:  # and whatever is ready with it
            ready, _ = self._ray.wait(expected, num_returns=len(expected), timeout=0)
        self._greet([reference for reference in ready if reference in self._coming])
        return [outcome for reference in ready for outcome in self._outcome(reference)]

    def _outcome(self, reference: Any) -> list[tuple[int, list[Reply] | str]]:
        if reference not in self._busy:
            return []
        ticket, actor = self._busy[reference]
        try:
            replies: list[Reply] = pickle.loads(self._ray.get(reference))
        except Exception as error:  # the worker died, or its node is gone
            why = f"the worker failed ({described(error).splitlines()[0]})"
            return [(lost, NotBegun(why) if n else why) for n, lost in enumerate(self._end(actor))]
        del self._busy[reference]
        self._actors[actor].remove(reference)
        return [(ticket, replies)]

    def abandon(self, ticket: int) -> None:
        """Kill the process that is at a parcel, and have another started."""
        for owner, actor in list(self._busy.values()):
            if owner == ticket:
                self._end(actor)

    def _end(self, actor: Any) -> list[int]:
        """Kill an actor, if it is not dead already; the tickets it had. Another is wanted."""
        with contextlib.suppress(Exception):
            self._ray.kill(actor)
        self._counted = 0.0
        return [self._busy.pop(reference)[0] for reference in self._actors.pop(actor, [])]

    def close(self) -> None:
        """End the actors. The cluster is the user's."""
        for actor in [*self._coming.values(), *self._actors]:
            self._end(actor)
        self._coming = {}
