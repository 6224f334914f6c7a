"""One table: every kind of run against everything that must not change what it returns.

Rows are the runs of `cases`: the paper's methods, and `auto` near, far and without noise. Columns are the tests: a run
is interrupted in every phase and resumed, goes on with a larger budget after its end, is saved and loaded, has
workers, is one of many replicas, has steps in flight that are answered in any order, and meets failures.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import CASES, Case, D, draw, failing
from inside import phase_of
from runs import bits

import poem_cma as pc
from poem_cma.store import store as writer

BUDGETS = [15, 60, 400, 5000]
rows = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
all_budgets = pytest.mark.parametrize("budget", BUDGETS)


class Counted:
    """The function of a case, with the number of its calls; it interrupts the run at some of them."""

    def __init__(self, fun: Any, stops: set[int] = frozenset()) -> None:  # type: ignore[assignment]
        self.fun, self.calls, self.stops = fun, 0, set(stops)

    def __call__(self, x: np.ndarray, n: int) -> float:
        if self.calls in self.stops:
            self.stops.remove(self.calls)
            raise KeyboardInterrupt
        self.calls += 1
        value: float = self.fun(x, n)
        return value


def run(case: Case, fun: Any = None, **changes: Any) -> pc.Result:
    """A run of a case, whose steps do not depend on who makes the calls; `changes` as of `minimize`."""
    settings: dict[str, Any] = {"sample": draw, "method": case.method, "seed": 3, "budget": 400, "batch": 1}
    return pc.minimize(case.fun if fun is None else fun, np.zeros(D), **(settings | changes))


def possible(case: Case, budget: int) -> None:
    """Leave out what is refused: Algorithm 2 costs 24 calls here."""
    if budget < 26 and getattr(case.method, "learning", None) is not None:
        pytest.skip("POEM-CMA needs 26 calls here")


def fresh(case: Case, budget: int, **options: Any) -> pc.Optimizer:
    return pc.Optimizer(np.zeros(D), method=case.method, seed=3, budget=budget, **options)


def values(case: Case, probe: pc.Probe) -> list[float]:
    return [case.fun(x, n) for x, n in zip(probe.points, probe.numbers, strict=True)]


def phases(case: Case, budget: int) -> list[tuple[str, int]]:
    """The phases of a run that is told the values of its numbers, in their order, with the calls before each probe."""
    opt, seen = fresh(case, budget), []
    while (probe := opt.ask()) is not None:
        seen.append((phase_of(opt), opt.nfev))
        opt.tell(probe, values(case, probe))
    return seen


@all_budgets
@rows
def test_a_run_spends_its_budget_in_its_phase(case: Case, budget: int) -> None:
    """What the table is worth: rows are what they are called, and no budget is exceeded."""
    possible(case, budget)
    fun = Counted(case.fun)
    result = run(case, fun, budget=budget)
    assert result.nfev == fun.calls <= budget
    if budget >= 400:
        counts = Counter(phase for phase, _ in phases(case, budget))
        assert counts[case.phase] > 10
        assert result.status == 6 or result.nfev >= 0.9 * budget


@all_budgets
@rows
def test_interrupted_in_every_phase_and_resumed(
    case: Case, budget: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the first calls of every phase, in its middle, and in the final measurement."""
    possible(case, budget)
    monkeypatch.setattr(writer, "CALLS_BETWEEN_SNAPSHOTS", max(20, budget // 10))
    expected = Counted(case.fun)
    plain = bits(run(case, expected, budget=budget))
    places: dict[str, list[int]] = {}
    for phase, before in phases(case, budget - budget // 50):  # of the search; the rest measures
        places.setdefault(phase, []).append(before)
    stops = {n + k for calls in places.values() for n in (calls[0], calls[len(calls) // 2]) for k in (0, 1, 4)}
    stops = {stop for stop in stops | {expected.calls - 1} if stop < expected.calls}
    fun, results = Counted(case.fun, stops), []
    for _ in range(len(stops) + 1):
        results.append(run(case, fun, budget=budget, store=tmp_path / "run.db"))
    assert bits(results[-1]) == plain
    assert [result.status for result in results[:-1]] == [4] * len(stops)
    assert fun.calls == expected.calls


@pytest.mark.parametrize(("first", "second"), [(15, 400), (60, 61), (60, 400), (400, 5000), (2000, 4000)])
@rows
def test_a_larger_budget_after_the_end(case: Case, first: int, second: int, tmp_path: Path) -> None:
    """The run goes on, keeps its history and the new budget, and ends for good; one that has converged stays so."""
    possible(case, first)
    fun, store = Counted(case.fun), tmp_path / "run.db"
    ended = run(case, fun, budget=first, store=store)
    longer = run(case, fun, budget=second, store=store)
    assert longer.nfev == fun.calls <= second
    if second > 1.1 * first:
        assert longer.status == 6 or longer.nfev > 0.9 * second
        assert longer.nit > ended.nit or longer.status == 6
    if longer.status == 0:
        assert f"{second} calls" in longer.message
    n = len(ended.history["nfev"])
    assert longer.history["nfev"][: n - 1].tolist() == ended.history["nfev"][: n - 1].tolist()
    assert bits(run(case, fun, budget=second, store=store)) == bits(longer)
    assert fun.calls == longer.nfev


@rows
def test_a_larger_budget_is_interrupted_as_well(case: Case, tmp_path: Path) -> None:
    stores = [tmp_path / "a.db", tmp_path / "b.db"]
    for store in stores:
        run(case, store=store)
    straight = Counted(case.fun)
    expected = bits(run(case, straight, budget=1500, store=stores[0]))
    stops = {n for n in (0, 1, 50, 51, 300, 900, 1050) if n < straight.calls}
    fun = Counted(case.fun, stops)
    results = [run(case, fun, budget=1500, store=stores[1]) for _ in range(len(stops) + 1)]
    assert bits(results[-1]) == expected
    assert fun.calls == straight.calls


@all_budgets
@rows
def test_saved_and_loaded(case: Case, budget: int, tmp_path: Path) -> None:
    """In every phase, with a probe in flight, which is asked again, and between probes."""
    possible(case, budget)
    straight, opt, seen = fresh(case, budget), fresh(case, budget), Counter[str]()
    while (probe := straight.ask()) is not None:
        straight.tell(probe, values(case, probe))
    while (probe := opt.ask()) is not None:
        seen[phase_of(opt)] += 1
        if seen[phase_of(opt)] in (1, 2, 30):
            opt.save(tmp_path / "run")
            opt = pc.Optimizer.load(tmp_path / "run")
            again = opt.ask()
            assert again is not None
            assert again.points.tobytes() == probe.points.tobytes()
            assert (again.numbers, again.id) == (probe.numbers, probe.id)
        opt.tell(probe, values(case, probe))
        if seen[phase_of(opt)] in (3, 31):
            opt.save(tmp_path / "run")
            opt = pc.Optimizer.load(tmp_path / "run")
    assert bits(opt.result()) == bits(straight.result())


@all_budgets
@rows
def test_workers(case: Case, budget: int, tmp_path: Path) -> None:
    """With steps ahead as well, and a store."""
    possible(case, budget)
    ahead, store = run(case, budget=budget, ahead=2), tmp_path / "run.db"
    with ThreadPoolExecutor(3) as threads:
        assert bits(run(case, budget=budget, workers=threads, ahead=2, store=store)) == bits(ahead)
        if budget <= 400:
            assert bits(run(case, budget=budget, workers=threads)) == bits(run(case, budget=budget))
            assert bits(run(case, budget=budget, workers=threads, ahead=2)) == bits(ahead)
    assert bits(run(case, budget=budget, workers=None, ahead=2, store=store)) == bits(ahead)


@pytest.mark.parametrize(("budget", "fails"), [(15, False), (60, False), (400, False), (400, True), (5000, True)])
@rows
def test_replicas(case: Case, budget: int, fails: bool) -> None:
    """Some calls of a replica fail, which then goes on by itself for a while."""
    possible(case, budget)
    fun = failing(case.fun) if fails else case.fun
    settings: dict[str, Any] = {"sample": draw, "method": case.method, "budget": budget}
    for seed, result in enumerate(pc.replicate(fun, np.zeros(D), seeds=range(3), **settings)):
        assert bits(result) == bits(run(case, fun, budget=budget, seed=seed))


@all_budgets
@pytest.mark.parametrize("ahead", [0, 3])
@rows
def test_steps_in_flight(case: Case, budget: int, ahead: int, tmp_path: Path) -> None:
    """Answered in any order, some never, because the run is saved and loaded meanwhile."""
    possible(case, budget)
    straight, order = fresh(case, budget, batch=2, ahead=ahead), np.random.default_rng(5)
    while (probe := straight.ask()) is not None:
        straight.tell(probe, values(case, probe))
    opt, rounds = fresh(case, budget, batch=2, ahead=ahead), 0
    while not opt.done:
        flight = []
        while (probe := opt.ask()) is not None:
            flight.append(probe)
        rounds += 1
        answered = order.permutation(len(flight))
        for i in answered[: len(flight) // 2] if rounds % 20 == 2 else answered:
            opt.tell(flight[i], values(case, flight[i]))
        if rounds % 20 == 2:
            opt.save(tmp_path / "run")
            opt = pc.Optimizer.load(tmp_path / "run")
    assert bits(opt.result()) == bits(straight.result())


@all_budgets
@rows
def test_failures(case: Case, budget: int, tmp_path: Path) -> None:
    """A tenth of the calls fails; also in a store, interrupted, and with workers."""
    possible(case, budget)
    fun, store = failing(case.fun), tmp_path / "run.db"
    plain = run(case, fun, budget=budget)
    assert plain.status not in (4, 5)  # interrupted, given up
    assert plain.nfev <= budget
    assert plain.failures > 0.02 * budget or budget < 60
    counted = Counted(fun, {n for n in (7, budget // 3, budget // 2) if n < plain.nfev})
    results = [run(case, counted, budget=budget, store=store) for _ in range(len(counted.stops) + 1)]
    assert bits(results[-1]) == bits(plain)
    with ThreadPoolExecutor(2) as threads:
        if budget <= 400:
            assert bits(run(case, fun, budget=budget, workers=pc.Workers(threads, retries=0))) == bits(plain)
