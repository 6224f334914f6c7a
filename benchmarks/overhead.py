"""What the library costs beside the objective: a POEM step against loops written by hand in NumPy.

    python benchmarks/overhead.py [--rounds 30]

Two loops to compare with: Algorithm 1 as the tests transcribe it line by line, and a lean one, in place and without
anything that a single run on a ball does not need. All run in turns in this process, around the same objective, at
d = 112; printed are the quickest round of each and the median over rounds of the ratio.
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

    def literal(seed: int) -> None:
        rng = np.random.default_rng(seed)

        def on_ball(x):
            length = np.linalg.norm(x)
            return x if length <= 1.0 else x / length

        algorithm_1(
            hinge, np.zeros(D), 0.1, arguments.steps, on_ball, lambda: rng.standard_normal(D), lambda: rng.integers(N)
        )

    def lean(seed: int) -> None:
        lean_loop(hinge, np.zeros(D), 0.1, arguments.steps, 1.0, np.random.default_rng(seed), N)

    loops = {"library": library, "literal": literal, "lean": lean}
    times: dict[str, list[float]] = {name: [] for name in loops}
    for seed in range(arguments.rounds):
        for name, loop in loops.items():
            start = time.process_time()
            loop(seed)
            times[name].append((time.process_time() - start) / arguments.steps * 1e6)
    row = {f"{name}_us": min(taken) for name, taken in times.items()}
    for name in ("literal", "lean"):
        row[f"ratio_to_{name}"] = float(np.median(np.array(times["library"]) / np.array(times[name])))
    print(f"a POEM step at d = {D}: " + ", ".join(f"{name} {row[f'{name}_us']:.1f} us" for name in loops))
    print(f"library / literal = {row['ratio_to_literal']:.2f}, library / lean = {row['ratio_to_lean']:.2f} (medians)")
    place = pathlib.Path("results")
    place.mkdir(exist_ok=True)
    (place / "overhead.json").write_text(json.dumps(row, indent=1))


if __name__ == "__main__":
    main()
