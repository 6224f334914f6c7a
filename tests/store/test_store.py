"""Runs in a store: the same bits as without, gone on with from any moment, and refused where they do not fit."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from problems import hinge
from runs import METHODS, P, bits, flaky, gone, run

import poem_cma as pc
from poem_cma.store import Store, StoreError, View
from poem_cma.store import store as writer
from poem_cma.workers.flight import place_of

HERE = pathlib.Path(__file__).parents[1]


class Interrupted:
    """An objective that is interrupted (Ctrl-C) at some of its calls, and keeps count of all."""

    def __init__(self, at: set[int], fun: Any = P.fun) -> None:
        self.at, self.fun = at, fun
        self.calls: list[bytes] = []

    def __call__(self, x: np.ndarray, i: int) -> float:
        self.calls.append(x.tobytes() + bytes([i % 256]))
        if len(self.calls) in self.at:
            raise KeyboardInterrupt
        return self.fun(x, i)


@pytest.mark.parametrize("changes", [{}, {"batch": 3}, {"paired": False}, {"scale": [1.0, 2.0, 0.5, 1.0]}], ids=str)
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_stored_run_has_the_bits_of_a_plain_one(tmp_path: pathlib.Path, method: pc.Method, changes: Any) -> None:
    plain = run(flaky, method=method, **changes)
    assert plain.failures > 0
    stored = run(flaky, method=method, store=tmp_path / "run.db", **changes)
    assert bits(stored) == bits(plain)


@pytest.mark.parametrize("vectorized", [True, "rows"])
def test_functions_of_many_points_can_be_stored(tmp_path: pathlib.Path, vectorized: Any) -> None:
    settings = {"vectorized": vectorized, "batch": 3, "fun": P.rows}
    assert bits(run(store=tmp_path / "run.db", **settings)) == bits(run(**settings))


def test_a_finished_store_returns_its_result_without_a_call(tmp_path: pathlib.Path) -> None:
    first = run(flaky, store=tmp_path / "run.db")

    def never(x: np.ndarray, i: int) -> float:
        raise AssertionError("called")

    assert bits(run(never, store=tmp_path / "run.db")) == bits(first)
    assert [path.name for path in tmp_path.iterdir()] == ["run.db"]


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_interrupted_anywhere_a_run_goes_on_bit_for_bit(
    tmp_path: pathlib.Path, method: pc.Method, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "CALLS_BETWEEN_SNAPSHOTS", 40)
    expected = run(flaky, method=method, batch=2)
    stops = set(np.random.default_rng(0).integers(1, 300, size=25).tolist())
    fun = Interrupted(stops, flaky)
    results = [run(fun, method=method, batch=2, store=tmp_path / "run.db") for _ in range(len(stops) + 1)]
    assert bits(results[-1]) == bits(expected)
    interrupted = sum(r.status == 4 for r in results)
    assert interrupted == len(stops)
    assert len(fun.calls) == expected.nfev + interrupted  # nothing but what was in flight is asked twice
    repeated = Counter(fun.calls)
    assert sum(repeated.values()) - len(repeated) >= interrupted


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_run_that_is_moved_to_a_processor_with_other_last_bits_makes_no_call_again(
    tmp_path: pathlib.Path, method: pc.Method, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every coordinate of every point is another number there, the next one."""
    fun = Interrupted({150})
    run(fun, method=method, store=tmp_path / "run.db")
    ask = pc.Optimizer.ask

    def ask_there(opt: pc.Optimizer) -> pc.Probe | None:
        probe = ask(opt)
        return probe and pc.Probe(np.nextafter(probe.points, np.inf), probe.numbers, probe.id)

    monkeypatch.setattr(pc.Optimizer, "ask", ask_there)
    result = run(fun, method=method, store=tmp_path / "run.db")
    assert len(fun.calls) - 1 == result.nfev <= 300


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e300])
def test_the_place_of_a_call_is_its_point_to_single_precision_and_its_sample(size: float) -> None:
    points = size * np.random.default_rng(0).normal(size=(1000, 5))
    places = [place_of(x, 7) for x in points]
    assert places == [place_of(np.nextafter(x, np.inf), 7) for x in points]
    assert len(set(places)) > 990  # of 2^32
    assert not set(places) & {place_of(x * (1.0 + 1e-6), 7) for x in points}
    assert not set(places) & {place_of(x, 8) for x in points}
    assert place_of(np.zeros(2), 0) == place_of(np.array([0.0, -0.0]), 0)


