"""What advancing many runs together saves: 32 replicas against 32 runs one after another.

    python benchmarks/replicas.py [--rounds 5] [--budget 2000]

At d = 112, for POEM and for `auto`, around a trivial objective (a sum of squares, one call for all rows) and around the
hinge loss on a random sample, which every run draws for itself. Printed is the processor time of one oracle call, alone
and together, and the ratio (the median over rounds); then how it grows with the number of replicas.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import poem_cma as pc

D, N = 112, 2000


def problems() -> dict[str, tuple[Callable[..., Any], Callable[..., Any], Any]]:
    """The function of a point, the function of rows, and the sampler."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(N, D)) / 4
    y = np.sign(A @ rng.normal(size=D))

    def hinge(x, i):
        return max(0.0, 1.0 - y[i] * (A[i] @ x))

    def hinge_rows(X, i):
        return np.maximum(0.0, 1.0 - y[i] * np.einsum("nd,nd->n", A[i], X))

    return {
        "trivial": (lambda x: float(x.dot(x)), lambda X: np.einsum("nd,nd->n", X, X), None),
        "hinge": (hinge, hinge_rows, lambda rng: rng.integers(N)),
    }


def seconds(run: Callable[..., Any], *arguments: Any, **options: Any) -> float:
    """Seconds of processor time."""
    start = time.process_time()
    run(*arguments, **options)
    return time.process_time() - start


def one_after_another(fun: Callable[..., Any], n: int, **options: Any) -> None:
    """Single runs."""
    for seed in range(n):
        pc.minimize(fun, np.full(D, 0.05), seed=seed, **options)


def compare(method: str, objective: str, n: int, budget: int, rounds: int) -> dict[str, Any]:
    """A row of the table."""
    fun, fun_rows, sample = problems()[objective]
    options = {"sample": sample, "domain": pc.Ball(1.0), "method": method, "budget": budget, "evaluate": 0}
    few = min(n, 8)  # one after another: as many as a mean needs
    x0 = np.full(D, 0.05)
    pairs = [
        (
            seconds(one_after_another, fun, few, **options) / few,
            seconds(pc.replicate, fun_rows, x0, seeds=range(n), vectorized="rows", **options) / n,
        )
        for _ in range(rounds)
    ]
    alone, together = (1e6 * min(times) / budget for times in zip(*pairs, strict=True))
    ratio = float(np.median([one / other for one, other in pairs]))
    row = {"method": method, "objective": objective, "replicas": n}
    return row | {"alone_us": alone, "together_us": together, "ratio": ratio}


def random_numbers(n: int) -> float:
    """Microseconds for drawing the directions of one step of n runs, which are each run's own."""
    rng = np.random.Generator(np.random.SFC64(0))
    block, steps = np.empty((73, D)), 73  # as the library draws them
    return min(seconds(lambda: [rng.standard_normal(out=block) for _ in range(n)]) for _ in range(10)) / steps * 1e6


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--budget", type=int, default=2000)
    arguments = parser.parse_args()
    rows = []
    print("processor time of an oracle call")
    print(f"{'method':8}{'objective':10}{'replicas':>9}{'alone us':>10}{'together us':>12}{'ratio':>7}")
    for method in ("poem", "auto"):
        for objective, n in (("trivial", 1), ("trivial", 4), ("trivial", 32), ("hinge", 32)):
            row = compare(method, objective, n, arguments.budget, arguments.rounds)
            rows.append(row)
            print(
                f"{method:8}{objective:10}{n:>9}{row['alone_us']:>10.2f}{row['together_us']:>12.2f}"
                f"{row['ratio']:>7.1f}",
                flush=True,
            )
    numbers = random_numbers(32)
    rows.append({"random_numbers_us": numbers, "replicas": 32})
    print(f"the random numbers of a step of 32 replicas alone: {numbers:.0f} us")
    place = pathlib.Path("results")
    place.mkdir(exist_ok=True)
    (place / "replicas.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
