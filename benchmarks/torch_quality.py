"""Forward passes to a given loss: `poem_cma.torch.Poem`, with nothing set, against MeZO tuned on a grid.

    python benchmarks/torch_quality.py --workers 2 --out results/torch        # about an hour on two cores
    python benchmarks/torch_quality.py --tasks mlp --part poem
    python benchmarks/torch_quality.py --held-out --device cuda --workers 16 --seeds 16 --out results/torch-held-out
    python benchmarks/torch_quality.py --table results/torch/torch_quality.jsonl

`--held-out` takes seeds that nothing was chosen on, and all tasks. With `--device`, the runs of a task are made at
once, as one batch of networks (see `torch_many.py`): on a GPU, all seeds and settings take little longer than one.

The loss is the one on all examples, of the weights as they are, looked at every 100 forward passes (these looks are not
counted). MeZO draws normal directions, takes a central pair a step, and is given the pair of learning rate and
perturbation whose median over the seeds is best; a run that ends in NaN or never gets there counts as infinite.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import pathlib
import statistics
import time
from collections.abc import Iterable
from math import inf, isfinite
from typing import Any, TextIO

import torch
import torch_many
import torch_tasks
from torch import nn

from poem_cma.torch import Poem

# The losses to reach and the passes to give up after; those of the held-out tasks were fixed from what 500 steps of
# Adam reach (0.42, 0.03, 0.06; 0.017, 0.003, 0.10, 0.43, 0.12) before any method without gradients was run on them.
TARGETS = {
    "mlp": 0.5, "transformer": 1.0, "finetune": 0.3, "gru": 1.3, "deep": 0.5, "inverted": 0.5,
    "cancer": 0.15, "wine": 0.2, "conv": 0.7, "diabetes": 0.5, "lora": 1.0,
}  # fmt: skip
LONGEST = {
    "mlp": 16_000, "transformer": 14_000, "finetune": 8_000, "gru": 12_000, "deep": 12_000, "inverted": 8_000,
    "cancer": 12_000, "wine": 12_000, "conv": 16_000, "diabetes": 12_000, "lora": 12_000,
}  # fmt: skip
RATES = {  # around what was best on other seeds, from 5e-4 to 3.2e-2
    "mlp": (2e-3, 2.8e-3, 3.4e-3, 4e-3),
    "transformer": (5e-4, 7e-4, 1e-3, 1.4e-3, 2e-3, 2.8e-3),
    "finetune": (1e-3, 1.4e-3, 1.7e-3, 2e-3, 2.4e-3, 2.8e-3),
    "gru": (4e-3, 5.6e-3, 8e-3, 1.1e-2, 1.6e-2),
    "deep": (7e-4, 1e-3, 1.4e-3, 2e-3),
    "inverted": (5e-4, 1e-3, 2e-3, 4e-3),
    "cancer": (1.1e-2, 1.6e-2, 2.2e-2, 3.2e-2, 4.5e-2),
    "wine": (1.1e-2, 1.6e-2, 2.2e-2, 3.2e-2, 4.5e-2),
    "conv": (1.4e-3, 2e-3, 2.8e-3, 4e-3),
    "diabetes": (2e-3, 2.8e-3, 4e-3, 5.6e-3, 8e-3),
    "lora": (1.4e-3, 2e-3, 2.8e-3, 4e-3, 5.6e-3),
}
PERTURBATIONS = (1e-3, 1e-2)
HELD_OUT = "gru,deep,inverted,cancer,wine,conv,diabetes,lora"
SEEDS = 5
FRESH = 3000  # the first seed of a held-out run; 1000 and 2000 were those of earlier ones
EVERY = 100

CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "shaped by learned energies": {"shaped": True},
    "4 directions": {"directions": 4},
    "1 direction (central pairs)": {"directions": 1},
    "scale by distance (POEM)": {"directions": 1, "scale": "distance"},
    "dual averaging (with --device)": {"dual": True},
    "bfloat16 weights": {"dtype": "bfloat16"},
    "biases and norms as far as matrices": {"constants": {"_VECTORS": 1.0}},
    "first steps shrink as G grows": {"constants": {"_SETTLING": 0}},
    "looks weigh twice as much": {"constants": {"_NEW": (0.2, 0.1)}},
    "no step taken back": {"constants": {"_RISE": 1e9}},
    "long gradients not shortened": {"constants": {"_CLIP": 1e9}},
    "leaps not limited": {"constants": {"_LEAP": 1e9}},
    "neither": {"constants": {"_CLIP": 1e9, "_LEAP": 1e9}},
    "the rule before": {"directions": 4, "constants": {"_SETTLING": 0, "_NEW": (0.2, 0.1)}},
}

Curve = list[tuple[Any, ...]]  # forward passes, the loss, and (made one by one) the loss of the average
Job = tuple[str, str, dict[str, Any], int]  # poem or mezo, task, options, seed


class Mezo:
    """Normal directions in place on one flat vector, exact to rounding in float32."""

    def __init__(self, model: nn.Module, rate: float, epsilon: float, seed: int) -> None:
        parameters = [p for p in model.parameters() if p.requires_grad]
        self.x = torch.cat([p.detach().flatten() for p in parameters])
        self.rate, self.epsilon = rate, epsilon
        self.rng = torch.Generator(self.x.device).manual_seed(seed)
        self.work = self.x.clone()
        at = 0
        for p in parameters:
            p.data = self.work[at : at + p.numel()].view(p.shape)
            at += p.numel()

    def step(self, closure: Any) -> None:
        z = torch.randn(len(self.x), generator=self.rng, device=self.x.device)
        with torch.no_grad():
            self.work.copy_(self.x + self.epsilon * z)
            plus = float(closure())
            self.work.copy_(self.x - self.epsilon * z)
            minus = float(closure())
            self.x -= self.rate * (plus - minus) / (2 * self.epsilon) * z
            self.work.copy_(self.x)


def run(job: Job) -> dict[str, Any]:
    """One run: the curve of (forward passes, loss, loss of the average)."""
    torch.set_num_threads(1)
    kind, name, options, seed = job
    options = dict(options)
    with torch_many.changed(options.pop("constants", {})):
        return _run(kind, name, options, seed, job[2])


def _run(kind: str, name: str, options: dict[str, Any], seed: int, named: dict[str, Any]) -> dict[str, Any]:
    dtype = getattr(torch, options.pop("dtype", "float32"))
    task = torch_tasks.make(name, seed, dtype)
    draw = task.batches(100 + seed)
    curve: Curve = []
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
    return {"kind": kind, "task": name, "options": named, "seed": seed, "curve": curve}


def reached(curve: Curve, target: float, column: int = 1) -> float:
    """Forward passes until the loss was at most the target."""
    return next((float(row[0]) for row in curve if len(row) > column and row[column] <= target), inf)


def by_setting(results: list[dict[str, Any]], task: str, kind: str) -> dict[str, list[Curve]]:
    """The curves of all seeds, by the options as text."""
    runs: dict[str, list[Curve]] = {}
    for r in results:
        if r["task"] == task and r["kind"] == kind:
            runs.setdefault(json.dumps(r["options"]), []).append(r["curve"])
    return runs


def best_setting(runs: dict[str, list[Curve]], target: float) -> str:
    """The least median, then the least maximum; where none gets there, the least loss at the end."""

    def order(setting: str) -> tuple[float, float, float]:
        passes = [reached(c, target) for c in runs[setting]]
        return statistics.median(passes), max(passes), statistics.median(end(c) for c in runs[setting])

    return min(runs, key=order)


def end(curve: Curve) -> float:
    return curve[-1][1] if curve and isfinite(curve[-1][1]) else inf


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
        never = sum(1 for v in values if not isfinite(v))
        return f"{mid} ({low} to {high}{f'; {never} of {len(values)} never' if 0 < never < len(values) else ''})"

    for task, target in TARGETS.items():
        runs = by_setting(results, task, "mezo")
        if runs:
            best = best_setting(runs, target)
            tuned, reach = json.loads(best), {o: [reached(c, target) for c in cs] for o, cs in runs.items()}
            name = f"MeZO, tuned: rate {tuned['rate']:.2g}, perturbation {tuned['epsilon']:g}"
            lines.append(f"| {task} | {target} | {name} | {cell(reach[best])} | |")
            worst = sum(1 for v in reach.values() if not isfinite(statistics.median(v)))
            lines.append(f"| {task} | {target} | MeZO, {worst} of the {len(reach)} settings of its grid | never | |")
        runs = by_setting(results, task, "poem")
        for name, options in CONFIGURATIONS.items():
            curves = runs.get(json.dumps(options))
            if curves:
                now, mean = ([reached(c, target, k) for c in curves] for k in (1, 2))
                of = cell(mean) if len(curves[0][0]) > 2 else ""
                lines.append(f"| {task} | {target} | Poem, {name} | {cell(now)} | {of} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", help="by default transformer,mlp,finetune, and with --held-out the others too")
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--part", choices=("all", "poem", "mezo"), default="all")
    parser.add_argument("--configurations", help="by default all; with --held-out the default alone")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--first", type=int, help=f"the first seed; by default 0, and with --held-out {FRESH}")
    parser.add_argument("--device", choices=("cpu", "cuda"), help="the runs of a task at once, there")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("results/torch"))
    parser.add_argument(
        "--table", type=pathlib.Path, nargs="+", help="print the table of stored results, and run nothing"
    )
    options = parser.parse_args()
    if options.table:
        print(table([json.loads(line) for path in options.table for line in path.read_text().splitlines()]))
        return
    tasks = (options.tasks or "transformer,mlp,finetune" + (f",{HELD_OUT}" if options.held_out else "")).split(",")
    first = options.first if options.first is not None else FRESH if options.held_out else 0
    seeds = range(first, first + options.seeds)
    possible = [c for c, o in CONFIGURATIONS.items() if ("dtype" if options.device else "dual") not in o]
    chosen = options.configurations or ("default" if options.held_out else ",".join(possible))
    jobs: list[Job] = []
    if options.part != "mezo":
        jobs += [("poem", task, CONFIGURATIONS[c], s) for task in tasks for s in seeds for c in chosen.split(",")]
    if options.part != "poem":
        jobs += [job for task in tasks for job in grid(task, RATES[task], PERTURBATIONS, seeds)]
    options.out.mkdir(parents=True, exist_ok=True)
    with (
        multiprocessing.get_context("spawn").Pool(options.workers) as pool,
        (options.out / "torch_quality.jsonl").open("w") as f,
    ):
        results = made(pool, jobs, f, options.device)
    print(table(results))


def grid(task: str, rates: Iterable[float], perturbations: Iterable[float], seeds: Iterable[int]) -> list[Job]:
    return [
        ("mezo", task, {"rate": r, "epsilon": e}, s)
        for r, e, s in itertools.product(rates, perturbations, seeds)
    ]  # fmt: skip


def made(pool: Any, jobs: list[Job], f: TextIO, device: str | None) -> list[dict[str, Any]]:
    """Run, store and show progress."""
    start, results = time.perf_counter(), []
    for some in _portions(pool, jobs, device):
        results += some
        f.writelines(json.dumps(result) + "\n" for result in some)
        f.flush()
        if device or len(results) % 20 == 0:
            print(f"{len(results)} of {len(jobs)} runs, {time.perf_counter() - start:.0f} s", flush=True)
    return results


def _portions(pool: Any, jobs: list[Job], device: str | None) -> Iterable[list[dict[str, Any]]]:
    if device is None:
        return ([result] for result in pool.imap_unordered(run, jobs))
    parts = torch_many.split(jobs).items()
    runs = [torch_many.Runs(kind, t, each, TARGETS[t], LONGEST[t], device) for (kind, t, _), each in parts]
    portions: Iterable[list[dict[str, Any]]] = pool.imap_unordered(torch_many.run, runs)
    return portions


if __name__ == "__main__":
    main()