def test_every_call_is_kept_once_with_its_value(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "CALLS_BETWEEN_SNAPSHOTS", 30)
    told: list[float] = []

    def fun(x: np.ndarray, i: int) -> float:
        told.append(P.fun(x, i))
        return told[-1]

    result = run(fun, store=tmp_path / "run.db")
    with View(tmp_path / "run.db") as view:
        calls = view.calls()
        assert view.result is not None
        assert view.measured == 30  # 15 samples at x and at x0
    assert len(calls) == result.nfev
    assert len({(c["probe"], c["point"]) for c in calls}) == result.nfev
    assert sorted(calls["value"]) == sorted(told)
    assert (calls["seconds"] >= 0.0).all()
    assert (calls["attempts"] == 1).all()


def test_failures_are_kept_with_their_reasons(tmp_path: pathlib.Path) -> None:
    result = run(flaky, store=tmp_path / "run.db")
    with View(tmp_path / "run.db") as view:
        failed = {(c["probe"], c["point"]) for c in view.calls() if np.isnan(c["value"])}
        reasons = {(probe, point): text for probe, point, _, text in view.failures()}
    assert len(failed) == result.failures
    assert set(reasons) == failed
    assert {text.split(":")[0] for text in reasons.values()} == {"fun raised RuntimeError", "fun returned nan"}


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_larger_budget_goes_on(tmp_path: pathlib.Path, method: pc.Method) -> None:
    calls = 0

    def fun(x: np.ndarray, i: int) -> float:
        nonlocal calls
        calls += 1
        return P.fun(x, i)

    first = run(fun, method=method, budget=1000, store=tmp_path / "run.db")
    longer = run(fun, method=method, budget=3000, store=tmp_path / "run.db")
    assert calls == longer.nfev <= 3000
    assert longer.nfev > 2900
    assert longer.nit > first.nit
    assert "the budget of 3000 calls is spent" in longer.message
    n = len(first.history["nfev"])
    assert longer.history["nfev"][: n - 1].tolist() == first.history["nfev"][: n - 1].tolist()
    assert bits(run(fun, method=method, budget=3000, store=tmp_path / "run.db")) == bits(longer)
    assert calls == longer.nfev
    with pytest.raises(ValueError, match="holds a run of 3000 calls, budget=1000 is less"):
        run(fun, method=method, budget=1000, store=tmp_path / "run.db")


@pytest.mark.parametrize("method", ["poem", "auto"])
def test_a_larger_budget_goes_on_the_same_way_when_it_is_interrupted(tmp_path: pathlib.Path, method: str) -> None:
    stores = [tmp_path / "a.db", tmp_path / "b.db"]
    for store in stores:
        run(method=method, store=store)
    straight = run(method=method, budget=700, store=stores[0])
    fun = Interrupted({1, 2, 50, 51, 200, 390})
    for _ in fun.at:
        assert run(fun, method=method, budget=700, store=stores[1]).status == 4
    assert bits(run(fun, method=method, budget=700, store=stores[1])) == bits(straight)


def test_poem_with_a_larger_budget_walks_as_if_it_had_been_given_at_once(tmp_path: pathlib.Path) -> None:
    run(budget=300, evaluate=0, store=tmp_path / "run.db")
    longer = run(budget=900, evaluate=0, store=tmp_path / "run.db")
    assert bits(longer) == bits(run(budget=900, evaluate=0))


def test_a_stop_by_time_or_callback_can_be_gone_on_with_within_the_budget(tmp_path: pathlib.Path) -> None:
    calls = 0

    def fun(x: np.ndarray, i: int) -> float:
        nonlocal calls
        calls += 1
        return P.fun(x, i)

    def stop(x: np.ndarray) -> None:
        raise StopIteration

    stopped = run(fun, callback=stop, store=tmp_path / "run.db")
    assert stopped.status == 2
    assert calls == stopped.nfev < 40
    result = run(fun, store=tmp_path / "run.db")
    assert result.status == 0
    assert calls == result.nfev <= 300
    assert result.nfev >= 298


