"""`auto` on the paper's problem and its neighbours: the full objective at the returned point, nothing tuned.

    POEM_CMA_DATA=../shared/data python benchmarks/auto_numbers.py [--seeds 5] [--quick]

Hinge loss on the unit ball from x0 = 0, one example a call, every call counted. POEM with the same calls stands beside.
"""

from __future__ import annotations

import argparse
import json
import pathlib

import numpy as np

import poem_cma as pc

# The least values, certified by a dual bound (`poem_cma.problems.certify`).
OPTIMUM = {"mushrooms": 0.13839, "w8a": 0.33395, "a9a": 0.40765}


def measure(name: str, budget: int, method: str, seeds: int) -> np.ndarray:
    """The full objective for each seed."""
    A, y = pc.datasets.load(name)
    B = A * y[:, None]
    values = []
    for seed in range(seeds):
        x = pc.minimize(
            lambda X, i: np.maximum(0.0, 1.0 - X @ B[i]),
            np.zeros(A.shape[1]),
            sample=lambda rng: int(rng.integers(len(y))),
            domain=pc.Ball(1.0),
            method=method,
            budget=budget,
            seed=seed,
            vectorized=True,
        ).x
        values.append(np.maximum(0.0, 1.0 - B @ x).mean())
    return np.array(values)


def main() -> None:
    """Print the table, and keep it in results/."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="20,000 calls only")
    arguments = parser.parse_args()
    rows = []
    print(f"mean ± standard error of the full objective over {arguments.seeds} seeds\n")
    print("| set | calls | auto | POEM | least value |\n|---|---|---|---|---|")
    for name in ("mushrooms", "w8a", "a9a"):
        for budget in (20_000,) if arguments.quick else (20_000, 100_000):
            row: dict = {"set": name, "calls": budget}
            cells = []
            for method in ("auto", "poem"):
                f = measure(name, budget, method, arguments.seeds)
                row[method], row[method + "_stderr"] = f.mean(), f.std(ddof=1) / np.sqrt(len(f))
                cells.append(f"{row[method]:.4f} ± {row[method + '_stderr']:.4f}")
            rows.append(row)
            print(f"| {name} | {budget} | {' | '.join(cells)} | {OPTIMUM[name]} |", flush=True)
    place = pathlib.Path("results")
    place.mkdir(exist_ok=True)
    (place / "auto_numbers.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
