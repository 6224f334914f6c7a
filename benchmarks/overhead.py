"""What the library costs beside the objective: a POEM step against the same loop written by hand in NumPy.

    python benchmarks/overhead.py [--rounds 30]

Both run in turns in this process, around the same objective, at d = 112; the ratio of the quickest and of the median
rounds is printed. On a busy machine the first is the better guide.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
import time

import numpy as np

import poem_cma as pc

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests"))
from reference import poem_loop

D, N = 112, 2000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--steps", type=int, default=1000)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    A = rng.normal(size=(N, D)) / 4
    y = np.sign(A @ rng.normal(size=D))

    def hinge(x, i):
        return max(0.0, 1.0 - y[i] * (A[i] @ x))

    def library(seed: int) -> None:
        pc.minimize(
            hinge, np.zeros(D), sample=lambda rng: rng.integers(N), domain=pc.Ball(1.0), method="poem",
            budget=2 * arguments.steps, evaluate=0, seed=seed,
        )  # fmt: skip

    def by_hand(seed: int) -> None:
        poem_loop(hinge, np.zeros(D), 0.1, arguments.steps, 1.0, np.random.default_rng(seed), N)

    times = {library: [], by_hand: []}
    for seed in range(arguments.rounds):
        for loop, taken in times.items():
            start = time.perf_counter()
            loop(seed)
            taken.append((time.perf_counter() - start) / arguments.steps * 1e6)
    quickest = {loop: min(taken) for loop, taken in times.items()}
    median = {loop: float(np.median(taken)) for loop, taken in times.items()}
    row = {
        "library_us": quickest[library],
        "by_hand_us": quickest[by_hand],
        "ratio_of_quickest": quickest[library] / quickest[by_hand],
        "ratio_of_medians": median[library] / median[by_hand],
    }
    print(
        f"a POEM step at d = {D}: library {row['library_us']:.1f} us, by hand {row['by_hand_us']:.1f} us; "
        f"ratio {row['ratio_of_quickest']:.2f} (quickest), {row['ratio_of_medians']:.2f} (medians)"
    )
    place = pathlib.Path("results")
    place.mkdir(exist_ok=True)
    (place / "overhead.json").write_text(json.dumps(row, indent=1))


if __name__ == "__main__":
    main()
