"""Forward passes to a given loss: `poem_cma.torch.Poem`, with nothing set, against MeZO tuned on a grid.

    python benchmarks/torch_quality.py --workers 2 --out results/torch        # about an hour on two cores
    python benchmarks/torch_quality.py --tasks mlp --part poem
    python benchmarks/torch_quality.py --table results/torch/torch_quality.jsonl

The loss is the one on all examples, of the weights as they are, looked at every 100 forward passes (these looks are not
counted). MeZO draws normal directions, takes a central pair a step, and is given the pair of learning rate and
perturbation whose median over the seeds is best; a run that ends in NaN or never gets there counts as infinite.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import pathlib
import statistics
import time
from math import inf, isfinite
from typing import Any

import torch
import torch_tasks
from torch import nn

from poem_cma.torch import Poem

TARGETS = {"mlp": 0.5, "transformer": 1.0, "finetune": 0.3}
LONGEST = {"mlp": 16_000, "transformer": 14_000, "finetune": 8_000}
RATES = {
    "mlp": (1.4e-3, 2e-3, 2.8e-3, 3.4e-3, 4e-3),
    "transformer": (5e-4, 7e-4, 1e-3, 1.4e-3, 2e-3, 2.8e-3),
    "finetune": (7e-4, 1e-3, 1.4e-3, 2e-3, 2.8e-3),
}
PERTURBATIONS = (1e-3, 1e-2)
SEEDS = 5
EVERY = 100

CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "shaped by learned energies": {"shaped": True},
    "8 directions": {"directions": 8},
    "1 direction (central pairs)": {"directions": 1},
    "scale by distance (POEM)": {"directions": 1, "scale": "distance"},
    "bfloat16 weights": {"dtype": "bfloat16"},
}


class Mezo:
    """Normal directions in place on one flat vector, exact to rounding in float32."""

    def __init__(self, model: nn.Module, rate: float, epsilon: float, seed: int) -> None:
        self.rate, self.epsilon, self.rng = rate, epsilon, torch.Generator().manual_seed(seed)
        self.x = torch.cat([p.detach().flatten() for p in model.parameters()])
        self.work = self.x.clone()
        at = 0
        for p in model.parameters():
            p.data = self.work[at : at + p.numel()].view(p.shape)
            at += p.numel()

    def step(self, closure: Any) -> None:
        z = torch.randn(len(self.x), generator=self.rng)
        with torch.no_grad():
            self.work.copy_(self.x + self.epsilon * z)
            plus = float(closure())
            self.work.copy_(self.x - self.epsilon * z)
            minus = float(closure())
            self.x -= self.rate * (plus - minus) / (2 * self.epsilon) * z
            self.work.copy_(self.x)


def run(job: tuple[str, str, dict[str, Any], int]) -> dict[str, Any]:
    """One run: the curve of (forward passes, loss, loss of the average)."""
    torch.set_num_threads(1)
    kind, name, options, seed = job
    options = dict(options)
    dtype = getattr(torch, options.pop("dtype", "float32"))
    task = torch_tasks.make(name, seed, dtype)
    draw = task.batches(100 + seed)
    curve: list[tuple[int, float, float]] = []
    spent, look = 0, EVERY
    if kind == "mezo":
        mezo = Mezo(task.model, options["rate"], options["epsilon"], seed)
    else:
        opt = Poem(task.model.named_parameters(), seed=seed, **options)
    while spent < LONGEST[name]:
        if kind == "mezo":
            mezo.step(draw())
            spent += 2
        else:
            opt.step(draw())
            spent = opt.now.forwards
        if spent >= look:
            look += EVERY
            loss = task.loss()
            average = loss
            if kind == "poem":
                with opt.averaged():
                    average = task.loss()
            curve.append((spent, loss, average))
            if not isfinite(loss) or loss > 1e4 or max(loss, average) <= TARGETS[name]:
                break
    return {"kind": kind, "task": name, "options": job[2], "seed": seed, "curve": curve}


def reached(curve: list[tuple[int, float, float]], target: float, column: int = 1) -> float:
    """Forward passes until the loss was at most the target."""
    return next((float(row[0]) for row in curve if row[column] <= target), inf)


def table(results: list[dict[str, Any]]) -> str:
    """The median over seeds, with the least and the most."""
    lines = [
        "| task | loss | method | forward passes (least to most of the seeds) | of the average |",
        "|---|---|---|---|---|",
    ]

    def cell(values: list[float]) -> str:
        low, mid, high = (
            f"{v:.0f}" if isfinite(v) else "never" for v in (min(values), statistics.median(values), max(values))
        )
        return f"{mid} ({low} to {high})"

    for task, target in TARGETS.items():
        runs: dict[tuple[str, str], list[list[tuple[int, float, float]]]] = {}
        for r in results:
            if r["task"] == task:
                runs.setdefault((r["kind"], json.dumps(r["options"])), []).append(r["curve"])
        mezo = {o: [reached(c, target) for c in cs] for (kind, o), cs in runs.items() if kind == "mezo"}
        if mezo:
            best = min(mezo, key=lambda o: (statistics.median(mezo[o]), max(mezo[o])))
            tuned = json.loads(best)
            name = f"MeZO, tuned: rate {tuned['rate']:g}, perturbation {tuned['epsilon']:g}"
            lines.append(f"| {task} | {target} | {name} | {cell(mezo[best])} | |")
            worst = sum(1 for v in mezo.values() if not isfinite(statistics.median(v)))
            lines.append(f"| {task} | {target} | MeZO, {worst} of the {len(mezo)} settings of its grid | never | |")
        for name, options in CONFIGURATIONS.items():
            curves = runs.get(("poem", json.dumps(options)))
            if curves:
                now, mean = ([reached(c, target, k) for c in curves] for k in (1, 2))
                lines.append(f"| {task} | {target} | Poem, {name} | {cell(now)} | {cell(mean)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", default="transformer,mlp,finetune")
    parser.add_argument("--part", choices=("all", "poem", "mezo"), default="all")
    parser.add_argument("--configurations", default=",".join(CONFIGURATIONS))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("results/torch"))
    parser.add_argument(
        "--table", type=pathlib.Path, nargs="+", help="print the table of stored results, and run nothing"
    )
    options = parser.parse_args()
    if options.table:
        print(table([json.loads(line) for path in options.table for line in path.read_text().splitlines()]))
        return
    jobs: list[tuple[str, str, dict[str, Any], int]] = []
    for task in options.tasks.split(","):
        for seed in range(options.seeds):
            if options.part != "mezo":
                jobs += [("poem", task, CONFIGURATIONS[c], seed) for c in options.configurations.split(",")]
            if options.part != "poem":
                jobs += [("mezo", task, {"rate": r, "epsilon": e}, seed) for r in RATES[task] for e in PERTURBATIONS]
    options.out.mkdir(parents=True, exist_ok=True)
    start, results = time.perf_counter(), []
    with (
        multiprocessing.get_context("spawn").Pool(options.workers) as pool,
        (options.out / "torch_quality.jsonl").open("w") as f,
    ):
        for result in pool.imap_unordered(run, jobs):
            results.append(result)
            f.write(json.dumps(result) + "\n")
            f.flush()
            if len(results) % 20 == 0:
                print(f"{len(results)} of {len(jobs)} runs, {time.perf_counter() - start:.0f} s", flush=True)
    print(table(results))


if __name__ == "__main__":
    main()
