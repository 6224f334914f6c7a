"""What the library costs beside the objective: POEM and `auto` against loops written by hand in NumPy.

    python benchmarks/overhead.py [--rounds 30] [--steps 1000] [--calls]

Two loops to compare with: Algorithm 1 as the tests transcribe it line by line, and a lean one, in place and without
anything that a single run on a ball does not need. All run in turns in this process, around the same objective, at
d = 112; printed are the calls that were made (without noise `auto` may end sooner than it must), the processor time of
one of them in the quickest round, and the median over rounds of its ratio to the literal loop's. `auto` also makes runs
ten times as long. The literal loop sums up its weights anew for every step, so it depends on --steps.

Objectives: a sum of squares, and one of absolute values, without noise; the same squares with a random slope, one
number for all points of a probe, so that nothing is flat; and the hinge loss on one of 2,000 examples.
"""

from __future__ import annotations

import argparse
import collections
import json
import pathlib
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import poem_cma as pc
from poem_cma.run.oracle import Oracle
from poem_cma.run.randomness import Streams

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests"))
from reference import algorithm_1

D, N = 112, 2000


def lean_loop(F, x0: np.ndarray, r_eps: float, T: int, radius: float, rng: np.random.Generator, n: int) -> np.ndarray:
    """POEM on a ball around 0, no more than that.

    xi is an index below n. The output is kept as a running sum and one copy where the weight ratio falls.
    """
    d = len(x0)
    x = x0.copy()
    r_bar, G = r_eps, 0.0
    total, weights = np.zeros(d), 0.0
    best, best_score = x0.copy(), 0.0
    for t in range(T):
        r_new: float = max(r_bar, float(np.linalg.norm(x - x0)))
        if weights and r_new > r_bar and weights / r_bar > best_score:
            best, best_score = total / weights, weights / r_bar
        r_bar = r_new
        v = rng.standard_normal(d)
        v /= np.linalg.norm(v)
        mu = r_bar * np.sqrt(d / (t + 1))
        i = rng.integers(n)
        g = d / (2.0 * mu) * (F(x + mu * v, i) - F(x - mu * v, i)) * v
        G += g @ g
        total += r_bar * x
        weights += r_bar
        if G > 0.0:
            x = x - r_bar / np.sqrt(G) * g
        length = np.linalg.norm(x)
        if length > radius:
            x = x * (radius / length)
    return total / weights if weights / r_bar > best_score else best


def objectives() -> dict[str, tuple[Any, Any, Any]]:
    """The function of a point, the function of many, and the sampler."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(N, D)) / 4
    y = np.sign(A @ rng.normal(size=D))

    def sloping(X, i):
        return np.einsum("nd,nd->n", X, X) + X @ A[i]

    def hinges(X, i):
        return np.maximum(0.0, 1.0 - y[i] * (X @ A[i]))

    def index(rng):
        return rng.integers(N)

    return {
        "squares": (lambda x, i=None: float(x.dot(x)), lambda X: np.einsum("nd,nd->n", X, X), None),  # noqa: ARG005
        "absolute": (lambda x, i=None: float(np.abs(x).sum()), lambda X: np.abs(X).sum(axis=1), None),  # noqa: ARG005
        "noisy": (lambda x, i: float(x.dot(x) + A[i].dot(x)), sloping, index),
        "hinge": (lambda x, i: max(0.0, 1.0 - y[i] * (A[i] @ x)), hinges, index),
    }


def loops(steps: int, objective: str) -> dict[str, Callable[[int], int]]:
    """What is compared: runs of 2 `steps` calls, or more, from a seed; they return the number of calls."""
    fun, funs, sample = objectives()[objective]
    x0 = np.full(D, 0.05)

    def library(method: str, budget: int, vectorized: bool = False) -> Callable[[int], int]:
        return lambda seed: pc.minimize(
            funs if vectorized else fun, x0, sample=sample, domain=pc.Ball(1.0), method=method, budget=budget,
            evaluate=0, seed=seed, vectorized=vectorized,
        ).nfev  # fmt: skip

    def on_ball(x):
        length = np.linalg.norm(x)
        return x if length <= 1.0 else x / length

    def literal(seed: int) -> int:
        rng = np.random.default_rng(seed)
        algorithm_1(fun, x0, 0.1, steps, on_ball, lambda: rng.standard_normal(D), lambda: rng.integers(N))
        return 2 * steps

    def lean(seed: int) -> int:
        lean_loop(fun, x0, 0.1, steps, 1.0, np.random.default_rng(seed), N)
        return 2 * steps

    return {
        "literal": literal,
        "lean": lean,
        "POEM": library("poem", 2 * steps),
        "auto": library("auto", 2 * steps),
        "auto, vectorized": library("auto", 2 * steps, vectorized=True),
        "auto, longer": library("auto", 20 * steps),
        "auto, longer, vectorized": library("auto", 20 * steps, vectorized=True),
    }


def count_calls(method: str, budget: int, before: int, answers: int) -> None:
    """Print which file's functions a step calls, and how often, in so many stages after those before."""
    seen: collections.Counter[str] = collections.Counter()

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            seen[pathlib.Path(frame.f_code.co_filename).name] += 1
        elif event == "c_call":
            seen["compiled"] += 1

    opt = pc.Optimizer(np.zeros(D), method=method, domain=pc.Ball(1.0), budget=budget, seed=0)
    fun, _, sample = objectives()["noisy"]
    oracle = Oracle(fun, sample, Streams(0))
    for _ in range(before):
        opt.answer(oracle.evaluate)
    first, calls = opt.nit, opt.nfev
    sys.setprofile(note)
    for _ in range(answers):
        opt.answer(oracle.evaluate)
    sys.setprofile(None)
    steps = opt.nit - first
    python = sum(count for name, count in seen.items() if name != "compiled")
    print(
        f"a step of {method}: {(opt.nfev - calls) / steps:.1f} oracle calls, {python / steps:.1f} of Python's functions"
    )
    for name, count in seen.most_common():
        if count >= steps / 2:
            print(f"{count / steps:6.1f} {name}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--calls", action="store_true", help="count the function calls of a step instead")
    arguments = parser.parse_args()
    if arguments.calls:
        count_calls("poem", 10**6, 73, 730)  # ten blocks of directions
        count_calls("auto", 2000, 150, 200)  # two stages a step, along random directions
        return
    rows = []
    print(f"{'objective':10}{'loop':26}{'calls':>7}{'us a call':>11}{'of the literal loop':>21}")
    for objective in objectives():
        compared = loops(arguments.steps, objective)
        times: dict[str, list[float]] = {name: [] for name in compared}
        calls: dict[str, int] = {}
        for seed in range(arguments.rounds):
            for name, loop in compared.items():
                start = time.process_time()
                calls[name] = loop(seed)
                times[name].append((time.process_time() - start) / calls[name] * 1e6)
        for name, taken in times.items():
            ratio = float(np.median(np.array(taken) / np.array(times["literal"])))
            row = {"objective": objective, "loop": name, "calls": calls[name], "us": min(taken), "ratio": ratio}
            rows.append(row)
            print(f"{objective:10}{name:26}{calls[name]:>7}{min(taken):>11.2f}{ratio:>21.2f}", flush=True)
    place = pathlib.Path("results")
    place.mkdir(exist_ok=True)
    (place / "overhead.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
