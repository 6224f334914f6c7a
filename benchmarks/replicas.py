"""What advancing many runs together saves: 32 replicas against 32 runs one after another.

    python benchmarks/replicas.py [--rounds 5] [--budget 2000]

At d = 112, for POEM and for `auto`, around a trivial objective (a sum of squares, one call for all rows), around the
same with a random slope along every variable, and around the hinge loss on a random sample, which every run draws for
itself. Printed is the processor time of one oracle call, alone and together, and the ratio (the median over rounds);
then how it grows with the number of replicas; then what no library could do without: the random numbers of a step of
all runs, and a whole step of POEM for them, written for this ball and nothing else. Then the same for cells of
`poem-cma reproduce`, whose runs are looked at on the way: seconds for all seeds of a cell.
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
from poem_cma.experiments.reproduce import fig2, table1

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


def bare(n: int, steps: int = 500) -> float:
    """Microseconds for a step of POEM on a ball, for n runs at once: in place, without history, failures or output."""
    rngs = [np.random.Generator(np.random.SFC64(seed)) for seed in range(n)]
    fun = problems()["trivial"][1]
    x = np.full((n, D), 0.05)
    x0, total, step = x.copy(), np.zeros((n, D)), np.empty((n, D))
    points, block = np.empty((2, n, D)), np.empty((n, 73, D))
    r_bar, G, weights = np.full((n, 1), 0.1), np.zeros((n, 1)), np.zeros((n, 1))

    def run() -> None:
        nonlocal x, r_bar, G, total, weights
        for t in range(steps):
            if t % 73 == 0:
                for rng, own in zip(rngs, block, strict=True):
                    rng.standard_normal(out=own)
                np.divide(block, np.sqrt(np.einsum("nbd,nbd->nb", block, block))[..., None], out=block)
            v = block[:, t % 73]
            mu = r_bar * (D / (t + 1)) ** 0.5
            np.multiply(mu, v, out=step)
            np.add(x, step, out=points[0])
            np.subtract(x, step, out=points[1])
            F = fun(points.reshape(2 * n, D)).reshape(2, n, 1)
            slope = D / 2.0 * (F[0] - F[1]) / mu
            G += slope * slope
            total += np.multiply(r_bar, x, out=step)
            weights += r_bar
            x -= np.multiply(slope * r_bar / np.sqrt(G), v, out=step)
            squares = np.einsum("nd,nd->n", x, x)
            if squares.max() > 1.0:
                x /= np.maximum(1.0, np.sqrt(squares))[:, None]
            np.subtract(x, x0, out=step)
            r_bar = np.maximum(r_bar, np.sqrt(np.einsum("nd,nd->n", step, step))[:, None])

    return min(seconds(run) for _ in range(10)) / steps * 1e6


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
    least = bare(32)
    rows.append({"bare_us": least, "replicas": 32})
    alone = next(row["alone_us"] for row in rows if row.get("replicas") == 32 and row.get("method") == "poem")
    print(f"the random numbers of a step of 32 replicas alone: {numbers:.0f} us")
    print(f"such a step of POEM, bare: {least:.0f} us, {64 * alone / least:.1f} times as quick as 32 steps alone")
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
