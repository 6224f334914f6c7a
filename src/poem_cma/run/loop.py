"""The loop of a run with a store or with workers: ask, hand out, store, tell.

Probes are told in the order in which a run without workers would tell them, so the outcome is that run's, bit for bit.
What is answered is stored at once, in whatever order it comes.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from math import isfinite, nan
from typing import Any

import numpy as np

from poem_cma.minimize import summarise
from poem_cma.optimizer import Optimizer
from poem_cma.result import Result, Status
from poem_cma.run.algorithm import Probe
from poem_cma.run.oracle import EvaluationError
from poem_cma.run.randomness import Stream
from poem_cma.store import NoStore, Store
from poem_cma.store.layout import Call
from poem_cma.store.plan import at_boundary, with_budget
from poem_cma.workers.crew import Answer, Crew, WorkersLostError
from poem_cma.workers.flight import Pending, place_of, tasks_of
from poem_cma.workers.task import Objective, Task

__all__ = ["Driver"]

#: Answers that wait for one that was asked before them.
MOST_WAITING = 10_000

#: What is answered of a probe is written when the probe is complete, or when so many seconds have gone by.
SECONDS_BETWEEN_SAVES = 0.05

_SECONDS_BETWEEN_LOOKS = 0.2  # at the clock and at the workers, while nothing is answered


class Driver:
    """Asks, hands out, stores and tells."""

    def __init__(
        self, opt: Optimizer, crew: Crew, store: Store | NoStore, loop: Any, objective: Objective, failure: str | None
    ) -> None:
        self._opt, self._crew, self._store, self._loop, self._objective = opt, crew, store, loop, objective
        self._first_failure = failure
        self._order: deque[Pending] = deque()  # in which probes are told
        self._by_id: dict[int, Pending] = {}
        self._fresh = False  # whether anything was answered since the last save
        self._complete = False  # whether a probe was completed since
        self._saved = 0.0
        self._show: Any = None
        loop.final = store.plan["final"]
        loop._nit = opt.nit

    def minimize(self, progress: bool) -> Result:
        """To the end, or as far as it goes."""
        opt, plan = self._opt, self._store.plan
        with self._progress_bar() if progress else contextlib.nullcontext() as self._show:
            try:
                result = opt.result(*self._run())
                result.nfev += plan["measured"]
                untold = self._untold()  # answered or not, they are asked again if the run goes on
                measured = self._measure(result) if plan["final"] and result.status != Status.FAILURES else 0
                if self._show is not None:
                    self._show.finish(result.nfev)
            except KeyboardInterrupt:
                self._save(now=True)
                result = opt.result(Status.INTERRUPTED, "interrupted; this is the result so far")
                result.nfev += plan["measured"]
                return self._worded(result)
            except EvaluationError as error:
                self._save(now=True)
                error.result = opt.result(Status.FAILURES, str(error))
                raise
            except WorkersLostError:
                self._save(now=True)
                raise
        self._worded(result)
        names = ("status", "message", "fun", "fun_stderr", "nfev", "failures")
        ended = {n: getattr(result, n) for n in names} | {"measured": measured, "target": self._loop.target}
        ended["x"] = result.x.tolist() if len(result.x) <= 10_000 else None
        self._store.snapshot(opt, self._first_failure, untold, self._status(), result=ended)
        return result

    def _run(self) -> tuple[int | None, str]:
        """The status and message of a stop that was asked for; (None, "") at the end of the budget."""
        while True:
            stop = self._tell()
            self._save()
            if stop is not None:
                return stop
            self._take_up_a_new_budget()
            self._ask()
            if not self._order:
                return None, ""
            if self._order[0].left:
                self._collect()
                if self._loop._late(self._opt.nfev):
                    return Status.TIME, f"the time limit of {self._loop.time_limit:g} s is reached"

    def _tell(self) -> tuple[int | None, str] | None:
        """Tell what is complete, in order; why to stop, if there is a reason."""
        opt = self._opt
        while self._order and not self._order[0].left:
            pending = self._order.popleft()
            del self._by_id[pending.probe.id]
            if pending.failure is not None:
                self._note_failure(pending)
            opt.tell(pending.probe, pending.values)
            stop: tuple[int, str] | None = None if self._store.replaying else self._loop.stop(opt, self._show)
            if stop is not None:
                return stop
            if opt.done:
                return None, ""
            if opt._again:  # its base value is asked again, before anything else is told
                self._take(opt.ask(), first=True)
        return None

    def _note_failure(self, pending: Pending) -> None:
        if self._first_failure is None:
            self._first_failure = pending.failure
        if self._objective.on_failure == "raise":
            j, probe = pending.failed_at, pending.probe
            xi = () if self._objective.sample is None else (self._objective.draw(probe.numbers[j]),)
            what = f"a call failed: {pending.failure} (the point is in .x, the sample in .xi)"
            raise EvaluationError(what, np.array(probe.points[j]), *xi)

    def _ask(self) -> None:
        """Ask for as much as the workers can use."""
        while self._crew.room > 0 and len(self._order) < MOST_WAITING and (probe := self._opt.ask()) is not None:
            self._take(probe)
            if self._store.replaying and not self._order[0].left:
                return  # what is known is told first

    def _take(self, probe: Probe | None, first: bool = False) -> None:
        assert probe is not None
        pending = Pending(probe)
        self._by_id[probe.id] = pending
        (self._order.appendleft if first else self._order.append)(pending)
        for task in tasks_of(probe, self._objective):
            self._recall_or_submit(task, pending)

    def _recall_or_submit(self, task: Task, pending: Pending) -> None:
        if not self._store.remembers:
            self._crew.submit(task)
            return
        places = range(task.point, task.point + len(task.points))
        calls = [
            self._store.recall(task.probe, j, place_of(x, n))
            for j, x, n in zip(places, task.points, task.numbers, strict=True)
        ]
        known = [c for c in calls if c is not None]
        if len(known) < len(calls):
            self._crew.submit(task)
            return
        failed = next((c for c in known if not isfinite(c.value)), None)
        why = None if failed is None else self._store.why(failed.probe, failed.point)
        pending.put(task.point, [c.value for c in known], why)

    def _collect(self) -> None:
        """Wait for answers."""
        for answer in self._crew.wait(_SECONDS_BETWEEN_LOOKS):
            self._keep(answer)
            failed = not all(map(isfinite, answer.values))
            pending = self._by_id[answer.task.probe]
            pending.put(answer.task.point, answer.values, answer.failures[-1] if failed else None)
            self._complete |= not pending.left

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
            self._store.snapshot(self._opt, self._first_failure, self._untold(), self._status())
        else:
            self._store.commit(self._status)

    def _untold(self) -> set[int]:
        return {pending.probe.id for pending in self._order}

    def _take_up_a_new_budget(self) -> None:
        """A change of the number of calls takes effect between two stages."""
        plan = self._store.plan
        budget = plan["budget"] - plan["final"] - plan["measured"]
        opt = self._opt
        if opt._state.run.budget != budget and not self._store.replaying and at_boundary(opt):
            with_budget(opt, budget)
            self._store.snapshot(opt, self._first_failure, (), self._status())

    def _measure(self, result: Result) -> int:
        """The mean of F at the returned point over fresh samples, one call each."""
        self._crew.forget()
        self._order.clear()
        self._by_id.clear()
        plan = self._store.plan
        first, final = plan["measured"], plan["final"]
        waiting = deque(range(first, first + final))
        values = np.full(final, nan)
        pending: dict[int, Pending] = {}
        while waiting or pending:
            while waiting and self._crew.room > 0:
                n = waiting.popleft()
                probe = Probe(result.x[None], [n], -1 - n)
                pending[n] = self._by_id[probe.id] = Pending(probe)
                self._recall_or_submit(Task(probe.id, 0, probe.points, [n], Stream.EVALUATION), pending[n])
            if all(p.left for p in pending.values()):
                self._collect()
            for n in [n for n, p in pending.items() if not p.left]:
                done = pending.pop(n)
                del self._by_id[-1 - n]
                values[n - first] = done.values[0]
                if done.failure is not None:
                    self._note_failure(done)
            self._save()
        summarise(result, values)
        return int(final)

    def _worded(self, result: Result) -> Result:
        """The message in terms of the whole budget, with the failures."""
        plan = self._store.plan
        if result.status == Status.BUDGET:
            own = plan["budget"] - plan["final"] - plan["measured"]
            result.message = result.message.replace(f"of {own} calls", f"of {plan['budget']} calls")
        if self._first_failure is not None:
            result.message += f" ({result.failures} calls failed; the first: {self._first_failure})"
        return result

    def _status(self) -> dict[str, Any]:
        """Where the run is, for those who look at the store."""
        opt, crew = self._opt, self._crew
        s, (value, stderr) = opt._state, opt.value
        return {
            "nfev": opt.nfev, "nit": opt.nit, "value": value, "stderr": stderr, "distance": s.r,
            "step_size": s.eta / (s.unit or 1.0), "failures": opt.failures, "busy": crew.busy,
            "workers": crew.workers, "time": time.time(), "pid": os.getpid(),
        }  # fmt: skip

    def _progress_bar(self) -> Any:
        from poem_cma.run.progress import Bar

        return Bar(self._opt, self._store.plan["budget"], self._crew)
