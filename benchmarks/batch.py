"""What a batch costs in calls, and what it gives in time: ``python benchmarks/batch.py [--seeds 5]``.

Hinge loss on mushrooms over the unit ball, one example a call, 20,000 calls, every call counted: the value reached with
1, 2, 4, 8 and 16 independent xi's a step, and how busy workers are: calls over (rounds x workers), where the probes of
a stage are shared out and a call takes one round. Then, on other problems, the gap that is left after as many calls, as
a share of the gap at x_0. Prints two tables and writes results/batch.json.
"""

from __future__ import annotations

import argparse
import json
import pathlib
from math import ceil

import numpy as np

import poem_cma as pc
from poem_cma import problems

BUDGET = 20_000
OTHERS = "logistic-a9a", "absolute-rank5-of-100", "squared-full-rank-100", "cvar-portfolio", "max-affine"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    A, y = pc.datasets.load("mushrooms")

    def full(x: np.ndarray) -> float:
        return float(np.maximum(0.0, 1.0 - y * (A @ x)).mean())

    def walk(method: str, batch: int, seed: int) -> tuple[float, dict[int, int]]:
        """The value at the end, and the rounds that so many workers need."""
        opt = pc.Optimizer(
            np.zeros(A.shape[1]), method=method, domain=pc.Ball(1.0), budget=BUDGET, seed=seed, batch=batch
        )
        rounds = dict.fromkeys((batch, 2 * batch), 0)
        draws: dict[int, int] = {}
        while True:
            stage = []
            while (probe := opt.ask()) is not None:
                stage.append(probe)
            if not stage:
                return full(opt.result().x), rounds
            calls = sum(len(probe.points) for probe in stage)
            for workers in rounds:
                rounds[workers] += ceil(calls / workers)
            for probe in stage:
                for n in probe.numbers:
                    draws.setdefault(n, int(np.random.default_rng((seed, n)).integers(len(y))))
                rows = [draws[n] for n in probe.numbers]
                margins = 1.0 - y[rows] * np.einsum("ij,ij->i", A[rows], probe.points)
                opt.tell(probe, np.maximum(0.0, margins))
                draws = {n: draws[n] for n in probe.numbers}

    table = []
    print(f"{'method':>9} {'batch':>6} {'value':>16} {'2 x batch workers busy':>23} {'batch workers busy':>19}")
    for method in ("auto", "poem", "poem-cma"):
        for batch in (1, 2, 4, 8, 16):
            ends = [walk(method, batch, seed) for seed in range(arguments.seeds)]
            values = np.array([value for value, _ in ends])
            busy = {w: float(np.mean([BUDGET / (rounds[w] * w) for _, rounds in ends])) for w in (2 * batch, batch)}
            row = {
                "method": method, "batch": batch, "value": float(values.mean()),
                "stderr": float(values.std(ddof=1) / np.sqrt(len(values))), "busy_two": busy[2 * batch],
                "busy_one": busy[batch],
            }  # fmt: skip
            table.append(row)
            print(
                f"{method:>9} {batch:>6} {row['value']:>9.4f} ± {row['stderr']:.4f} {busy[2 * batch]:>23.2f} "
                f"{busy[batch]:>19.2f}",
                flush=True,
            )
    others = elsewhere(arguments.seeds)
    place = pathlib.Path("results")
    place.mkdir(exist_ok=True)
    (place / "batch.json").write_text(json.dumps({"mushrooms": table, "others": others}, indent=1))


def elsewhere(seeds: int) -> list[dict[str, object]]:
    """The gap left on other problems."""
    rows: list[dict[str, object]] = []
    batches = 1, 4, 16
    print(f"\n{'problem':>22} {'method':>9}" + "".join(f"{f'batch {batch}':>10}" for batch in batches))
    for name in OTHERS:
        problem = problems.load(name)
        for method in ("auto", "poem"):
            left = []
            for batch in batches:
                ends = [
                    problem.solve(method=method, budget=BUDGET, batch=batch, seed=seed, evaluate=0).x
                    for seed in range(seeds)
                ]
                left.append(float(np.mean([problem.gap(x) for x in ends])) / problem.gap(problem.x0))
            rows.append({"problem": name, "method": method, "left": dict(zip(batches, left, strict=True))})
            print(f"{name:>22} {method:>9}" + "".join(f"{share:>10.4f}" for share in left), flush=True)
    return rows


if __name__ == "__main__":
    main()
