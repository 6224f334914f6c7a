"""Many workers: the same bits however many there are and however they answer, fail, hang or die."""

from __future__ import annotations

import contextlib
import logging
import os
import pathlib
import pickle
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest
import runs
from runs import METHODS, Heavy, P, bits, flaky, gone, moody, run, zombies

import poem_cma as pc
from poem_cma.store import View
from poem_cma.workers.crew import Crew, WorkersLostError
from poem_cma.workers.task import Objective, Reply, Task, to_payload
from poem_cma.workers.workers import auto_ahead

HERE = pathlib.Path(__file__).parents[1]


class Shuffled(Executor):
    """An executor of `workers` workers that answers in random order; not before it has `first` tasks, within reason."""

    def __init__(self, workers: int, seed: int, first: int = 1) -> None:
        self._max_workers = workers
        self._random = random.Random(seed)
        self._tasks: list[tuple[Future[Any], Any]] = []
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._first, self._full = first, threading.Event()
        self.most = 0  # tasks at a time
        threading.Thread(target=self._work, daemon=True).start()

    def submit(self, fn: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
        future: Future[Any] = Future()
        with self._lock:
            self._tasks.append((future, lambda: fn(*arguments, **options)))
            self.most = max(self.most, len(self._tasks))
            if self.most >= self._first:
                self._full.set()
        return future

    def _work(self) -> None:
        self._full.wait(30.0)
        while not self._ended.is_set():
            time.sleep(0.0002)
            with self._lock:
                if not self._tasks:
                    continue
                future, work = self._tasks.pop(self._random.randrange(len(self._tasks)))
            future.set_result(work())

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._ended.set()


@pytest.mark.parametrize("workers", [1, 3, 16])
@pytest.mark.parametrize(("batch", "ahead"), [(4, 0), (1, 7), (3, 2)])
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_the_bits_do_not_depend_on_the_number_of_workers_or_their_order(
    method: pc.Method, batch: int, ahead: int, workers: int
) -> None:
    settings: dict[str, Any] = {"method": method, "batch": batch, "ahead": ahead}
    expected = bits(run(flaky, **settings))
    with Shuffled(workers, seed=workers) as executor:
        assert bits(run(flaky, workers=executor, **settings)) == expected


def test_all_pairs_of_algorithm_2_are_evaluated_at_a_time() -> None:
    with Shuffled(24, seed=1, first=24) as executor:
        run(method=pc.methods.poem_cma(samples=12), budget=26, evaluate=0, workers=executor)
        assert executor.most == 24


@pytest.mark.parametrize("vectorized", [True, "rows"])
def test_functions_of_many_points_on_workers(vectorized: Any) -> None:
    settings = {"fun": P.rows, "vectorized": vectorized, "batch": 3}
    with ThreadPoolExecutor(3) as threads:
        assert bits(run(workers=threads, **settings)) == bits(run(**settings))


def test_processes_of_our_own(tmp_path: pathlib.Path) -> None:
    expected = bits(run(flaky, batch=2))
    for workers in (1, 2):
        assert bits(run(flaky, batch=2, workers=pc.Workers(workers, retries=0))) == expected
    assert bits(run(flaky, batch=2, workers=2, store=tmp_path / "run.db")) == expected
    with View(tmp_path / "run.db") as view:
        failed = [c for c in view.calls() if np.isnan(c["value"])]
        attempts = {int(c["attempts"]) for c in failed}
    assert attempts == {1, 3}  # NaN is an answer; what raises is tried three times


def test_an_executor_of_processes_gets_the_objective_once_each(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POEM_CMA_TEST_FOLDER", str(tmp_path))
    heavy = Heavy()
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        result = run(heavy, workers=pool, batch=2)
    assert bits(result) == bits(run(batch=2))
    loads = [path.read_text() for path in tmp_path.iterdir()]
    assert 1 <= len(loads) == len(set(loads)) <= 2  # each process unpacked it once


def test_large_data_travels_once_to_each_process(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POEM_CMA_TEST_FOLDER", str(tmp_path))
    assert bits(run(Heavy(), workers=2, batch=2)) == bits(run(batch=2))
    loads = [path.read_text() for path in tmp_path.iterdir()]
    assert len(loads) == len(set(loads)) == 2
    task = Task(0, 0, np.zeros((1, 4)), [3])
    assert len(pickle.dumps(task)) < 1000


def test_workers_that_die_hang_or_raise_are_replaced_and_change_no_bit(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every fault happens once at its point, and the second attempt succeeds."""
    (tmp_path / "marks").mkdir()
    monkeypatch.setenv("POEM_CMA_TEST_FOLDER", str(tmp_path / "marks"))
    workers = pc.Workers(2, timeout=1.0, retries=10)
    result = run(moody, budget=200, batch=2, workers=workers, store=tmp_path / "run.db")
    assert bits(result) == bits(run(budget=200, batch=2))
    assert not zombies()
    with View(tmp_path / "run.db") as view:
        calls, why = view.calls(), [text for *_, text in view.failures()]
    assert len(calls) == 200
    assert len({(c["probe"], c["point"]) for c in calls}) == 200
    assert (calls["attempts"] > 1).sum() > 10
    for reason in (
        "fun raised RuntimeError: not today",
        "the worker process died (exit code 3)",
        "no answer within 1 s",
    ):
        assert any(reason in text for text in why)


def grim(x: np.ndarray, i: int) -> float:
    """30% of the calls end their process, 10% hang, 10% return NaN, whatever the attempt."""
    u = random.random()
    if u < 0.3:
        os._exit(7)
    if u < 0.4:
        time.sleep(1000)
    return float("nan") if u < 0.5 else P.fun(x, i)


def test_processes_that_are_killed_and_hang_at_random(tmp_path: pathlib.Path) -> None:
    """The run ends, every call is counted once, and the failures are those that chance allows."""
    workers = pc.Workers(4, timeout=0.5, retries=2)
    result = run(grim, budget=60, batch=2, workers=workers, store=tmp_path / "run.db", evaluate=0)
    assert result.success
    assert result.nfev <= 60
    assert not zombies()
    with View(tmp_path / "run.db") as view:
        calls, why = view.calls(), Counter(text.split(" (")[0].split(", with")[0] for *_, text in view.failures())
    assert len({(c["probe"], c["point"]) for c in calls}) == len(calls) == result.nfev
    assert np.isnan(calls["value"]).sum() == result.failures
    share = 0.4**3 + 0.1 * (1 + 0.4 + 0.4**2)  # no attempt is answered, or one answers NaN
    assert abs(result.failures / result.nfev - share) < 5.0 * np.sqrt(share * (1.0 - share) / result.nfev)
    assert set(why) == {"the worker process died", "no answer within 0.5 s", "fun returned nan"}


@pytest.mark.parametrize("garbage", [None, "abc", {}, np.zeros(2), [1.0, 2.0], 1j], ids=repr)
def test_garbage_is_tried_again_and_then_refused(garbage: Any) -> None:
    calls: Counter[tuple[bytes, int]] = Counter()
    lock = threading.Lock()

    def fun(x: np.ndarray, i: int) -> Any:
        key = (x.tobytes(), i)
        with lock:
            calls[key] += 1
        return P.fun(x, i) if calls[key] == 3 else garbage

    with ThreadPoolExecutor(3) as threads:
        assert bits(run(fun, budget=60, evaluate=0, workers=pc.Workers(threads, retries=2))) == bits(
            run(budget=60, evaluate=0)
        )
        calls.clear()
        with pytest.raises(TypeError, match="fun must return a number"):
            run(fun, budget=60, evaluate=0, workers=pc.Workers(threads, retries=1))


def bad_apple(x: np.ndarray, i: int) -> float:
    """In the first process that gets here, every call fails at once."""
    mark = pathlib.Path(os.environ["POEM_CMA_TEST_FOLDER"]) / "bad"
    with contextlib.suppress(FileExistsError):
        mark.touch(exist_ok=False)
        mark.write_text(str(os.getpid()))
    if mark.read_text() == str(os.getpid()):
        raise RuntimeError("everything fails in here")
    time.sleep(0.002)
    return P.fun(x, i)


def test_a_call_is_made_again_elsewhere(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker on which everything fails at once is always idle: yet nothing is lost to it."""
    (tmp_path / "marks").mkdir()
    monkeypatch.setenv("POEM_CMA_TEST_FOLDER", str(tmp_path / "marks"))
    result = run(bad_apple, budget=100, batch=2, workers=pc.Workers(2, retries=1), store=tmp_path / "run.db")
    assert bits(result) == bits(run(budget=100, batch=2))
    with View(tmp_path / "run.db") as view:
        assert (view.calls()["attempts"] == 2).any()


def test_workers_are_replaced_where_pipes_cannot_be_selected(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows, whose selectors know sockets only."""
    (tmp_path / "marks").mkdir()
    monkeypatch.setenv("POEM_CMA_TEST_FOLDER", str(tmp_path / "marks"))
    monkeypatch.setattr("poem_cma.workers.processes._PIPES_CAN_BE_SELECTED", False)
    result = run(moody, budget=100, batch=2, workers=pc.Workers(2, timeout=5.0, retries=10), store=tmp_path / "run.db")
    assert bits(result) == bits(run(budget=100, batch=2))
    with View(tmp_path / "run.db") as view:
        assert any("the worker process died" in text for *_, text in view.failures())


class Unreliable:
    """30% of the calls raise, 10% hang (are given up), 10% return NaN, whatever the attempt."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.lock = threading.Lock()
        self.asked: list[tuple[bytes, int]] = []

    def __call__(self, x: np.ndarray, i: int) -> float:
        with self.lock:
            u = self.rng.random()
            self.asked.append((x.tobytes(), i))
        if u < 0.3:
            raise RuntimeError("crashed")
        if u < 0.4:
            raise TimeoutError("stands for a hang, which a thread cannot be freed from")
        return float("nan") if u < 0.5 else P.fun(x, i)


def test_with_many_faults_the_run_ends_calls_are_counted_once_and_the_answer_is_as_good() -> None:
    scores = {"faulty": [], "clean": []}  # type: dict[str, list[float]]
    for seed in range(8):
        fun = Unreliable(seed)
        with ThreadPoolExecutor(4) as threads:
            result = run(fun, budget=1500, seed=seed, batch=2, workers=pc.Workers(threads, retries=2))
        assert result.success
        assert result.nfev <= 1500
        assert len(set(fun.asked)) <= result.nfev < len(fun.asked)
        share = result.failures / result.nfev
        assert abs(share - (0.4**3 + 0.1 * (1 + 0.4 + 0.4**2))) < 0.05  # all attempts raise, or one answers NaN
        # A pair is lost with either of its calls: the run without faults that has as many pairs left.
        clean = run(budget=int(1500 * (1.0 - share) ** 2), seed=seed, batch=2)
        scores["faulty"].append(P.full(result.x))
        scores["clean"].append(P.full(clean.x))
    difference = np.array(scores["faulty"]) - np.array(scores["clean"])
    assert difference.mean() < 3.0 * difference.std(ddof=1) / np.sqrt(len(difference)) + 0.01


def test_a_call_that_always_fails_is_dropped_after_its_retries() -> None:
    """The first call of all has a value, so that the function is not taken for broken."""
    calls: list[int] = []

    def fun(x: np.ndarray, i: int) -> float:
        calls.append(i)
        if len(calls) == 1:
            return P.fun(x, i)
        raise RuntimeError("never")

    with ThreadPoolExecutor(1) as threads:
        result = run(fun, workers=pc.Workers(threads, retries=1), budget=500)
    assert not result.success
    assert result.failures == result.nfev - 1
    assert 200 <= result.nfev <= 202  # as without workers: so many in a row end a run
    assert len(calls) == 2 * result.nfev - 1


def test_on_failure_raise_names_point_and_sample() -> None:
    with ThreadPoolExecutor(2) as threads, pytest.raises(pc.EvaluationError, match="fun raised RuntimeError") as caught:
        run(flaky, on_failure="raise", workers=pc.Workers(threads, retries=0))
    assert caught.value.x.shape == (4,)
    assert caught.value.xi % 7 == 1
    assert caught.value.result is not None


def test_errors_of_the_sample_and_wrong_shapes_end_the_run() -> None:
    def sample(rng: np.random.Generator) -> int:
        raise ZeroDivisionError("mine")

    with ThreadPoolExecutor(2) as threads:
        with pytest.raises(RuntimeError, match=r"the objective cannot be evaluated.*ZeroDivisionError: mine"):
            run(sample=sample, workers=threads)
        with pytest.raises(RuntimeError, match="must return shape"):
            run(lambda X, i: np.zeros(7), vectorized=True, workers=threads)


def test_threads_that_hang_are_not_used_again_and_none_left_ends_within_patience(
    caplog: pytest.LogCaptureFixture,
) -> None:
    free = threading.Event()

    def hangs(x: np.ndarray, i: int) -> float:
        free.wait(30)
        return 0.0

    with ThreadPoolExecutor(2) as threads, caplog.at_level(logging.WARNING, logger="poem_cma"):
        try:
            with pytest.raises(WorkersLostError, match=r"no workers for 0\.3 s"):
                run(hangs, workers=pc.Workers(threads, timeout=0.1, patience=0.3))
        finally:
            free.set()
    assert "no workers are left: the run waits for them, for 0.3 s at most" in caplog.text


class Cluster:
    """A place whose workers leave and come back; every task is answered with zeros."""

    def __init__(self, sizes: list[int]) -> None:
        self.sizes = sizes
        self.parcels: list[tuple[int, list[Task]]] = []

    def slots(self) -> int:
        return self.sizes[0]

    def start(self, ticket: int, tasks: list[Task], avoid: Any) -> str:
        self.parcels.append((ticket, tasks))
        return "somebody"

    def collect(self, seconds: float) -> list[tuple[int, list[Reply] | str]]:
        if len(self.sizes) > 1:
            self.sizes.pop(0)
        parcels, self.parcels = self.parcels, []
        if self.sizes[0] == 0:
            return [(ticket, "the worker left") for ticket, _ in parcels]
        return [(ticket, [Reply([0.0] * len(t.points)) for t in tasks]) for ticket, tasks in parcels]

    def abandon(self, ticket: int) -> None: ...

    def close(self) -> None: ...


def test_a_cluster_that_shrinks_to_nothing_pauses_and_resumes(caplog: pytest.LogCaptureFixture) -> None:
    crew = Crew(Cluster([2, 0, 0, 0, 2]), pc.Workers(2, timeout=100.0, patience=10.0))
    for n in range(2):
        crew.submit(Task(n, 0, np.zeros((1, 4)), [n]))
    with caplog.at_level(logging.WARNING, logger="poem_cma"):
        answers = [a for _ in range(8) for a in crew.wait(0.0)]
    assert sorted(a.task.probe for a in answers) == [0, 1]
    assert all(a.attempts == 2 for a in answers)
    assert next(r.message.split(":")[0] for r in caplog.records) == "no workers are left"
    assert "workers are back" in caplog.records[1].message


def test_a_broken_executor_is_a_clear_error(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = pytest.raises(RuntimeError, match=r"the executor is broken .*workers=N makes processes that are replaced")
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool, broken:
        run(dies, workers=pool)


def dies(x: np.ndarray, i: int) -> float:
    os._exit(1)


def test_lambdas_travel_by_value_with_cloudpickle_and_not_at_all_without(monkeypatch: pytest.MonkeyPatch) -> None:
    shift = 0.3
    result = pc.minimize(lambda x: float(abs(x - shift).sum()), np.zeros(2), budget=50, seed=0, workers=1)
    assert bits(result) == bits(pc.minimize(lambda x: float(abs(x - shift).sum()), np.zeros(2), budget=50, seed=0))
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(TypeError, match=r'top level of a module, or pip install "poem-cma\[workers\]"'):
        to_payload(Objective(lambda x: 0.0, None, 0))


def test_what_cannot_travel_at_all_is_refused() -> None:
    lock = threading.Lock()
    with pytest.raises(TypeError, match="cannot be sent to other processes"):
        pc.minimize(lambda x: float(lock.locked()), np.zeros(2), budget=50, workers=1)


def test_a_script_without_a_main_guard_is_told_so(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
        import numpy as np, poem_cma as pc
        def f(x):
            return float(x @ x)
        pc.minimize(f, np.ones(2), budget=50, workers=1)
        """)
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "worker processes die as they start" in done.stderr.strip().splitlines()[-1]
    assert '`if __name__ == "__main__":`' in done.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_signals_end_the_run_its_workers_and_their_programs(tmp_path: pathlib.Path, number: signal.Signals) -> None:
    store = tmp_path / "run.db"
    process = subprocess.Popen(
        [sys.executable, "-u", str(HERE / "interrupted.py"), str(store)], stdout=subprocess.PIPE, text=True,
        env=os.environ | {"POEM_CMA_TEST_MARK": str(tmp_path)}, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    for _ in range(2):
        assert process.stdout.readline().strip() == "waiting"
    assert len(runs.processes(str(tmp_path))) >= 5  # the driver, two workers, two programs
    sent = time.monotonic()
    process.send_signal(number)
    output, _ = process.communicate(timeout=60)
    took = time.monotonic() - sent
    assert gone(str(tmp_path), 1.0)
    if number == signal.SIGINT:
        assert process.returncode == 0
        assert output.splitlines()[-1] == "4 interrupted; this is the result so far"
    else:
        assert process.returncode == -signal.SIGTERM
    assert took < 10.0  # a second on a machine that is free; see benchmarks/workers.py
    with View(store) as view:
        assert view.result is None
    assert not store.with_name("run.db-lock").exists()


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"executor": 0}, "a number of processes from 1 up, not 0"),
        ({"executor": True}, "a number of processes from 1 up, not True"),
        ({"executor": "four"}, "a number of processes, an executor, a Dask client"),
        ({"executor": 1, "timeout": 0}, "timeout must be a positive number of seconds, not 0"),
        ({"executor": 1, "timeout": "1"}, "timeout must be a positive number of seconds, not '1'"),
        ({"executor": 1, "patience": -1.0}, "patience must be a positive number of seconds"),
        ({"executor": 1, "retries": -1}, "retries must be a whole number from 0 up, not -1"),
        ({"executor": 1, "retries": 1.5}, r"retries must be a whole number from 0 up, not 1\.5"),
    ],
    ids=str,
)
def test_what_workers_can_be(arguments: Any, match: str) -> None:
    with pytest.raises((ValueError, TypeError), match=match):
        pc.Workers(**arguments)


def test_batch_auto_keeps_all_workers_busy_and_leaves_enough_steps() -> None:
    for workers in (1, 2, 7, 16):
        steps = 1 + auto_ahead(pc.Workers(workers), METHODS["poem"], 10_000)
        assert 2 * steps == 4 * workers  # calls in flight
        assert auto_ahead(pc.Workers(workers), METHODS["auto"], 50_000) == 0  # a generation is a batch already
    poem = METHODS["poem"]
    assert auto_ahead(None, poem, 10_000) == 0
    assert auto_ahead(pc.Workers(16), poem, 600) == 5
    assert auto_ahead(pc.Workers(16), poem, 20) == 0
    with ThreadPoolExecutor(6) as threads:
        assert auto_ahead(pc.Workers(threads), poem, 10_000) == 11
        assert auto_ahead(pc.Workers(threads), poem, 1000) == 9
        assert bits(run(batch="auto", workers=threads, budget=1000)) == bits(run(ahead=9, budget=1000))


def test_batch_auto_is_kept_in_the_store(tmp_path: pathlib.Path) -> None:
    with ThreadPoolExecutor(6) as threads:
        result = run(batch="auto", workers=threads, budget=1000, store=tmp_path / "run.db")
    with ThreadPoolExecutor(2) as threads:
        assert bits(run(batch="auto", workers=threads, budget=1000, store=tmp_path / "run.db")) == bits(result)


def test_a_time_limit_holds_while_workers_hang() -> None:
    free = threading.Event()

    def fun(x: np.ndarray, i: int) -> float:
        free.wait(60)
        return 0.0

    with ThreadPoolExecutor(2) as threads:
        try:
            result = run(fun, workers=threads, time_limit=0.5, evaluate=0)
        finally:
            free.set()
    assert result.status == 3


def test_the_progress_bar_counts_workers(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("FORCE_COLOR", "1"), ("NO_COLOR", "1"), ("COLUMNS", "200")):  # as in a terminal
        monkeypatch.setenv(name, value)
    with ThreadPoolExecutor(2) as threads:
        run(workers=threads, progress=True)
    shown = capsys.readouterr().err
    assert "300/300" in shown
    assert "/2" in shown.split("workers")[1]
