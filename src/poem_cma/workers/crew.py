"""Every task is answered once: attempts, timeouts, retries, and patience when there are no workers."""

from __future__ import annotations

import itertools
import logging
import time
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from math import inf, nan
from typing import Any, NamedTuple, Protocol

from poem_cma.workers.task import Reply, Task
from poem_cma.workers.workers import Workers

__all__ = ["Answer", "Crew", "WorkersLostError"]

log = logging.getLogger("poem_cma")


class WorkersLostError(RuntimeError):
    """There were no workers for longer than `patience`."""


class Place(Protocol):
    """Where tasks are worked on."""

    depth: int  # tasks that a worker is given at a time

    def slots(self) -> int:
        """Workers there are now."""

    def start(self, ticket: int, task: Task, avoid: Collection[Any]) -> Any:
        """Begin a task; who has it, or None if nobody can take it now."""

    def collect(self, seconds: float) -> list[tuple[int, Reply | str]]:
        """Replies, or why there is none, as soon as there are any, or nothing after so many seconds."""

    def abandon(self, ticket: int) -> None:
        """Give a task up."""

    def close(self) -> None:
        """Leave nothing behind."""


class Answer(NamedTuple):
    """The end of a task."""

    task: Task
    values: list[float]
    seconds: float
    attempts: int
    failures: list[str]  # why attempts failed; the last one counts if the values are NaN


@dataclass
class _Job:
    """A task that is not answered yet."""

    task: Task
    failures: list[str] = field(default_factory=list)
    avoid: set[Any] = field(default_factory=set)
    worker: Any = None
    deadline: float = inf


class Crew:
    """Tasks in, answers out."""

    def __init__(self, place: Place, workers: Workers | None) -> None:
        self._place = place
        self._timeout = workers.timeout if workers is not None else None
        self._retries = workers.retries if workers is not None else 0
        self._patience = workers.patience if workers is not None else None
        self._tickets = itertools.count()
        self._waiting: deque[_Job] = deque()
        self._flight: dict[int, _Job] = {}
        self._forgotten: set[int] = set()
        self._alone_since: float | None = None

    @property
    def busy(self) -> int:
        """Workers with something to do."""
        return min(len(self._flight), self._place.slots())

    @property
    def workers(self) -> int:
        """Workers there are."""
        return self._place.slots()

    @property
    def room(self) -> int:
        """How many more tasks it can use now."""
        return max(1, self._place.slots()) * self._place.depth - len(self._flight) - len(self._waiting)

    def submit(self, task: Task) -> None:
        """Take a task."""
        self._waiting.append(_Job(task))

    def forget(self) -> None:
        """Nobody waits for the tasks so far any longer."""
        self._waiting.clear()
        self._forgotten = set(self._flight)

    def wait(self, seconds: float) -> list[Answer]:
        """Answers, as soon as there are any, or nothing after about so many seconds."""
        self._begin_waiting()
        now = time.monotonic()
        self._be_patient(now)
        until = min((job.deadline for job in self._flight.values()), default=inf)
        answers = []
        for ticket, reply in self._place.collect(max(0.0, min(seconds, until - now))):
            job = self._flight.pop(ticket)
            if ticket not in self._forgotten:
                answers += self._received(job, reply)
        if self._timeout is not None and self._alone_since is None:
            answers += self._give_up_late_ones(time.monotonic())
        return answers

    def _begin_waiting(self) -> None:
        """Hand out what is waiting, as far as there are workers."""
        most = self._place.slots() * self._place.depth
        while self._waiting and len(self._flight) < most:
            job = self._waiting[0]
            ticket = next(self._tickets)
            job.worker = self._place.start(ticket, job.task, job.avoid)
            if job.worker is None:
                return
            self._waiting.popleft()
            if self._timeout is not None:
                job.deadline = time.monotonic() + self._timeout * self._place.depth
            self._flight[ticket] = job

    def _received(self, job: _Job, reply: Reply | str) -> list[Answer]:
        if isinstance(reply, str):  # the worker is lost
            return self._failed(job, reply)
        if reply.fatal is not None:
            raise RuntimeError(f"the objective cannot be evaluated: {reply.fatal}")
        if reply.again:
            return self._failed(job, reply.failure or "", reply)
        failures = [*job.failures] if reply.failure is None else [*job.failures, reply.failure]
        return [Answer(job.task, reply.values, reply.seconds, len(job.failures) + 1, failures)]

    def _failed(self, job: _Job, why: str, reply: Reply | None = None) -> list[Answer]:
        """Try again, elsewhere; or answer with what there is."""
        job.failures.append(why)
        if len(job.failures) <= self._retries:
            job.avoid.add(job.worker)
            job.deadline = inf
            self._waiting.appendleft(job)
            return []
        values = [nan] * len(job.task.points) if reply is None else reply.values
        return [Answer(job.task, values, 0.0 if reply is None else reply.seconds, len(job.failures), job.failures)]

    def _give_up_late_ones(self, now: float) -> list[Answer]:
        late = [ticket for ticket, job in self._flight.items() if job.deadline <= now]
        answers = []
        for ticket in late:
            self._place.abandon(ticket)
            job = self._flight.pop(ticket)
            if ticket not in self._forgotten:
                answers += self._failed(job, f"no answer within {self._timeout:g} s")
        return answers

    def _be_patient(self, now: float) -> None:
        """Without workers: say so, stop the clocks, and wait as long as the user wants to."""
        if self._place.slots() > 0:
            if self._alone_since is not None:
                log.warning("workers are back after %.0f s: the run goes on", now - self._alone_since)
                for job in self._flight.values():
                    job.deadline += now - self._alone_since
                self._alone_since = None
            return
        if self._alone_since is None:
            self._alone_since = now
            limit = "" if self._patience is None else f", for {self._patience:g} s at most"
            log.warning("no workers are left: the run waits for them%s", limit)
        elif self._patience is not None and now - self._alone_since > self._patience:
            raise WorkersLostError(f"there were no workers for {self._patience:g} s")

    def close(self) -> None:
        """Leave nothing behind."""
        self._place.close()
