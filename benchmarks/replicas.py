"""What advancing many runs together saves: 32 replicas against 32 runs one after another.

    python benchmarks/replicas.py [--rounds 5] [--budget 2000]

At d = 112, for POEM and for `auto`, around a trivial objective (a sum of squares, one call for all rows), around the
same with a random slope along every variable, and around the hinge loss on a random sample, which every run draws for
itself. Printed is the processor time of one oracle call, alone and together, and the ratio (the median over rounds);
then how it grows with the number of replicas. Then the same for cells of `poem-cma reproduce`, whose runs are looked at
on the way: seconds for all seeds of a cell.
"""

from __future__ import annotations

import argparse
import itertools
import json
import pathlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import poem_cma as pc
from poem_cma.reproduce import fig2, table1

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
        "noisy": (
            lambda x, i: float(x.dot(x) + A[i].dot(x)),
            lambda X, i: np.einsum("nd,nd->n", X, X) + np.einsum("nd,nd->n", A[i], X),
            lambda rng: rng.integers(N),
        ),
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
    made = pc.minimize(fun, x0, seed=0, **options).nfev  # without noise `auto` may end sooner than it must
    alone, together = (1e6 * min(times) / made for times in zip(*pairs, strict=True))
    ratio = float(np.median([one / other for one, other in pairs]))
    row = {"method": method, "objective": objective, "replicas": n}
    return row | {"alone_us": alone, "together_us": together, "ratio": ratio}


def random_numbers(n: int) -> float:
    """Microseconds for drawing the directions of one step of n runs, which are each run's own."""
    rng = np.random.Generator(np.random.SFC64(0))
    block, steps = np.empty((73, D)), 73  # as the library draws them
    return min(seconds(lambda: [rng.standard_normal(out=block) for _ in range(n)]) for _ in range(10)) / steps * 1e6


def cells(rounds: int) -> Iterator[dict[str, Any]]:
    """Cells of Figure 2 (hinge loss on mushrooms, 2,000 iterations) and of Table 1, by the number of seeds."""

    def run(method: str, seed: int) -> dict[str, Any]:
        own = {"set": "mushrooms", "tol": 0.25, "paired": True, "iterations": 2000, "seed": seed, "method": method}
        return own | {"initial_distance": 0.1 if method.startswith("poem") else None}

    def regression(method: str, seed: int) -> dict[str, Any]:
        return {"method": method, "d": 64, "k": 4, "seed": seed, "most_calls": 6000}

    parts = {"fig2": (fig2.compute_runs, run, (3, 10)), "table1": (table1.compute, regression, (5, 20))}
    for part, (compute, settings, numbers) in parts.items():
        for method, n in itertools.product(("poem", "poem-cma", "rsnso"), numbers):
            seeds = [settings(method, seed) for seed in range(n)]
            alone = [[one] for one in seeds]
            pairs = [(seconds(lambda: [*map(compute, alone)]), seconds(compute, seeds)) for _ in range(rounds)]  # noqa: B023
            ratio = float(np.median([one / other for one, other in pairs]))
            least = [min(times) for times in zip(*pairs, strict=True)]
            yield {"cell": f"{part} {method}", "seeds": n, "alone_s": least[0], "together_s": least[1], "ratio": ratio}


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
        for objective, n in (("trivial", 1), ("trivial", 4), ("trivial", 32), ("noisy", 32), ("hinge", 32)):
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
    print(f"\n{'cell':18}{'seeds':>6}{'alone s':>9}{'together s':>12}{'ratio':>7}")
    try:
        for row in cells(arguments.rounds):
            rows.append(row)
            times = f"{row['alone_s']:>9.2f}{row['together_s']:>12.2f}{row['ratio']:>7.1f}"
            print(f"{row['cell']:18}{row['seeds']:>6}{times}", flush=True)
    except pc.datasets.DatasetError as error:
        print(f"not measured: {error}")
    place = pathlib.Path("results")
    place.mkdir(exist_ok=True)
    (place / "replicas.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
