"""Anybody's executor: threads, processes, MPI."""

from __future__ import annotations

import os
import queue
from collections.abc import Collection
from concurrent.futures import BrokenExecutor, Future
from typing import Any

from poem_cma.workers.task import Objective, Reply, Task, keep, perform, to_payload

__all__ = ["Futures"]


class Futures:
    """Tasks as futures. The objective is sent with a task only if the worker that gets it has none yet."""

    depth = 1

    def __init__(self, executor: Any, objective: Objective) -> None:
        self._executor = executor
        self._objective = objective
        self._payload: bytes | None = None
        self._done: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        self._flight: dict[int, tuple[Any, Task]] = {}
        self._abandoned: set[int] = set()  # tasks that were given up, but occupy a worker still
        keep(objective)  # threads, and processes forked from here, find it

    def slots(self) -> int:
        """Workers that are not stuck."""
        for name in ("_max_workers", "num_workers", "max_workers"):
            if isinstance(count := getattr(self._executor, name, None), int):
                return count - len(self._abandoned)
        return (os.cpu_count() or 1) - len(self._abandoned)

    def start(self, ticket: int, task: Task, avoid: Collection[Any]) -> Any:
        """Submit a task."""
        self._submit(ticket, task, None)
        return "executor"

    def _submit(self, ticket: int, task: Task, payload: Any) -> None:
        arguments = (self._objective.token, payload, task.points, task.numbers, int(task.stream))
        try:
            future = self._send(arguments)
        except BrokenExecutor as error:
            raise RuntimeError(
                f"the executor is broken ({error}); workers=N makes processes that are replaced when they die"
            ) from None
        self._flight[ticket] = (future, task)
        future.add_done_callback(lambda f: self._done.put((ticket, f)))

    def _send(self, arguments: tuple[Any, ...]) -> Future[Any]:
        future: Future[Any] = self._executor.submit(perform, *arguments)
        return future

    def collect(self, seconds: float) -> list[tuple[int, Reply | str]]:
        """Replies, or why there is none, as soon as there are any, or nothing after so many seconds."""
        replies: list[tuple[int, Reply | str]] = []
        try:
            self._take(*self._done.get(timeout=max(0.0, seconds)), replies)
            while True:
                self._take(*self._done.get_nowait(), replies)
        except queue.Empty:
            return replies

    def _take(self, ticket: int, future: Any, replies: list[tuple[int, Reply | str]]) -> None:
        self._abandoned.discard(ticket)
        if self._flight.get(ticket, (None,))[0] is not future:
            return  # given up before
        task = self._flight.pop(ticket)[1]
        reply = self._outcome(future)
        if reply is None:
            self._submit(ticket, task, self._sent_along())
        else:
            replies.append((ticket, reply))

    def _outcome(self, future: Any) -> Reply | str | None:
        if future.cancelled():
            return "the task was cancelled"
        error = future.exception()
        if isinstance(error, BrokenExecutor):
            raise RuntimeError(
                f"the executor is broken ({error}); workers=N makes processes that are replaced when they die"
            )
        if error is not None:
            return f"the worker failed ({type(error).__name__}: {error})"
        reply: Reply | None = future.result()
        return reply

    def _sent_along(self) -> Any:
        """The objective, for a worker that has none."""
        if self._payload is None:
            self._payload = to_payload(self._objective)
        return self._payload

    def abandon(self, ticket: int) -> None:
        """Give a task up; whether its worker can be freed is the executor's business."""
        future, _ = self._flight.pop(ticket)
        if not future.cancel():
            self._abandoned.add(ticket)

    def close(self) -> None:
        """Drop what has not begun. The executor is the user's."""
        for future, _ in self._flight.values():
            future.cancel()
