"""Calls that travel together: how many, and that nothing but time depends on it."""

from __future__ import annotations

import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from math import isnan, log, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from runs import P, bits, flaky, run

import poem_cma as pc
from poem_cma.workers import crew as crew_module
from poem_cma.workers.crew import Crew
from poem_cma.workers.parcels import ALONE_AFTER_A_LOSS, CALLS, MEMORY, NUMBERS, SECONDS, Parcels
from poem_cma.workers.task import Reply, Task


def measured(*seconds: float, cost: float = 0.001, timeout: float | None = None) -> Parcels:
    """After many calls that took so long in turn, each alone."""
    parcels = Parcels(timeout, together=True)
    for _ in range(200):
        for each in seconds:
            parcels.note([each], each + cost)
    return parcels


def test_calls_travel_alone_until_they_are_known_and_for_a_while_after_a_loss() -> None:
    parcels = Parcels(None, together=True)
    for _ in range(MEMORY):
        assert parcels.size(64, 0, 4, 4) == parcels.most == 1
        parcels.note([0.001], 0.002)
    assert parcels.size(64, 0, 4, 4) == 16
    parcels.lost()
    for _ in range(ALONE_AFTER_A_LOSS):
        assert parcels.size(64, 0, 4, 4) == 1
        parcels.note([0.001], 0.002)
    assert parcels.size(64, 0, 4, 4) == 16


def test_equal_calls_are_shared_out_evenly_also_among_those_that_are_busy_still() -> None:
    parcels = measured(0.02)
    assert [parcels.size(waiting, 0, 16, 16) for waiting in (5, 16, 17, 64)] == [1, 1, 2, 4]
    assert parcels.size(45, 19, 6, 16) == 4  # and not 45 / 6


def test_unequal_calls_follow_kruskal_and_weiss() -> None:
    for low, high, cost in ((0.001, 0.003, 0.001), (0.001, 0.009, 0.002), (0.0, 0.0004, 0.004)):
        parcels = measured(low, high, cost=cost)
        spread = 0.5 * (high - low)
        expected = (sqrt(2.0) * 640 * cost / (spread * 8 * sqrt(log(8)))) ** (2 / 3)
        assert parcels.size(640, 0, 8, 8) == pytest.approx(min(expected, CALLS), rel=0.25)
    assert measured(0.0, 0.04, cost=1e-4).size(64, 0, 16, 16) == 1  # a cheap place and very unequal calls


def test_a_parcel_is_little_work_and_little_data() -> None:
    assert measured(0.02).most == int(SECONDS / 0.02)
    assert measured(1.0).most == 1
    assert measured(0.02, timeout=0.2).most == 2  # far from the time limit
    assert measured(0.0, cost=0.0).most == CALLS
    parcels = measured(1e-6)
    assert parcels.most == CALLS
    parcels.numbers = NUMBERS // 3
    assert parcels.most == 3
    parcels.numbers = 10 * NUMBERS
    assert parcels.most == 1


class Counting:
    """What an executor was given: the number of calls in each parcel."""

    def __init__(self, executor: Any) -> None:
        self._executor, self._max_workers = executor, executor._max_workers
        self.sizes: Counter[int] = Counter()

    def submit(self, fn: Any, token: str, payload: Any, calls: list[Any]) -> Any:
        self.sizes[len(calls)] += 1
        return self._executor.submit(fn, token, payload, calls)


@pytest.mark.parametrize("method", ["poem", "auto"])
def test_the_bits_and_the_attempts_do_not_depend_on_parcels(method: str) -> None:
    settings: dict[str, Any] = {"method": method, "batch": 8, "budget": 600}
    expected = bits(run(flaky, **settings))
    with ThreadPoolExecutor(2) as threads:
        together, alone = Counting(threads), Counting(threads)
        assert bits(run(flaky, workers=pc.Workers(together, retries=1), **settings)) == expected
        assert bits(run(flaky, workers=pc.Workers(alone, retries=0), **settings)) == expected
    assert max(together.sizes) > 1
    assert set(alone.sizes) == {1}  # nothing may be called twice, so nothing is put at risk by others


def lethal(x: np.ndarray, i: int) -> float:
    """Some samples end the process, whenever they are tried."""
    if i % 97 == 3:
        os._exit(5)
    return P.fun(x, i)


def raising(x: np.ndarray, i: int) -> float:
    if i % 97 == 3:
        raise RuntimeError("instead of the end")
    return P.fun(x, i)


def test_who_travels_with_a_call_that_kills_survives() -> None:
    settings: dict[str, Any] = {"batch": 4, "budget": 160}
    expected = run(raising, **settings)
    assert 0 < expected.failures < 20
    result = run(lethal, workers=pc.Workers(2, retries=1), **settings)
    assert result.failures == expected.failures
    assert result.x.tobytes() == expected.x.tobytes()
    assert result.fun == expected.fun


