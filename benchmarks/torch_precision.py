"""What low precision costs: the loss curve with bfloat16 weights beside float32, and averages kept in fewer bits.

    python benchmarks/torch_precision.py --workers 2 --out results/torch

The first table: the loss on all examples after so many forward passes, median over the seeds. "bfloat16 weights" keeps
weights and activations in bfloat16 and the loss in float32; "computed in float32" keeps the weights in bfloat16 and
widens them in the forward pass. The second: the loss of the averaged weights at the end of one and the same run, by how
the average is kept, beside the loss of the last weights (no average).
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import pathlib
import statistics
from typing import Any

import torch
import torch_tasks
from torch import Tensor, nn

from poem_cma.torch import Poem

MARKS = (500, 1000, 2000, 3000, 4000, 6000, 8000)
PRECISIONS = ("float32", "bfloat16 weights", "bfloat16 weights, computed in float32", "float16 weights")
AVERAGES = (None, "float32", "bfloat16", "float16")
TASKS = ("mlp", "transformer", "finetune")


class Widened(nn.Module):
    """A module whose parameters are widened to float32 on the way."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        wide = {name: p.float() for name, p in self.inner.named_parameters()}
        out: Tensor = torch.func.functional_call(self.inner, wide, (x.float(),))
        return out


def run(job: tuple[str, str, str | None, int, int]) -> dict[str, Any]:
    """One run: losses at the marks, of the weights and of their average."""
    torch.set_num_threads(1)
    name, precision, average, seed, longest = job
    dtype = getattr(torch, precision.split()[0])
    task = torch_tasks.make(name, seed, dtype)
    if precision.endswith("computed in float32"):
        task = task._replace(model=Widened(task.model))
    draw = task.batches(100 + seed)
    opt = Poem(task.model.named_parameters(), seed=seed, average=average)
    losses, averages = [], []
    for mark in (m for m in MARKS if m <= longest):
        while opt.now.forwards < mark:
            opt.step(draw())
        losses.append(task.loss())
        if average is None:
            averages.append(losses[-1])
        else:
            with opt.averaged():
                averages.append(task.loss())
    return {"task": name, "precision": precision, "average": average, "seed": seed, "losses": losses, "of": averages}


def medians(results: list[dict[str, Any]], column: str, **match: Any) -> list[float]:
    """At each mark that all runs reached; empty where there is no run."""
    rows = [r[column] for r in results if all(r[k] == v for k, v in match.items())]
    return [statistics.median(values) for values in zip(*rows, strict=False)]


def tables(results: list[dict[str, Any]]) -> str:
    lines = [f"| task | weights | {' | '.join(map(str, MARKS))} |", "|---" * (2 + len(MARKS)) + "|"]
    for task, precision in itertools.product(TASKS, PRECISIONS):
        if curve := medians(results, "losses", task=task, precision=precision, average=None):
            lines.append(f"| {task} | {precision} | {cells(curve)} |")
    lines += ["", f"| task | weights | average | {' | '.join(map(str, MARKS))} |", "|---" * (3 + len(MARKS)) + "|"]
    for task, precision, average in itertools.product(TASKS, PRECISIONS[:2], AVERAGES):
        if curve := medians(results, "of", task=task, precision=precision, average=average):
            lines.append(f"| {task} | {precision} | {average or 'none: the last weights'} | {cells(curve)} |")
    return "\n".join(lines)


def cells(curve: list[float]) -> str:
    return " | ".join(f"{curve[k]:.3f}" if k < len(curve) else "" for k in range(len(MARKS)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--part", choices=("all", "curves"), default="all", help="curves: without the averages")
    parser.add_argument("--longest", type=int, default=MARKS[-1], help="forward passes")
    parser.add_argument("--table", type=pathlib.Path, nargs="+", help="print the tables of stored results")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("results/torch"))
    options = parser.parse_args()
    if options.table:
        print(tables([r for path in options.table for r in json.loads(path.read_text())]))
        return
    jobs = [
        (task, precision, average, seed, options.longest)
        for task in sorted(options.tasks.split(","), key="transformer".__ne__)  # the slowest first
        for k, precision in enumerate(PRECISIONS)
        for average in (AVERAGES if k < 2 and options.part == "all" else AVERAGES[:1])
        for seed in range(options.seeds)
    ]
    options.out.mkdir(parents=True, exist_ok=True)
    results = []
    with multiprocessing.get_context("spawn").Pool(options.workers) as pool:
        for result in pool.imap_unordered(run, jobs):
            results.append(result)
            (options.out / "torch_precision.json").write_text(json.dumps(results))
            if len(results) % 10 == 0:
                print(f"{len(results)} of {len(jobs)} runs", flush=True)
    print(tables(results))


if __name__ == "__main__":
    main()
