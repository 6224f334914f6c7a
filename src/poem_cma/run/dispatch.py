"""Calls handed out to workers and kept in a store: ask, hand out, store, tell.

Probes are told in the order in which a run without workers would tell them, so the outcome is that run's, bit for bit.
What is answered is stored at once, in whatever order it comes.
"""

from __future__ import annotations

import os
import time
from collections import deque
from itertools import count
from math import isfinite
from typing import Any

import numpy as np

from poem_cma._types import Array
from poem_cma.optimizer import Optimizer
from poem_cma.run.algorithm import Probe
from poem_cma.run.failure import FIRST, Failure, reraise
from poem_cma.run.in_flight import asks_again, between_stages, change_budget
from poem_cma.run.measure import POINTS
from poem_cma.run.oracle import EvaluationError
from poem_cma.run.randomness import Stream
from poem_cma.run.standing import standing
from poem_cma.store import NoStore, Store
from poem_cma.store.layout import Call
from poem_cma.workers.crew import Answer, Crew, WorkersLostError
from poem_cma.workers.flight import Pending, place_of, tasks_of
from poem_cma.workers.task import Objective, Task

__all__ = ["Dispatch"]

#: Answers that wait for one that was asked before them.
MOST_WAITING = 10_000

#: What is answered of a probe is written when the probe is complete, or when so many seconds have gone by.
SECONDS_BETWEEN_SAVES = 0.05

_SECONDS_BETWEEN_LOOKS = 0.2  # at the clock and at the workers, while nothing is answered


