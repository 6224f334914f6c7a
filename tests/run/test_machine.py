"""Any sequence of asking, telling, failing, saving, loading, interrupting and resuming ends with the same bits."""

from __future__ import annotations

import contextlib
import pathlib
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from runs import METHODS, P, bits, flaky, run

import poem_cma as pc
from poem_cma.store import View
from poem_cma.store import store as writer

BUDGET = 90


class Asking(RuleBasedStateMachine):
    """An optimiser under any hands."""

    @initialize(method=st.sampled_from(sorted(METHODS)), batch=st.integers(1, 3), ahead=st.integers(0, 4))
    def start(self, method: str, batch: int, ahead: int) -> None:
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.fresh = lambda: pc.Optimizer(
            np.full(4, 0.1), method=METHODS[method], domain=pc.Ball(1.0), budget=BUDGET, seed=5, batch=batch,
            ahead=ahead,
        )  # fmt: skip
        self.opt = self.fresh()
        self.flight: list[pc.Probe] = []

    @staticmethod
    def values(probe: pc.Probe) -> list[float]:
        """A function of the probe alone, that fails now and then."""
        n = probe.numbers[0]
        return [np.nan if (n + j) % 7 == 2 else P.fun(x, n % P.n) for j, x in enumerate(probe.points)]

    @rule()
    def ask(self) -> None:
        if (probe := self.opt.ask()) is not None:
            self.flight.append(probe)

    @precondition(lambda self: self.flight)
    @rule(data=st.data())
    def tell(self, data: st.DataObject) -> None:
        probe = self.flight.pop(data.draw(st.integers(0, len(self.flight) - 1)))
        self.opt.tell(probe, self.values(probe))

    @precondition(lambda self: self.flight)
    @rule()
    def tell_nonsense(self) -> None:
        before = self.opt.nfev
        for bad in ([], [1.0] * 99, "abc"):
            with contextlib.suppress(ValueError):
                self.opt.tell(self.flight[0], bad)
                raise AssertionError("accepted")
        assert self.opt.nfev == before

    @rule()
    def save_and_load(self) -> None:
        self.opt.save(self.folder / "run")
        self.opt, asked = pc.Optimizer.load(self.folder / "run"), {p.id: p for p in self.flight}
        self.flight = []
        while (probe := self.opt.ask()) is not None:  # what was in flight is asked again, at the same points
            self.flight.append(probe)
            if probe.id in asked:
                assert probe.points.tobytes() == asked.pop(probe.id).points.tobytes()
        assert not asked

    def teardown(self) -> None:
        if not hasattr(self, "opt"):
            return
        shutil.rmtree(self.folder)
        for opt, flight in ((self.opt, self.flight), (self.fresh(), [])):
            while flight or (probe := opt.ask()) is not None:
                todo = flight.pop(0) if flight else probe
                opt.tell(todo, self.values(todo))
            assert opt.nfev <= BUDGET
        assert bits(self.opt.result()) == bits(opt.result())


class Sessions(RuleBasedStateMachine):
    """A store that is opened again and again, each time for a few calls, by one hand or many."""

    @initialize(
        method=st.sampled_from(sorted(METHODS)), batch=st.integers(1, 3), ahead=st.integers(0, 3),
        every=st.sampled_from([7, 20, 5000]),
    )  # fmt: skip
    def start(self, method: str, batch: int, ahead: int, every: int) -> None:
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.settings: dict[str, Any] = {"method": METHODS[method], "batch": batch, "ahead": ahead, "budget": 100}
        self.every, self.told = every, 0

    def session(self, fun: Any, **changes: Any) -> pc.Result:
        before, writer.CALLS_BETWEEN_SNAPSHOTS = writer.CALLS_BETWEEN_SNAPSHOTS, self.every
        try:
            return run(fun, store=self.folder / "run.db", **(self.settings | changes))
        finally:
            writer.CALLS_BETWEEN_SNAPSHOTS = before

    @rule(calls=st.integers(0, 30))
    def interrupted(self, calls: int) -> None:
        left = calls

        def fun(x: np.ndarray, i: int) -> float:
            nonlocal left
            left -= 1
            if left < 0:
                raise KeyboardInterrupt
            return flaky(x, i)

        self.session(fun)
        self.look()

    @rule(calls=st.integers(1, 5), workers=st.integers(1, 3))
    def many_hands(self, calls: int, workers: int) -> None:
        left = calls

        def stop(x: np.ndarray) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise KeyboardInterrupt

        with ThreadPoolExecutor(workers) as threads:
            self.session(flaky, workers=pc.Workers(threads, retries=0), callback=stop)
        self.look()

    @rule()
    def other_settings(self) -> None:
        if (self.folder / "run.db").exists():
            with contextlib.suppress(RuntimeError):
                self.session(flaky, seed=99)
                raise AssertionError("accepted")

    @rule()
    def copied(self) -> None:
        if (self.folder / "run.db").exists():
            with View(self.folder / "run.db") as view:
                view.copy(self.folder / "copy.db")
            (self.folder / "copy.db").replace(self.folder / "run.db")

    def look(self) -> None:
        """No told value is ever lost."""
        with View(self.folder / "run.db") as view:
            calls = view.calls()
        places = {(int(c["probe"]), int(c["point"])) for c in calls}
        assert len(places) == len(calls) >= self.told
        self.told = len(calls)

    def teardown(self) -> None:
        if hasattr(self, "settings"):
            assert bits(self.session(flaky)) == bits(run(flaky, **self.settings))
            shutil.rmtree(self.folder)


TestAsking = Asking.TestCase
TestAsking.settings = settings(max_examples=30, stateful_step_count=40, deadline=None)
TestSessions = Sessions.TestCase
TestSessions.settings = settings(max_examples=25, stateful_step_count=10, deadline=None)
