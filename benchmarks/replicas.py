"""What advancing many runs together saves: 32 replicas against 32 runs one after another.

    python benchmarks/replicas.py [--rounds 5] [--steps 1000]

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


def measure(run: Callable[[], Any]) -> float:
    """Seconds of processor time."""
    start = time.process_time()
    run()
    return time.process_time() - start


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--budget", type=int, default=2000)
    arguments = parser.parse_args()
    rows = []
    print(
        f"{'method':8}{'objective':10}{'replicas':>9}{'alone us':>10}{'together us':>12}{'ratio':>7}   per oracle call"
    )
    for method in ("poem", "auto"):
        for name, (fun, fun_rows, sample) in problems().items():
            for n in (1, 4, 32) if name == "trivial" else (32,):
                options = {
                    "sample": sample, "domain": pc.Ball(1.0), "method": method, "budget": arguments.budget, "evaluate": 0,
                }  # fmt: skip
                few = min(n, 8)  # one after another: as many as needed for the mean
                x0 = np.full(D, 0.05)
                alone, together = [], []
                for _ in range(arguments.rounds):
                    alone.append(
                        measure(lambda: [pc.minimize(fun, x0, seed=seed, **options) for seed in range(few)]) / few
                    )
                    together.append(
                        measure(lambda: pc.replicate(fun_rows, x0, seeds=range(n), vectorized="rows", **options)) / n
                    )
                ratio = float(np.median(np.array(alone) / np.array(together)))
                us = [1e6 * min(t) / arguments.budget for t in (alone, together)]
                rows.append({"method": method, "objective": name, "replicas": n, "alone_us": us[0],
                             "together_us": us[1], "ratio": ratio})  # fmt: skip
                print(f"{method:8}{name:10}{n:>9}{us[0]:>10.2f}{us[1]:>12.2f}{ratio:>7.1f}", flush=True)
    place = pathlib.Path("results")
    place.mkdir(exist_ok=True)
    (place / "replicas.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
