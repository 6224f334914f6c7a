"""What a call costs in a million dimensions and more, in time and in memory.

    python benchmarks/scale.py [--steps 10]

For POEM: the processor time of a step against the bare necessities in the same run (drawing a direction, two perturbed
copies, one update), in double and in single precision. For POEM and `auto`: the most memory beyond x0, in vectors of
length d, as tracemalloc counts it. The objective reads a thousand coordinates.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import time
import tracemalloc
from typing import Any

import numpy as np

import poem_cma as pc
from poem_cma.run.oracle import Oracle
from poem_cma.run.randomness import Streams


def objective(x: np.ndarray) -> float:
    """Reads a thousand coordinates."""
    return float(np.abs(x[:1000]).sum())


def bare(d: int, dtype: Any, steps: int) -> float:
    """Seconds of a step of the bare necessities; the median."""
    rng = np.random.default_rng(0)
    x, taken = np.ones(d, dtype), []
    for _ in range(steps):
        start = time.process_time()
        v = rng.standard_normal(d, dtype)
        v /= np.sqrt(np.vdot(v, v))
        change = objective(x + 0.1 * v) - objective(x - 0.1 * v)
        x = x - (0.1 * change) * v
        taken.append(time.process_time() - start)
    return float(np.median(taken))


def library(d: int, dtype: Any, steps: int) -> float:
    """Seconds of a step of POEM; the median."""
    opt = pc.Optimizer(np.ones(d, dtype), method="poem", budget=2 * steps + 2, seed=0)
    oracle = Oracle(objective, None, Streams(0))
    taken = []
    while True:
        start = time.process_time()
        if not opt.answer(oracle.evaluate):
            return float(np.median(taken[1:]))
        taken.append(time.process_time() - start)


def memory(method: str, d: int, dtype: Any, budget: int) -> float:
    """The most memory of a whole run beyond x0, in vectors."""
    x0 = np.ones(d, dtype)
    tracemalloc.start()
    pc.minimize(objective, x0, method=method, budget=budget, seed=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / x0.nbytes


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    print(f"{'d':>10}{'dtype':>9}{'bare ms':>10}{'POEM ms':>10}{'ratio':>7}   a step")
    for d in (10**5, 10**6, 10**7):
        for dtype in ("float64", "float32"):
            pairs = [
                (bare(d, dtype, arguments.steps), library(d, dtype, arguments.steps)) for _ in range(arguments.rounds)
            ]
            ratio = float(np.median([ours / least for least, ours in pairs]))
            least, ours = (1e3 * min(times) for times in zip(*pairs, strict=True))
            rows.append({"d": d, "dtype": dtype, "bare_ms": least, "poem_ms": ours, "ratio": ratio})
            print(f"{d:>10}{dtype:>9}{least:>10.2f}{ours:>10.2f}{ratio:>7.2f}", flush=True)
    print(f"{'method':>10}{'d':>10}{'dtype':>9}{'vectors':>9}{'MiB':>8}   the most memory beyond x0")
    for method, d, dtype in (("poem", 10**6, "float64"), ("poem", 10**7, "float32"), ("auto", 10**5, "float64"),
                             ("auto", 10**6, "float32")):  # fmt: skip
        vectors = memory(method, d, dtype, 300 if method == "auto" else 60)
        mib = vectors * d * np.dtype(dtype).itemsize / 2**20
        rows.append({"method": method, "d": d, "dtype": dtype, "vectors": vectors, "MiB": mib})
        print(f"{method:>10}{d:>10}{dtype:>9}{vectors:>9.1f}{mib:>8.0f}", flush=True)
    place = pathlib.Path("results")
    place.mkdir(exist_ok=True)
    (place / "scale.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