def test_what_was_answered_but_not_told_at_a_stop_is_not_asked_again(tmp_path: pathlib.Path) -> None:
    """A step of four probes: the last three are answered first, and the time limit comes before the first."""
    calls: list[tuple[bytes, int]] = []
    free, lock = threading.Event(), threading.Lock()

    def fun(x: np.ndarray, i: int) -> float:
        with lock:
            calls.append((x.tobytes(), i))
            first = len(calls) == 1
        if first:
            free.wait(60)
        return P.fun(x, i)

    settings: dict[str, Any] = {"batch": 4, "evaluate": 0, "budget": 80}
    with ThreadPoolExecutor(8) as threads:
        stopped = run(fun, workers=threads, store=tmp_path / "run.db", time_limit=1.0, **settings)
        free.set()
    assert stopped.status == 3
    assert stopped.nfev == 0
    result = run(fun, store=tmp_path / "run.db", **settings)
    assert bits(result) == bits(run(**settings))
    assert len(set(calls)) == 80
    assert len(calls) == 81  # the one that hung
    with View(tmp_path / "run.db") as view:
        assert len(view.calls()) == 80


def test_a_target_that_was_reached_stays_reached(tmp_path: pathlib.Path) -> None:
    reached = run(target=10.0, store=tmp_path / "run.db")
    assert reached.status == 1
    assert bits(run(target=10.0, store=tmp_path / "run.db")) == bits(reached)
    assert run(store=tmp_path / "run.db").status == 0


OTHER = {
    "x0": ("x0", {"x0": np.zeros(4)}),
    "batch": ("batch", {"batch": 2}),
    "seed": ("seed", {"seed": 4}),
    "method": ("method", {"method": "poem-cma"}),
    "method's settings": ("method", {"method": pc.methods.poem(initial_distance=0.3)}),
    "domain": ("domain", {"domain": pc.Ball(2.0)}),
    "no domain": ("domain", {"domain": None}),
    "scale": ("scale", {"scale": 2.0}),
    "paired": ("paired", {"paired": False}),
    "vectorized": ("vectorized", {"vectorized": True, "fun": P.rows}),
    "name": ("name", {"name": "another"}),
    "no name": ("name", {"name": None}),
}


@pytest.mark.parametrize(("key", "changes"), OTHER.values(), ids=OTHER)
def test_other_settings_are_refused_by_name_and_nothing_is_changed(
    tmp_path: pathlib.Path, key: str, changes: Any
) -> None:
    store = tmp_path / "run.db"
    run(store=store, name="mine")
    before = store.read_bytes()
    with pytest.raises(StoreError, match=f"holds another run: its {key} is .*Give the same settings"):
        run(store=store, **({"name": "mine"} | changes))
    assert store.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["run.db"]


def test_a_run_without_a_seed_keeps_the_one_it_drew(tmp_path: pathlib.Path) -> None:
    first = run(Interrupted({100}), seed=None, store=tmp_path / "run.db")
    assert run(seed=None, store=tmp_path / "run.db").seed == first.seed


def test_domains_and_methods_of_the_users_own_are_passed_again(tmp_path: pathlib.Path) -> None:
    from dataclasses import replace

    class HalfSpace:
        diameter = np.inf

        def project(self, x: np.ndarray) -> np.ndarray:
            return np.maximum(x, [0.0, -np.inf, -np.inf, -np.inf])

    mine = replace(pc.methods.poem(), weight=lambda s: s.r_bar**2)
    own = {"method": mine, "domain": HalfSpace()}
    run(Interrupted({100}), store=tmp_path / "run.db", **own)
    assert bits(run(store=tmp_path / "run.db", **own)) == bits(run(**own))
    with View(tmp_path / "run.db") as view:
        assert view.optimizer() is None


def test_on_failure_raise_keeps_what_was_told(tmp_path: pathlib.Path) -> None:
    with pytest.raises(pc.EvaluationError, match="fun raised RuntimeError: sample") as caught:
        run(flaky, on_failure="raise", store=tmp_path / "run.db")
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert bits(run(flaky, store=tmp_path / "run.db")) == bits(run(flaky))


