"""Guards of the speed and the memory of a step that do not depend on the clock."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from inside import phase_of
from reference import algorithm_1

import poem_cma as pc
from poem_cma.run import checks as setup
from poem_cma.run.oracle import Oracle
from poem_cma.run.randomness import Streams

D = 112

#: The set of the paper: pairs may leave it.
SPHERE = pc.Ball(1.0, outside=True)


def plain(x: np.ndarray) -> float:
    return float(x[0])


def instructions_of(work: Callable[[], Any]) -> int:
    """Instructions of Python's machine that `work` executes, in all functions that it calls."""
    count = 0

    def note(frame: Any, event: str, arg: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return note

    before = sys.gettrace()
    sys.settrace(note)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def a_step_of(run: Callable[[int], Any]) -> float:
    """Instructions of a step, without those of the beginning and the end: `run` takes a number of steps."""
    return (instructions_of(lambda: run(300)) - instructions_of(lambda: run(100))) / 200


@pytest.fixture(scope="module")
def literal() -> float:
    """Instructions of a step of Algorithm 1 as the tests transcribe it line by line: two calls of the objective."""

    def on_ball(x: np.ndarray) -> np.ndarray:
        length = np.linalg.norm(x)
        return x if length <= 1.0 else x / length

    def loop(steps: int) -> None:
        rng = np.random.default_rng(0)
        algorithm_1(lambda x, i: float(x[i]), np.zeros(D), 0.1, steps, on_ball, lambda: rng.normal(size=D), lambda: 3)

    return a_step_of(loop)


def poem(steps: int) -> pc.Result:
    """A plain run."""
    settings: dict[str, Any] = {"method": "poem", "domain": SPHERE, "budget": 2 * steps, "evaluate": 0, "seed": 0}
    return pc.minimize(lambda x, i: float(x[i]), np.zeros(D), sample=lambda rng: 3, **settings)


def test_a_step_of_poem_takes_few_instructions(literal: float) -> None:
    """3.0 times those of the literal loop, which draws from one generator, records nothing and tolerates nothing."""
    assert a_step_of(poem) < 3.1 * literal


def test_the_loop_adds_nothing_to_a_step() -> None:
    """A run without store, workers, callback and limits: the loop around `answer` is less than 20 instructions."""
    opt = pc.Optimizer(np.zeros(D), method="poem", domain=SPHERE, budget=10**6, seed=0)
    oracle = Oracle(lambda x, i: float(x[i]), lambda rng: 3, Streams(0))

    def steps(n: int) -> None:
        for _ in range(n):
            opt.answer(oracle.evaluate)

    steps(100)
    assert abs(a_step_of(poem) - a_step_of(steps)) < 20.0


@pytest.mark.parametrize("method", ["near", "far"])
def test_a_call_of_auto_takes_few_instructions(method: str, literal: float) -> None:
    """For each call of the objective: 1.6 to 1.8 times a step of the literal loop, which makes two of them."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(50, D))
    opt = pc.Optimizer(np.full(D, 0.05), method=method, domain=pc.Ball(1.0), budget=20_000, seed=0)
    oracle = Oracle(lambda x, i: abs(float(A[i] @ x) - 1.0), lambda rng: int(rng.integers(50)), Streams(0))
    while phase_of(opt) != method:
        opt.answer(oracle.evaluate)
    before = opt.nfev
    seen = instructions_of(lambda: [opt.answer(oracle.evaluate) for _ in range(200)])
    told = opt.nfev - before
    assert told > 1000
    assert seen / told < 2.0 * literal


@pytest.mark.parametrize("workers", [False, True])
def test_every_evaluation_is_made_once(workers: bool, tmp_path: pathlib.Path) -> None:
    """With a store, resumed, with workers: as many evaluations as the result says."""
    made = 0

    def fun(x: np.ndarray, i: int) -> float:
        nonlocal made
        made += 1
        if made == 500 and not workers:
            raise KeyboardInterrupt
        return float(abs(x - 0.5).sum() + 0.01 * i)

    settings: dict[str, Any] = {
        "sample": lambda rng: int(rng.integers(9)),
        "budget": 1000,
        "seed": 0,
        "store": tmp_path / "run",
    }
    with ThreadPoolExecutor(2) if workers else contextlib.nullcontext() as threads:
        for _ in range(2):
            result = pc.minimize(fun, np.zeros(5), workers=threads, **settings)
    assert made == result.nfev + (not workers)


def test_a_run_does_not_wait_for_scipy_to_be_imported() -> None:
    """It takes as long to import as thousands of steps; only steps in a subspace, and kinks without noise, need it."""
    script = (
        "import sys, numpy as np, poem_cma as pc;"
        "pc.minimize(lambda x: float(((x - 1.0) ** 2).sum()), np.zeros(50), budget=1000, seed=0);"
        "print([name for name in sys.modules if name.startswith('scipy')])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_replicas_share_the_instructions() -> None:
    """32 runs take hardly more than 4: only the random numbers are drawn for each."""

    def replicas(n: int) -> float:
        return a_step_of(
            lambda steps: pc.replicate(
                lambda X: X[:, 0], np.zeros(D), seeds=range(n), method="poem", budget=2 * steps, evaluate=0,
                vectorized="rows",
            )
        )  # fmt: skip

    few, many = replicas(4), replicas(32)
    assert many < 1.15 * few


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("domain", [None, pc.Ball(1.0, outside=True), pc.Ball(1.0), pc.Box(-1.0, 1.0)], ids=repr)
def test_poem_works_in_the_vectors_that_are_stated(dtype: Any, domain: Any) -> None:
    """From x0 to the result, the final evaluation included."""
    d = 200_000
    x0 = np.zeros(d, dtype)

    def far(x: np.ndarray) -> float:
        return float(np.abs(x[:100] - 3.0).sum())

    pc.minimize(far, x0[:50], method="poem", domain=domain, budget=100, seed=0)  # imports, caches
    tracemalloc.start()
    try:
        result = pc.minimize(far, x0, method="poem", domain=domain, budget=120, seed=0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert result.x.dtype == result.x_last.dtype == result.x_average.dtype == dtype
    vectors = setup.working_memory(pc.methods.poem(), x0, outside=domain is None or domain.outside)
    assert vectors <= (8 if domain is None or domain.outside else 11) * x0.nbytes
    assert peak < vectors + 400_000  # beside the vectors: a few parts of 2^16 numbers, records, the history


@pytest.mark.parametrize("method", ["poem", "auto"])
def test_a_run_that_cannot_fit_is_refused_before_it_begins(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "machine_memory", lambda: 2.0**20)
    with pytest.raises(MemoryError, match=rf"{method} in 100000 dimensions needs about .* GiB.*float32"):
        pc.minimize(plain, np.zeros(100_000), method=method)
    monkeypatch.undo()
    assert setup.machine_memory() > 2**20


def test_auto_works_in_the_memory_that_is_stated() -> None:
    x0 = np.zeros(100_000, np.float32)
    pc.minimize(plain, x0[:50], budget=100, seed=0)
    tracemalloc.start()
    try:
        result = pc.minimize(lambda x: float(np.abs(x[:100] - 3.0).sum()), x0, budget=700, seed=0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert result.x.dtype == result.x_last.dtype == result.x_average.dtype == np.float32
    assert peak < setup.working_memory(pc.methods.auto(), x0)


@pytest.mark.parametrize("method", ["near", "far"])
def test_its_regimes_work_in_that_memory_too(method: str) -> None:
    x0 = np.zeros(20_000)
    tracemalloc.start()
    try:
        pc.minimize(lambda x: float(np.abs(x[:100] - 3.0).sum()), x0, method=method, budget=2000, seed=0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < setup.working_memory(pc.methods.auto(), x0)


def test_steps_leave_nothing_behind() -> None:
    opt = pc.Optimizer(np.zeros(D), method="poem", budget=10**7, seed=0)
    opt.history.most = 50
    oracle = Oracle(plain, None, Streams(0))

    def held() -> int:
        for _ in range(2000):
            opt.answer(oracle.evaluate)
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        first = held()
        assert held() - first < 20_000
    finally:
        tracemalloc.stop()


RUN = """
import sys
import numpy as np
sys.path.insert(0, {tests!r})

def hinge(x, i):
    return max(0.0, 1.0 - x[i])

which, steps = sys.argv[1], int(sys.argv[2])
if which == "library":
    import poem_cma as pc
    pc.minimize(hinge, np.zeros(112), sample=lambda rng: rng.integers(112), method="poem", budget=2 * steps, evaluate=0,
                domain=pc.Ball(1.0, outside=True), seed=0)
else:
    from reference import algorithm_1
    rng = np.random.default_rng(0)
    def on_ball(x):
        length = np.linalg.norm(x)
        return x if length <= 1.0 else x / length
    algorithm_1(hinge, np.zeros(112), 0.1, steps, on_ball, lambda: rng.standard_normal(112), lambda: rng.integers(112))
"""


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_a_step_of_poem_takes_about_the_instructions_of_the_literal_loop(tmp_path: pathlib.Path) -> None:
    """Counted by callgrind between 50 and 250 steps, so that starting the interpreter does not count.

    Compiling modules and idle threads of linear algebra would, and vary by more than what is measured: modules are
    compiled before, whatever the environment says of that, and there is one thread.
    """
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPYCACHEPREFIX": str(tmp_path / "compiled")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def instructions(which: str, steps: int) -> int:
        script = RUN.format(tests=str(pathlib.Path(__file__).parents[1]))
        subprocess.run([sys.executable, "-c", script, which, "5"], check=True, env=environment)  # compiles
        command = [
            "valgrind", "--tool=callgrind", f"--callgrind-out-file={tmp_path / 'out'}", sys.executable, "-c", script,
            which, str(steps),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        found = re.search(r"Collected : (\d+)", done.stderr)
        assert found is not None, done.stderr
        return int(found[1])

    a_step = {which: (instructions(which, 250) - instructions(which, 50)) / 200 for which in ("library", "literal")}
    assert a_step["library"] < 1.2 * a_step["literal"], a_step
