"""What many workers cost in calls, and how busy they are: ``python benchmarks/batch.py [--seeds 3]``.

Two ways to have work for them: steps that are asked ahead (what ``batch="auto"`` takes), or as many independent xi's a
step as there are pairs of workers. Hinge loss on mushrooms over the unit ball, one example a call, 20,000 calls, every
call counted: the value reached, and the share of the workers that has something to do, if every call takes one round
and probes are told in the order in which they were asked. Then, on other problems, the gap that is left after as many
calls, as a share of the gap at x_0. Prints two tables and writes results/batch.json.
"""

from __future__ import annotations

import argparse
import json
import pathlib
from collections import deque
from typing import Any

import numpy as np

import poem_cma as pc
from poem_cma import problems
from poem_cma.workers.workers import auto_ahead

BUDGET = 20_000
OTHERS = (
    "logistic-a9a", "absolute-rank5-of-100", "squared-full-rank-100", "cvar-portfolio", "max-affine",
    "noisy-quadratic",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    seeds = range(parser.parse_args().seeds)
    rows = mushrooms(seeds)
    others = elsewhere(seeds)
    place = pathlib.Path("results")
    place.mkdir(exist_ok=True)
    (place / "batch.json").write_text(json.dumps({"mushrooms": rows, "others": others}, indent=1))


def ways(method: str, workers: int) -> dict[str, dict[str, int]]:
    """The settings that give so many workers something to do."""
    if workers == 1:
        return {"alone": {}}
    ahead = auto_ahead(pc.Workers(workers), pc.methods.by_name(method), BUDGET)
    return {f"ahead {ahead}": {"ahead": ahead}, f"batch {workers // 2}": {"batch": workers // 2}}


def mushrooms(seeds: range) -> list[dict[str, Any]]:
    """The value reached, and how busy workers are."""
    A, y = pc.datasets.load("mushrooms")
    rows: list[dict[str, Any]] = []
    print(f"{'method':>9} {'workers':>8} {'':>10} {'value':>16} {'busy':>6}")
    for method in ("auto", "poem"):
        for workers in (1, 2, 4, 8, 16, 64):
            for way, settings in ways(method, workers).items():
                values, busy = [], []
                for seed in seeds:
                    opt = pc.Optimizer(
                        np.zeros(A.shape[1]), method=method, domain=pc.Ball(1.0), budget=BUDGET, seed=seed, **settings
                    )
                    busy.append(walk(opt, A, y, seed, workers))
                    values.append(float(np.maximum(0.0, 1.0 - y * (A @ opt.result().x)).mean()))
                row = {
                    "method": method, "workers": workers, "way": way, "value": float(np.mean(values)),
                    "stderr": float(np.std(values, ddof=1) / np.sqrt(len(values))), "busy": float(np.mean(busy)),
                }  # fmt: skip
                rows.append(row)
                value = f"{row['value']:.4f} ± {row['stderr']:.4f}"
                print(f"{method:>9} {workers:>8} {way:>10} {value:>16} {row['busy']:>6.2f}", flush=True)
    return rows


def walk(opt: pc.Optimizer, A: np.ndarray, y: np.ndarray, seed: int, workers: int) -> float:
    """Run to the end; the share of the workers that had something to do."""
    order: deque[list[Any]] = deque()  # probes, and how many of their calls are not made
    calls: deque[list[Any]] = deque()
    rounds = 0
    while True:
        while order and not order[0][1]:
            probe = order.popleft()[0]
            i = int(np.random.default_rng((seed, probe.numbers[0])).integers(len(y)))  # all points share it
            opt.tell(probe, np.maximum(0.0, 1.0 - y[i] * (probe.points @ A[i])))
        while (asked := opt.ask()) is not None:
            order.append([asked, len(asked.points)])
            calls.extend([order[-1]] * len(asked.points))
        if not order:
            return opt.nfev / (rounds * workers)
        rounds += 1
        for _ in range(min(workers, len(calls))):
            calls.popleft()[1] -= 1


def elsewhere(seeds: range) -> list[dict[str, Any]]:
    """The gap left on other problems."""
    rows: list[dict[str, Any]] = []
    print(f"\n{'problem':>22} {'method':>9} {'alone':>10} {'16 workers: ahead':>18} {'batch':>10}")
    for name in OTHERS:
        problem = problems.load(name)
        for method in ("auto", "poem"):
            left = []
            for settings in ({}, *ways(method, 16).values()):
                ends = [
                    problem.solve(method=method, budget=BUDGET, seed=seed, evaluate=0, **settings).x for seed in seeds
                ]
                left.append(float(np.mean([problem.gap(x) for x in ends])) / problem.gap(problem.x0))
            rows.append({"problem": name, "method": method, "left": left})
            print(f"{name:>22} {method:>9} {left[0]:>10.4f} {left[1]:>18.4f} {left[2]:>10.4f}", flush=True)
    return rows


if __name__ == "__main__":
    main()
