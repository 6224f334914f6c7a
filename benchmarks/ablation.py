"""What each part of `auto` is worth: the gap without it over the gap with it, on all problems.

    python benchmarks/ablation.py [--calls 5000] [--seeds 2] [--problems a,b] [--processes 2]

Prints a table and writes results/ablation.json. A number above 1 means that the part helps.
"""

from __future__ import annotations

import argparse
import json
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

import poem_cma as pc
from poem_cma import problems

PARTS: dict[str, dict[str, bool]] = {
    "walks": {"walks": False},
    "bisection": {"bisection": False},
    "digits": {"digits": False},
    "directions": {"directions": False},
    "base": {"base": False},
    "flat": {"flat": False},
    "common": {"common": False},
    "subspace": {"subspace": False},
    "metric": {"metric": False},
    "ray": {"ray": False},
    "rescaling": {"rescaling": False},
    "units": {"units": False},
    "race": {"race": False},
    "newton": {"newton": False},
    "averaging": {"averaging": False},
    "replay": {"replay": False},
    "check": {"check": False},
    "pick": {"pick": False},
    "descent only": {"dual": False},
    "dual averaging only": {"dual": True},
}
FLOOR = 1e-6  # smaller gaps are as good as none


def gap(problem: problems.Problem, settings: dict[str, bool], calls: int, seeds: int) -> float:
    """The median gap over the seeds."""
    method = pc.methods.auto(**settings)
    fun = problem.with_noise(np.random.default_rng(5)) if not problem.shareable else None
    gaps = []
    for seed in range(seeds):
        if fun is None:
            x = problem.solve(method=method, budget=calls, seed=seed, evaluate=0).x
        else:
            x = pc.minimize(
                fun, problem.x0, domain=problem.domain, method=method, budget=calls, seed=seed, vectorized=True
            ).x
        gaps.append(min(problem.gap(x), 1.0))
    return max(float(np.median(gaps)), FLOOR)


def row(name: str, calls: int, seeds: int) -> tuple[str, float, list[float]]:
    """A problem: the gap with everything, and without each part."""
    problem = problems.load(name)
    whole = gap(problem, {}, calls, seeds)
    return name, whole, [gap(problem, settings, calls, seeds) for settings in PARTS.values()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--problems", default=",".join(problems.names()))
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args()
    print(f"{asked.calls:,} calls, median of {asked.seeds} seeds\n")
    print("| problem | gap | " + " | ".join(PARTS) + " |")
    print("|---|---|" + "---|" * len(PARTS))
    factors, kept = [], {}
    with ProcessPoolExecutor(asked.processes) as pool:
        work = partial(row, calls=asked.calls, seeds=asked.seeds)
        for name, whole, without in pool.map(work, asked.problems.split(",")):
            ratios = [w / whole for w in without]
            factors.append(ratios)
            kept[name] = {"gap": whole} | dict(zip(PARTS, without, strict=True))
            print(f"| {name} | {whole:.2g} | " + " | ".join(f"{r:.2f}" for r in ratios) + " |", flush=True)
    means = np.exp(np.log(factors).mean(axis=0))
    print("| geometric mean | | " + " | ".join(f"{m:.2f}" for m in means) + " |")
    Path("results").mkdir(exist_ok=True)
    Path("results/ablation.json").write_text(json.dumps(kept, indent=1))


if __name__ == "__main__":
    main()