def test_errors_of_the_sample_are_the_users_to_see(tmp_path: pathlib.Path) -> None:
    def sample(rng: np.random.Generator) -> int:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        run(sample=sample, store=tmp_path / "run.db")
    assert bits(run(store=tmp_path / "run.db")) == bits(run())


def test_fifty_kills_change_no_bit_and_lose_no_told_value(tmp_path: pathlib.Path) -> None:
    command = [sys.executable, str(HERE / "killed.py"), str(tmp_path), "50", "0", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=HERE)
    report = json.loads(done.stdout)
    assert report["same"]
    assert report["kills"] == 50
    assert 0 <= report["made"] - report["needed"] <= 50 * 8  # a kill costs the probe that was in flight: few calls


@pytest.mark.parametrize(
    ("ahead", "lost"),
    [
        (0, 4),  # two workers, and what they answered to nobody
        (2, 2 * 2 * 4 + 4),  # each has two parcels of up to four calls
    ],
)
def test_kills_of_a_driver_with_workers_leave_no_process_behind(ahead: int, lost: int, tmp_path: pathlib.Path) -> None:
    command = [sys.executable, str(HERE / "killed.py"), str(tmp_path), "5", "2", str(ahead)]
    marked = os.environ | {"POEM_CMA_TEST_MARK": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=HERE, env=marked)
    report = json.loads(done.stdout)
    assert report["same"]
    assert report["kills"] == 5
    assert 0 <= report["made"] - report["needed"] <= 5 * lost
    assert gone(str(tmp_path))


def test_a_store_grows_evenly_and_keeps_few_loose_calls(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "CALLS_BETWEEN_SNAPSHOTS", 100)
    most = 0

    def look(x: np.ndarray) -> None:
        nonlocal most
        with View(tmp_path / "run.db", verify=False) as view:
            most = max(most, view._db.execute("SELECT count(*) FROM call").fetchone()[0])

    run(callback=look, budget=1000, store=tmp_path / "run.db")
    assert 90 <= most <= 104


def test_looking_at_a_store_shows_the_optimiser_as_it_is(tmp_path: pathlib.Path) -> None:
    seen = []

    def look(intermediate_result: pc.Result) -> None:
        with View(tmp_path / "run.db", verify=False) as view:
            opt = view.optimizer()
            assert opt is not None
            seen.append((intermediate_result.nfev - opt.nfev, intermediate_result.nfev))

    run(callback=look, budget=200, store=tmp_path / "run.db")
    assert len(seen) > 50
    assert {lag for lag, _ in seen} <= {0, 1, 2}  # the present step is committed after its callback


@pytest.mark.parametrize("threads", [0, 3])
def test_memory_does_not_grow_with_the_number_of_calls(tmp_path: pathlib.Path, threads: int) -> None:
    import tracemalloc

    P1 = hinge(d=2)

    def size(budget: int) -> int:
        tracemalloc.start()
        with ThreadPoolExecutor(threads) if threads else contextlib.nullcontext() as workers:
            pc.minimize(P1.fun, np.zeros(2), sample=P1.sample, method="poem", budget=budget, seed=0, evaluate=0,
                        store=tmp_path / f"{budget}.db", workers=workers, batch=8 if threads else 1)  # fmt: skip
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    writer_calls = writer.CALLS_BETWEEN_SNAPSHOTS
    try:
        writer.CALLS_BETWEEN_SNAPSHOTS = 200
        from poem_cma.history import History

        original = History.__init__.__defaults__
        History.__init__.__defaults__ = (50,)  # so that the history reaches its bound in a short run
        size(200)
        small, large = size(400), size(2400)
    finally:
        writer.CALLS_BETWEEN_SNAPSHOTS = writer_calls
        History.__init__.__defaults__ = original
    assert large < 1.2 * small


def test_a_store_is_one_object_a_process(tmp_path: pathlib.Path) -> None:
    store = Store(tmp_path / "run.db")
    with pytest.raises(StoreError, match="another run of this process"):
        run(store=tmp_path / "run.db")
    store.close()
    run(store=tmp_path / "run.db")