class Moods:
    """A place where parcels are lost, fail in part, or are answered, in any order, as the test draws it."""

    def __init__(self, workers: int, draw: Any) -> None:
        self.workers, self.draw = workers, draw
        self.parcels: dict[int, list[Task]] = {}
        self.alone: Counter[int] = Counter()  # attempts that failed by the task's own doing
        self.lost: Counter[int] = Counter()  # with others

    def slots(self) -> int:
        return self.workers

    def start(self, ticket: int, tasks: list[Task], avoid: Any) -> str:
        assert len(self.parcels) < self.workers
        assert len(tasks) == 1 or not any(self.alone[t.probe] + self.lost[t.probe] for t in tasks)
        self.parcels[ticket] = tasks
        return "somebody"

    def collect(self, seconds: float) -> list[tuple[int, list[Reply] | str]]:
        ticket = self.draw(st.sampled_from(sorted(self.parcels)))
        tasks = self.parcels.pop(ticket)
        if self.draw(st.integers(0, 9)) == 0:
            for task in tasks:
                (self.lost if len(tasks) > 1 else self.alone)[task.probe] += 1
            return [(ticket, "lost")]
        return [(ticket, [self.reply(task) for task in tasks])]

    def reply(self, task: Task) -> Reply:
        if self.draw(st.integers(0, 4)) == 0:
            self.alone[task.probe] += 1
            return Reply([float("nan")], "fun raised", again=True, seconds=1e-3)
        return Reply([float(task.probe)], seconds=1e-3)

    def abandon(self, ticket: int) -> None: ...

    def close(self) -> None: ...


@given(data=st.data(), workers=st.integers(1, 4), retries=st.integers(0, 3), tasks=st.integers(1, 60))
def test_every_task_is_answered_once_whatever_becomes_of_its_parcel(
    data: Any, workers: int, retries: int, tasks: int
) -> None:
    place = Moods(workers, data.draw)
    crew = Crew(place, pc.Workers(workers, retries=retries))
    for _ in range(MEMORY):
        crew._parcels.note([1e-3], 2e-3)
    for n in range(tasks):
        crew.submit(Task(n, 0, np.zeros((1, 2)), [n]))
    answers = []
    while len(answers) < tasks:
        answers += crew.wait(0.0)
    assert sorted(a.task.probe for a in answers) == list(range(tasks))
    assert not crew._flight
    assert crew._away == 0
    for a in answers:
        n = a.task.probe
        failed = place.alone[n] == retries + 1
        assert a.values == [float(n)] or (failed and isnan(a.values[0]))
        assert len(a.failures) == place.alone[n] + place.lost[n]
        assert a.attempts == len(a.failures) + (not failed)
        assert place.lost[n] <= 1
        assert retries > 0 or place.lost[n] == 0


class Clocked:
    """Two workers by a clock of the test's: a parcel with task 7 never answers."""

    def __init__(self, now: list[float]) -> None:
        self.now = now
        self.parcels: dict[int, list[Task]] = {}
        self.given_up: list[list[int]] = []

    def slots(self) -> int:
        return 2

    def start(self, ticket: int, tasks: list[Task], avoid: Any) -> str:
        self.parcels[ticket] = tasks
        return "somebody"

    def collect(self, seconds: float) -> list[tuple[int, list[Reply] | str]]:
        good = {ticket: tasks for ticket, tasks in self.parcels.items() if all(t.probe != 7 for t in tasks)}
        self.now[0] += 0.001 if good else seconds
        for ticket in good:
            del self.parcels[ticket]
        return [(ticket, [Reply([1.0], seconds=1e-3)] * len(tasks)) for ticket, tasks in good.items()]

    def abandon(self, ticket: int) -> None:
        self.given_up.append([task.probe for task in self.parcels.pop(ticket)])

    def close(self) -> None: ...


def test_a_call_that_hangs_is_found_within_the_timeout_and_costs_its_companions_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr(crew_module.time, "monotonic", lambda: now[0])
    place = Clocked(now)
    crew = Crew(place, pc.Workers(2, timeout=5.0, retries=2))
    for _ in range(MEMORY):
        crew._parcels.note([1e-3], 2e-3)
    for n in range(16):
        crew.submit(Task(n, 0, np.zeros((1, 2)), [n]))
    answers = []
    while len(answers) < 16:
        answers += crew.wait(10.0)
    assert place.given_up == [[0, 1, 2, 3, 4, 5, 6, 7], [7], [7], [7]]
    assert now[0] == pytest.approx(4 * 5.0, abs=0.1)
    for a in answers:
        if a.task.probe == 7:
            assert isnan(a.values[0])
            assert a.failures == ["no answer within 5 s, with 8 calls"] + ["no answer within 5 s"] * 3
        else:
            assert a.values == [1.0]
            assert len(a.failures) == (a.task.probe < 7)
