"""Guards of the speed and the memory of a step that do not depend on the clock."""

from __future__ import annotations

import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import poem_cma as pc
from poem_cma.run import checks as setup
from poem_cma.run.oracle import Oracle
from poem_cma.run.randomness import Streams

D = 112


def plain(x: np.ndarray) -> float:
    return float(x[0])


def calls_of(work: Callable[[], Any]) -> collections.Counter[str]:
    """Function calls while `work` runs: of Python's functions, and of compiled ones."""
    seen: collections.Counter[str] = collections.Counter()

    def note(frame: Any, event: str, arg: Any) -> None:
        if event in ("call", "c_call"):
            seen[event] += 1

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return seen


def test_a_step_of_poem_takes_few_function_calls() -> None:
    """41 of Python's, the objective and the sample included, and 34 compiled ones."""
    opt = pc.Optimizer(np.zeros(D), method="poem", domain=pc.Ball(1.0), budget=10**6, seed=0)
    oracle = Oracle(lambda x, i: float(x[i]), lambda rng: 3, Streams(0))
    for _ in range(100):
        opt.answer(oracle.evaluate)
    steps = 300
    seen = calls_of(lambda: [opt.answer(oracle.evaluate) for _ in range(steps)])
    assert seen["call"] / steps < 43
    assert seen["c_call"] / steps < 38


@pytest.mark.parametrize("method", ["near", "far"])
def test_a_step_of_auto_takes_few_function_calls(method: str) -> None:
    """For each oracle call, the objective included: a walk or a generation is one probe of many points."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(50, D))
    opt = pc.Optimizer(np.full(D, 0.05), method=method, domain=pc.Ball(1.0), budget=20_000, seed=0)
    oracle = Oracle(lambda x, i: abs(float(A[i] @ x) - 1.0), lambda rng: int(rng.integers(50)), Streams(0))
    while opt._state.phase != method:
        opt.answer(oracle.evaluate)
    before = opt.nfev
    seen = calls_of(lambda: [opt.answer(oracle.evaluate) for _ in range(200)])
    told = opt.nfev - before
    assert told > 1000
    assert seen["call"] / told < LIMITS[method][0]
    assert seen["c_call"] / told < LIMITS[method][1]


#: Calls of Python's functions and of compiled ones for each oracle call.
LIMITS = {"near": (60, 90), "far": (60, 90)}


def test_a_run_does_not_wait_for_scipy_to_be_imported() -> None:
    """It takes as long to import as thousands of steps; only steps in a subspace, and kinks without noise, need it."""
    script = (
        "import sys, numpy as np, poem_cma as pc;"
        "pc.minimize(lambda x: float(((x - 1.0) ** 2).sum()), np.zeros(50), budget=1000, seed=0);"
        "print([name for name in sys.modules if name.startswith('scipy')])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_replicas_share_the_function_calls() -> None:
    """32 runs take hardly more calls than 4: only the random numbers are drawn for each."""
    counts = []
    for n in (4, 32):
        short, long = (
            calls_of(
                lambda n=n, budget=budget: pc.replicate(
                    lambda X: X[:, 0], np.zeros(D), seeds=range(n), method="poem", budget=budget, evaluate=0,
                    vectorized="rows",
                )
            )
            for budget in (500, 2500)
        )  # fmt: skip
        counts.append((long["call"] - short["call"]) / 1000)
    assert counts[0] < 55
    assert counts[1] < counts[0] + 28 * 0.25


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("domain", [None, pc.Ball(1.0), pc.Box(-1.0, 1.0)], ids=repr)
def test_poem_works_in_eight_vectors(dtype: Any, domain: Any) -> None:
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
    assert peak < 8.0 * x0.nbytes + 400_000  # beside the vectors: a few parts of 2^16 numbers, records, the history


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
                domain=pc.Ball(1.0), seed=0)
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
