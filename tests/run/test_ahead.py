"""Steps that are asked before the one under way is complete."""

from __future__ import annotations

import os
import signal
import tracemalloc
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inside import state_of
from runs import METHODS, P, bits, flaky, run

import poem_cma as pc
from poem_cma import problems
from poem_cma.run import checks as setup
from poem_cma.workers.crew import Crew, NotBegun
from poem_cma.workers.task import Reply, Task


@pytest.mark.parametrize("ahead", [0, 1, 5])
def test_poem_with_late_gradients_is_its_literal_loop(ahead: int) -> None:
    d, steps = 6, 120
    opt = pc.Optimizer(np.ones(d), method="poem", budget=2 * steps, seed=4, ahead=ahead)
    r_eps = 1e-2 * (1.0 + np.sqrt(d))

    def f(x: np.ndarray) -> float:
        return float(np.abs(x - 0.2) @ np.arange(1.0, d + 1))

    # Written down from the pseudo-code: x is where the run is, and each probe was asked where it was `ahead` steps ago.
    x, G, late, eta, r_bar, mean, weights = np.ones(d), 0.0, 0.0, 0.0, r_eps, np.zeros(d), 0.0
    asked: deque[tuple[pc.Probe, np.ndarray, float]] = deque()
    best, best_score = x, -1.0
    for t in range(steps):
        while (probe := opt.ask()) is not None:
            mu = r_bar * np.sqrt(d / (t + 1.0))
            assert np.allclose(probe.points.mean(axis=0), x, rtol=1e-12, atol=1e-12)
            assert np.isclose(np.linalg.norm(probe.points[0] - x), mu)
            asked.append((probe, x, mu))
        assert len(asked) == min(ahead + 1, steps - t)
        probe, at, mu = asked.popleft()
        F = [f(point) for point in probe.points]
        g = d * (F[0] - F[1]) / (2.0 * mu) * (probe.points[0] - at) / mu
        G += g @ g
        if ahead and eta:
            late += 2.0 * g @ (at - x) / eta
        mean, weights = mean + r_bar * x, weights + r_bar
        eta = r_bar / np.sqrt(G + max(late, 0.0))
        x = x - eta * g
        r_bar = max(r_bar, float(np.linalg.norm(x - 1.0)))
        if weights / r_bar > best_score:
            best, best_score = mean / weights, weights / r_bar
        opt.tell(probe, F)
    assert opt.done
    assert np.allclose(opt.result().x_last, x, rtol=1e-9, atol=1e-9)
    assert np.allclose(opt.result().x, best, rtol=1e-9, atol=1e-9)


def test_so_many_steps_are_in_flight() -> None:
    opt = pc.Optimizer(np.zeros(40), method="poem", budget=4000, seed=0, ahead=5)
    most, flight = 0, deque[pc.Probe]()
    while True:
        while (probe := opt.ask()) is not None:
            flight.append(probe)
        if not flight:
            break
        if state_of(opt).stage == "step":
            most = max(most, len(flight))
        probe = flight.popleft()
        opt.tell(probe, [float(np.abs(x - 0.3).sum()) for x in probe.points])
    assert most == 6
    assert opt.done


@settings(max_examples=40, deadline=None)
@given(
    method=st.sampled_from(sorted(METHODS)), budget=st.integers(30, 900), ahead=st.integers(1, 12),
    batch=st.integers(1, 3), fails=st.booleans(), d=st.sampled_from([1, 4, 40]),
)  # fmt: skip
def test_the_budget_is_never_exceeded(method: str, budget: int, ahead: int, batch: int, fails: bool, d: int) -> None:
    def fun(x: np.ndarray, xi: np.ndarray) -> float:
        return np.nan if fails and xi[0] < -1.0 else float(np.abs(x - 0.3) @ (xi > 0.5) + xi[0] * x[0])

    result = pc.minimize(
        fun, np.zeros(d), sample=lambda rng: rng.normal(size=d), method=METHODS[method], domain=pc.Ball(2.0),
        budget=budget, ahead=ahead, batch=batch, seed=1, evaluate=0,
    )  # fmt: skip
    assert result.nfev <= budget
    assert np.isfinite(result.x).all()
    if not fails and method == "poem":
        assert result.nfev > budget - 2 * batch


def test_steps_ahead_need_fewer_calls_than_a_batch_that_keeps_as_many_workers_busy() -> None:
    problem = problems.load("absolute-rank5-of-100")
    gaps = {}
    for setting in ({"ahead": 15}, {"batch": 8}):
        ends = [problem.solve(method="poem", budget=10_000, seed=s, evaluate=0, **setting).x for s in range(3)]
        gaps[next(iter(setting))] = np.mean([problem.gap(x) for x in ends])
    assert gaps["ahead"] < 0.6 * gaps["batch"]


@pytest.mark.parametrize("method", ["poem", "auto"])
def test_gradients_that_agree_and_come_late_do_not_overshoot(method: str) -> None:
    """Without noise all of them agree, and with steps as long as for gradients in time a third of the gap is left."""

    def f(x: np.ndarray) -> float:
        return float((x - 0.3) @ (np.arange(1.0, 11.0) * (x - 0.3)))

    result = pc.minimize(f, np.zeros(10), method=method, budget=10_000, seed=0, ahead=63, evaluate=0)
    assert f(result.x) < 0.1 * f(np.zeros(10))