class Dispatch:
    """Asks, hands out, stores and tells. `budget` is one that the search takes up between two stages."""

    def __init__(
        self, opt: Optimizer, crew: Crew, store: Store | NoStore, objective: Objective, failure: str | None = None,
        budget: float | None = None,
    ) -> None:  # fmt: skip
        self.opt, self.crew, self.first_failure = opt, crew, failure
        self._store, self._objective, self._budget = store, objective, budget
        self._measured = {n: call.value for n, call in store.measured.items()}
        self._order: deque[Pending] = deque()  # in which probes are told
        self._by_id: dict[int, Pending] = {}
        self._fresh = False  # whether anything was answered since the last save
        self._complete = False  # whether a probe was completed since
        self._saved = 0.0
        self._answered = opt.nfev > opt.failures  # whether an evaluation has returned a number
        self._raised = 0  # evaluations that have raised before

    @property
    def measured(self) -> tuple[int, int]:
        """Calls that measured a result so far, and how many of them failed."""
        return len(self._measured), sum(not isfinite(value) for value in self._measured.values())

    def step(self) -> bool:
        """Tell a probe if one is answered, else hand out what can be asked and wait; False at the end of the run.

        Calls that the store holds are told again without coming back to the loop, which has seen these steps.
        """
        while not self._ended():
            if self._order and not self._order[0].left:
                self._tell_the_first()
                if not self._store.replaying:
                    return True
                continue
            self._save()
            self._ask()
            if not self._order:
                return False
            if self._order[0].left:
                self._collect()
                return True
        return False

    def _ended(self) -> bool:
        """Whether the run is over, once it has taken up its new budget."""
        if self._budget is not None and not self._store.replaying and between_stages(self.opt):
            change_budget(self.opt, self._budget)
            self._budget = None
            self.snapshot()
        return self.opt.done

    def _tell_the_first(self) -> None:
        opt, pending = self.opt, self._order.popleft()
        del self._by_id[pending.probe.id]
        if pending.failure is not None:
            self._note_failure(pending)
        opt.tell(pending.probe, pending.values)
        if asks_again(opt) and (probe := opt.ask()) is not None:
            self._take(probe, first=True)

    def _note_failure(self, pending: Pending) -> None:
        if self.first_failure is None:
            self.first_failure = pending.failure
        if self._objective.on_failure == "raise":
            j, probe = pending.failed_at, pending.probe
            stream = Stream.SAMPLES if probe.id >= 0 else Stream.EVALUATION
            xi = () if self._objective.sample is None else (self._objective.draw(probe.numbers[j], stream),)
            what = f"{pending.failure} (the point is in .x, the sample in .xi)"
            raise EvaluationError(what, np.array(probe.points[j]), *xi)

    def _ask(self) -> None:
        """Ask for as much as the workers can use."""
        while self.crew.room > 0 and len(self._order) < MOST_WAITING and (probe := self.opt.ask()) is not None:
            self._take(probe)
            if self._store.replaying and not self._order[0].left:
                return  # what is known is told first

    def _take(self, probe: Probe, first: bool = False) -> None:
        pending = Pending(probe)
        self._by_id[probe.id] = pending
        (self._order.appendleft if first else self._order.append)(pending)
        for task in tasks_of(probe, self._objective):
            if not (self._store.replaying and self._recalled(task, pending)):
                self.crew.submit(task)

    def _recalled(self, task: Task, pending: Pending) -> bool:
        """Whether the store holds the values of a task; then they are put into its probe."""
        places = enumerate(zip(task.points, task.numbers, strict=True), task.point)
        calls = [self._store.recall(task.probe, j, place_of(x, n)) for j, (x, n) in places]
        known = [c for c in calls if c is not None]
        if len(known) < len(calls):
            return False
        failed = next((c for c in known if not isfinite(c.value)), None)
        self._answered |= any(isfinite(c.value) for c in known)
        why = None if failed is None else self._store.why(failed.probe, failed.point)
        pending.put(task.point, [c.value for c in known], why)
        return True

    def _collect(self) -> None:
        """Wait for answers."""
        try:
            answers = self.crew.wait(_SECONDS_BETWEEN_LOOKS)
        except WorkersLostError:
            self.pause()
            raise
        for answer in answers:
            self._keep(answer)
            failed = not all(map(isfinite, answer.values))
            pending = self._by_id[answer.task.probe]
            pending.put(answer.task.point, answer.values, answer.failures[-1] if failed else None)
            if not self._answered:
                self._note_first(answer)
            self._complete |= not pending.left

    def _note_first(self, answer: Answer) -> None:
        """If the first evaluations all raise, the exception is the user's."""
        self._answered = any(map(isfinite, answer.values))
        failure = answer.failures[-1] if answer.failures else None
        if self._answered or not isinstance(failure, Failure) or failure.error is None:
            return
        self._raised += 1
        if self._raised >= FIRST and self._objective.on_failure == "drop":
            self.pause()
            reraise(failure)

    def _keep(self, answer: Answer) -> None:
        if isinstance(self._store, NoStore):
            return
        task, now, share = answer.task, time.time(), answer.seconds / len(answer.values)
        for j, (x, n, value) in enumerate(zip(task.points, task.numbers, answer.values, strict=True), task.point):
            self._store.add(Call(task.probe, j, value, share, now, answer.attempts, place_of(x, n)))
        for attempt, why in enumerate(answer.failures, 1):
            self._store.failed(task.probe, task.point, attempt, why)
        self._fresh = True

    def _save(self, now: bool = False) -> None:
        """What was answered since the last time, in one transaction; now and then the state."""
        if not self._fresh:
            return
        clock = time.monotonic()
        if not (now or self._complete or clock - self._saved >= SECONDS_BETWEEN_SAVES):
            return
        self._fresh, self._complete, self._saved = False, False, clock
        if self._store.snapshot_due():
            self.snapshot()
        else:
            self._store.commit(self._status)

    def pause(self) -> None:
        """Keep what was answered so far."""
        self._save(now=True)

    def snapshot(self, **documents: Any) -> None:
        """Keep the state; probes that were asked and not told are asked again when the run goes on."""
        untold = {pending.probe.id for pending in self._order}
        self._store.snapshot(self.opt, self.first_failure, untold, self._status(), **documents)

    def measure(self, points: list[Array], wanted: int, most: int) -> Array:
        """Values (points, samples) on common fresh samples, by at most so many calls; those known before are used."""
        self.crew.forget()
        numbers, values = self._numbers(points, wanted, most)
        waiting = deque(k for n in numbers for k in _slots(points, n) if k not in values)
        pending: dict[int, Pending] = {}
        while waiting or pending:
            while waiting and self.crew.room > 0:
                k = waiting.popleft()
                n, j = divmod(k, POINTS)
                probe = Probe(points[j][None], [n], -1 - k)
                pending[k] = self._by_id[probe.id] = Pending(probe)
                self.crew.submit(Task(probe.id, 0, probe.points, [n], Stream.EVALUATION))
            self._collect()
            for k in [k for k, p in pending.items() if not p.left]:
                done = pending.pop(k)
                del self._by_id[-1 - k]
                values[k] = self._measured[k] = done.values[0]
                if done.failure is not None:
                    self._note_failure(done)
            self._save()
        return np.reshape([values[k] for n in numbers for k in _slots(points, n)], (-1, len(points))).T

    def _numbers(self, points: list[Array], wanted: int, most: int) -> tuple[list[int], dict[int, float]]:
        """The samples on which the points are measured, and the values that are known already.

        They are the first samples that were not used at another point: a measurement that was cut off is completed.
        """
        numbers: list[int] = []
        values: dict[int, float] = {}
        for n in count():
            if wanted <= 0:
                return numbers, values
            calls = [self._store.measured.get(k) for k in _slots(points, n)]
            if any(c is not None and c.place != place_of(x, n) for c, x in zip(calls, points, strict=True)):
                continue
            wanted -= 1
            new = sum(call is None for call in calls)
            if new <= most:
                most -= new
                numbers.append(n)
                self._note_known([call for call in calls if call is not None], values)
        raise AssertionError

    def _note_known(self, calls: list[Call], values: dict[int, float]) -> None:
        for call in calls:
            values[-1 - call.probe] = call.value
            if self.first_failure is None and not isfinite(call.value):
                self.first_failure = self._store.why(call.probe, call.point)

    def _status(self) -> dict[str, Any]:
        """Where the run is, for those who look at the store."""
        now = standing(self.opt)._asdict()
        del now["dimension"]
        return now | {"busy": self.crew.busy, "workers": self.crew.workers, "time": time.time(), "pid": os.getpid()}


def _slots(points: list[Array], n: int) -> range:
    """The numbers of the evaluations of sample n in the final measurement, one for each point."""
    return range(POINTS * n, POINTS * n + len(points))
