"""What a batch costs in calls, and what it gives in time: ``python benchmarks/batch.py [--seeds 5]``.

Hinge loss on mushrooms over the unit ball, one example a call, 20,000 calls, every call counted: the value reached with
1, 2, 4, 8 and 16 independent xi's a step, and how busy workers are: calls over (rounds x workers), where the probes of
a stage are shared out and a call takes one round. Prints a table and writes results/batch.json.
"""

from __future__ import annotations

import argparse
import json
import pathlib
from math import ceil

import numpy as np

import poem_cma as pc

BUDGET = 20_000


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
    place = pathlib.Path("results")
    place.mkdir(exist_ok=True)
    (place / "batch.json").write_text(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