def test_workers_have_something_to_do() -> None:
    """Sixteen workers, every call takes one round: the share of them that is at work, on sparse samples."""
    opt = pc.Optimizer(np.zeros(100), method="poem", domain=pc.Ball(1.0), budget=20_000, seed=2, ahead=31)
    order: deque[list[Any]] = deque()
    calls: deque[list[Any]] = deque()
    rounds = made = 0
    while True:
        while order and not order[0][1]:
            probe = order.popleft()[0]
            rows = [np.random.default_rng(n).permutation(100)[:20] for n in probe.numbers]
            opt.tell(probe, [max(0.0, 1.0 - x[i].sum()) for x, i in zip(probe.points, rows, strict=True)])
        while (probe := opt.ask()) is not None:
            order.append([probe, len(probe.points)])
            calls.extend([order[-1]] * len(probe.points))
        if not order:
            break
        rounds += 1
        for _ in range(min(16, len(calls))):
            calls.popleft()[1] -= 1
            made += 1
    assert made / (16 * rounds) > 0.99


def test_rows_and_scales_and_stores(tmp_path: Any) -> None:
    together: dict[str, Any] = {"ahead": 4, "scale": 2.0, "method": "auto", "budget": 400}
    expected = bits(run(**together))
    assert bits(run(store=tmp_path / "run.db", **together)) == expected
    with ThreadPoolExecutor(3) as threads:
        assert bits(run(workers=threads, **together)) == expected
        rows: dict[str, Any] = {"fun": P.rows, "vectorized": "rows", **together}
        assert bits(run(workers=threads, **rows)) == bits(run(**rows))


def test_a_larger_budget_goes_on_with_what_is_in_flight(tmp_path: Any) -> None:
    def stop(x: np.ndarray) -> None:
        raise StopIteration

    store = tmp_path / "run.db"
    run(store=store, ahead=4, callback=stop)
    result = run(store=store, ahead=4, budget=700)
    assert 690 <= result.nfev <= 700
    assert "700 calls" in result.message
    with pytest.raises(RuntimeError, match="its ahead is 4, here it is 3"):
        run(store=store, ahead=3, budget=700)


@pytest.mark.parametrize("method", ["poem", "auto"])
def test_the_memory_that_is_stated_is_enough(method: str) -> None:
    x0 = np.zeros(100_000)
    tracemalloc.start()
    pc.minimize(lambda x: float(np.abs(x - 0.1).sum()), x0, method=method, budget=300, ahead=8, seed=0, evaluate=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < setup.working_memory(METHODS[method], x0, ahead=8)


@pytest.mark.parametrize("bad", [-1, 1.5, True, "many"])
def test_what_ahead_can_be(bad: Any) -> None:
    with pytest.raises(ValueError, match="ahead must be a whole number from 0 up"):
        pc.Optimizer(np.zeros(3), ahead=bad)


# Workers that have their next parcel at hand


def deadly(x: np.ndarray, i: int) -> float:
    """Kills its process on some samples."""
    if i % 10 == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return P.fun(x, i)


def numb(x: np.ndarray, i: int) -> float:
    return float("nan") if i % 10 == 3 else P.fun(x, i)


def test_what_waits_at_a_worker_that_dies_is_not_to_blame() -> None:
    """No call may be made twice, and only those that kill their process are lost."""
    found = run(deadly, ahead=7, budget=60, workers=pc.Workers(2, retries=0))
    expected = run(numb, ahead=7, budget=60)
    assert found.x.tobytes() == expected.x.tobytes()
    assert found.failures == expected.failures > 0


class _Place:
    """One worker that loses what it has, once."""

    def __init__(self) -> None:
        self.in_hand, self.tickets, self.died = 1, deque[tuple[int, list[Task]]](), False

    def slots(self) -> int:
        return 1

    def start(self, ticket: int, tasks: list[Task], avoid: Any) -> Any:
        if len(self.tickets) >= self.in_hand:
            return None
        self.tickets.append((ticket, tasks))
        return "it"

    def collect(self, seconds: float) -> list[tuple[int, Any]]:
        if len(self.tickets) == self.in_hand and not self.died:
            self.died, lost = True, list(self.tickets)
            self.tickets.clear()
            return [(ticket, NotBegun("died") if n else "died") for n, (ticket, _) in enumerate(lost)]
        if not self.tickets:
            return []
        ticket, tasks = self.tickets.popleft()
        return [(ticket, [Reply([1.0]) for _ in tasks])]

    def abandon(self, ticket: int) -> None: ...

    def close(self) -> None: ...


@pytest.mark.parametrize("steady", [False, True])
def test_only_the_call_at_work_is_charged_with_the_loss(steady: bool) -> None:
    place = _Place()
    crew = Crew(place, pc.Workers(1, retries=1), steady=steady)
    assert place.in_hand == (2 if steady else 1)
    for n in range(4):
        crew.submit(Task(n, 0, np.zeros((1, 2)), [n]))
    answers = []
    while len(answers) < 4:
        answers += crew.wait(0.0)
    assert sorted((a.task.probe, a.attempts) for a in answers) == [(0, 2), (1, 1), (2, 1), (3, 1)]


def test_with_a_timeout_nothing_waits_at_a_worker() -> None:
    assert Crew(place := _Place(), pc.Workers(1, timeout=5.0), steady=True) is not None
    assert place.in_hand == 1


def test_flaky_calls_with_processes() -> None:
    assert bits(run(flaky, ahead=5, workers=pc.Workers(2, retries=0))) == bits(run(flaky, ahead=5))
