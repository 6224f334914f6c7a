"""Anybody's executor: threads, processes, MPI."""

from __future__ import annotations

import os
import queue
from collections.abc import Collection
from concurrent.futures import BrokenExecutor, Future
from typing import Any

from poem_cma.run.failures import described
from poem_cma.workers.task import Calls, Objective, Reply, Task, calls_of, keep, perform, to_payload

__all__ = ["Futures", "workers_of"]


def workers_of(executor: Any) -> int:
    """How many workers an executor has, as far as it tells."""
    for name in ("_max_workers", "num_workers", "max_workers"):
        if isinstance(count := getattr(executor, name, None), int):
            return count
    return os.cpu_count() or 1


class Futures:
    """Parcels as futures. The objective is sent with one only if the worker that gets it has none yet."""

    def __init__(self, executor: Any, objective: Objective) -> None:
        self._executor = executor
        self._objective = objective
        self._payload: bytes | None = None
        self._done: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        self._flight: dict[int, tuple[Any, Calls]] = {}
        self._abandoned: set[int] = set()  # parcels that were given up, but occupy a worker still
        keep(objective)  # threads, and processes forked from here, find it

    in_hand = 1

    def slots(self) -> int:
        """Workers that are not stuck."""
        return workers_of(self._executor) - len(self._abandoned)

    def start(self, ticket: int, tasks: list[Task], avoid: Collection[Any]) -> Any:
        """Submit a parcel."""
        self._submit(ticket, calls_of(tasks), None)
        return "executor"

    def _submit(self, ticket: int, calls: Calls, payload: Any) -> None:
        arguments = (self._objective.token, payload, calls)
        try:
            future = self._send(arguments)
        except BrokenExecutor as error:
            raise RuntimeError(
                f"the executor is broken ({error}); workers=N makes processes that are replaced when they die"
            ) from None
        self._flight[ticket] = (future, calls)
        future.add_done_callback(lambda f: self._done.put((ticket, f)))

    def _send(self, arguments: tuple[Any, ...]) -> Future[Any]:
        future: Future[Any] = self._executor.submit(perform, *arguments)
        return future

    def collect(self, seconds: float) -> list[tuple[int, list[Reply] | str]]:
        """Replies, or why there are none, as soon as there are any, or nothing after so many seconds."""
        replies: list[tuple[int, list[Reply] | str]] = []
        try:
            self._take(*self._done.get(timeout=max(0.0, seconds)), replies)
            while True:
                self._take(*self._done.get_nowait(), replies)
        except queue.Empty:
            return replies

    def _take(self, ticket: int, future: Any, replies: list[tuple[int, list[Reply] | str]]) -> None:
        self._abandoned.discard(ticket)
        if self._flight.get(ticket, (None,))[0] is not future:
            return  # given up before
        calls = self._flight.pop(ticket)[1]
        outcome = self._outcome(future)
        if outcome is None:
            self._submit(ticket, calls, self._sent_along())
        else:
            replies.append((ticket, outcome))

    def _outcome(self, future: Any) -> list[Reply] | str | None:
        if future.cancelled():
            return "the task was cancelled"
        error = future.exception()
        if isinstance(error, BrokenExecutor):
            raise RuntimeError(
                f"the executor is broken ({error}); workers=N makes processes that are replaced when they die"
            )
        if error is not None:
            return f"the worker failed ({described(error)})"
        replies: list[Reply] | None = future.result()
        return replies

    def _sent_along(self) -> Any:
        """The objective, for a worker that has none."""
        if self._payload is None:
            self._payload = to_payload(self._objective)
        return self._payload

    def abandon(self, ticket: int) -> None:
        """Give a parcel up; whether its worker can be freed is the executor's business."""
        future, _ = self._flight.pop(ticket)
        if not future.cancel():
            self._abandoned.add(ticket)

    def close(self) -> None:
        """Drop what has not begun. The executor is the user's."""
        for future, _ in self._flight.values():
            future.cancel()
