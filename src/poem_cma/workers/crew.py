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

from poem_cma.workers.parcels import Parcels
from poem_cma.workers.task import Reply, Task
from poem_cma.workers.workers import Workers

__all__ = ["Answer", "Crew", "NotBegun", "WorkersLostError"]

log = logging.getLogger("poem_cma")


class WorkersLostError(RuntimeError):
    """There were no workers for longer than `patience`."""


class NotBegun(str):
    """Why a parcel is lost that a worker had not begun: it is not to blame."""

    __slots__ = ()


class Place(Protocol):
    """Where tasks are worked on: a worker works on one parcel of them at a time."""

    in_hand: int  # parcels that a worker may have: the one it works on, and those that come next

    def slots(self) -> int:
        """Workers there are now."""

    def start(self, ticket: int, tasks: list[Task], avoid: Collection[Any]) -> Any:
        """Begin a parcel; who has it, or None if nobody can take it now, or only workers to avoid where others are."""

    def collect(self, seconds: float) -> list[tuple[int, list[Reply] | str]]:
        """Replies, or why there are none, as soon as there are any, or nothing after so many seconds."""

    def abandon(self, ticket: int) -> None:
        """Give a parcel up."""

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
    shared: int = 0  # of its failures, those of a parcel with others: it may not be to blame
    avoid: set[Any] = field(default_factory=set)


@dataclass
class _Parcel:
    """Tasks that a worker has."""

    jobs: list[_Job]
    worker: Any
    started: float
    deadline: float


class Crew:
    """Tasks in, answers out."""

    def __init__(self, place: Place, workers: Workers | None, steady: bool = False) -> None:
        self._place = place
        self._timeout = workers.timeout if workers is not None else None
        self._retries = workers.retries if workers is not None else 0
        self._patience = workers.patience if workers is not None else None
        # A call that is lost with others is made again alone, so there must be leave to make it again.
        self._parcels = Parcels(self._timeout, together=self._retries > 0, steady=steady)
        # With calls that wait their turn at a worker, nobody could tell how long each takes.
        self._in_hand = place.in_hand = 2 if steady and workers is not None and self._timeout is None else 1
        self._tickets = itertools.count()
        self._waiting: deque[_Job] = deque()
        self._flight: dict[int, _Parcel] = {}
        self._away = 0  # tasks in flight
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
        return max(1, self._place.slots()) * self._parcels.most - self._away - len(self._waiting)

    def submit(self, task: Task) -> None:
        """Take a task."""
        self._parcels.numbers = task.points.size
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
        if self._timeout is not None:
            until = min((parcel.deadline for parcel in self._flight.values()), default=inf)
            seconds = max(0.0, min(seconds, until - now))
        answers = []
        for ticket, replies in self._collected(seconds):
            parcel = self._landed(ticket)
            if ticket not in self._forgotten:
                answers += self._lost(parcel, replies) if isinstance(replies, str) else self._opened(parcel, replies)
        if self._timeout is not None and self._alone_since is None:
            answers += self._give_up_late_ones(time.monotonic())
        return answers

    def _collected(self, seconds: float) -> list[tuple[int, list[Reply] | str]]:
        """What has come in; where workers have their next parcels at hand, also what comes in a moment later."""
        collected = self._place.collect(seconds)
        if collected and self._in_hand > 1 and len(self._flight) > self._place.slots():
            time.sleep(self._parcels.moment)
            collected += self._place.collect(0.0)
        return collected

    def _begin_waiting(self) -> None:
        """Hand out what is waiting, as far as there are workers."""
        most = self._in_hand * self._place.slots()
        aside: list[_Job] = []  # to be tried elsewhere, where all are busy
        while self._waiting and len(self._flight) < most:
            jobs = self._next_parcel(most)
            ticket = next(self._tickets)
            worker = self._place.start(ticket, [job.task for job in jobs], jobs[0].avoid)
            if worker is None and not jobs[0].avoid:
                break
            for _ in jobs:
                self._waiting.popleft()
            if worker is None:
                aside += jobs
                continue
            now = time.monotonic()
            self._flight[ticket] = _Parcel(jobs, worker, now, inf if self._timeout is None else now + self._timeout)
            self._away += len(jobs)
        self._waiting.extendleft(reversed(aside))

    def _next_parcel(self, most: int) -> list[_Job]:
        """The first that wait. What failed before travels alone."""
        size = self._parcels.size(len(self._waiting), self._away, most - len(self._flight), most)
        jobs = list(itertools.islice(self._waiting, size))
        again = next((j for j, job in enumerate(jobs) if job.failures), size)
        return jobs[: max(1, again)]

    def _landed(self, ticket: int) -> _Parcel:
        parcel = self._flight.pop(ticket)
        self._away -= len(parcel.jobs)
        return parcel

    def _opened(self, parcel: _Parcel, replies: list[Reply]) -> list[Answer]:
        self._parcels.note([reply.seconds for reply in replies], time.monotonic() - parcel.started)
        answers = []
        for job, reply in zip(parcel.jobs, replies, strict=True):
            if reply.fatal is not None:
                raise RuntimeError(f"the objective cannot be evaluated: {reply.fatal}")
            if reply.again:
                answers += self._failed(job, parcel.worker, reply.failure or "", reply)
            else:
                failures = [*job.failures] if reply.failure is None else [*job.failures, reply.failure]
                answers.append(Answer(job.task, reply.values, reply.seconds, len(job.failures) + 1, failures))
        return answers

    def _lost(self, parcel: _Parcel, why: str) -> list[Answer]:
        """No reply will come. Of several calls nobody knows which is to blame: each is made again, alone."""
        if isinstance(why, NotBegun):
            self._waiting.extendleft(reversed(parcel.jobs))
            return []
        if len(parcel.jobs) > 1:
            self._parcels.lost()
            why += f", with {len(parcel.jobs)} calls"
            for job in parcel.jobs:
                job.shared += 1
        return [a for job in reversed(parcel.jobs) for a in self._failed(job, parcel.worker, why)]

    def _failed(self, job: _Job, worker: Any, why: str, reply: Reply | None = None) -> list[Answer]:
        """Try again, elsewhere; or answer with what there is."""
        job.failures.append(why)
        if len(job.failures) - job.shared <= self._retries:
            job.avoid.add(worker)
            self._waiting.appendleft(job)
            return []
        values = [nan] * len(job.task.points) if reply is None else reply.values
        return [Answer(job.task, values, 0.0 if reply is None else reply.seconds, len(job.failures), job.failures)]

    def _give_up_late_ones(self, now: float) -> list[Answer]:
        late = [ticket for ticket, parcel in self._flight.items() if parcel.deadline <= now]
        answers = []
        for ticket in late:
            self._place.abandon(ticket)
            parcel = self._landed(ticket)
            if ticket not in self._forgotten:
                answers += self._lost(parcel, f"no answer within {self._timeout:g} s")
        return answers

    def _be_patient(self, now: float) -> None:
        """Without workers: say so, stop the clocks, and wait as long as the user wants to."""
        if self._place.slots() > 0:
            if self._alone_since is not None:
                log.warning("workers are back after %.0f s: the run goes on", now - self._alone_since)
                for parcel in self._flight.values():
                    parcel.deadline += now - self._alone_since
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
