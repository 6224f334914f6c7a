"""What low precision costs: the loss curve with bfloat16 weights beside float32, and averages kept in fewer bits.

    python benchmarks/torch_precision.py --workers 2 --out results/torch

The first table: the loss on all examples after so many forward passes, median over the seeds. "bfloat16 weights" keeps
weights and activations in bfloat16 and the loss in float32; "computed in float32" keeps the weights in bfloat16 and
widens them in the forward pass. The second: the loss of the averaged weights at the end of one and the same run, by how
the average is kept, beside the loss of the last weights (no average).
"""

from __future__ import annotations

import argparse
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


def run(job: tuple[str, str, str | None, int]) -> dict[str, Any]:
    """One run: losses at the marks, of the weights and of their average."""
    torch.set_num_threads(1)
    name, precision, average, seed = job
    dtype = getattr(torch, precision.split()[0])
    task = torch_tasks.make(name, seed, dtype)
    if precision.endswith("computed in float32"):
        task = task._replace(model=Widened(task.model))
    draw = task.batches(100 + seed)
    opt = Poem(task.model.named_parameters(), seed=seed, average=average)
    losses, averages = [], []
    for mark in MARKS:
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
    rows = [r[column] for r in results if all(r[k] == v for k, v in match.items())]
    return [statistics.median(values) for values in zip(*rows, strict=True)]


def tables(results: list[dict[str, Any]]) -> str:
    lines = [f"| task | weights | {' | '.join(map(str, MARKS))} |", "|---" * (2 + len(MARKS)) + "|"]
    for task in TASKS:
        for precision in PRECISIONS:
            curve = medians(results, "losses", task=task, precision=precision, average=None)
            lines.append(f"| {task} | {precision} | {' | '.join(f'{v:.3f}' for v in curve)} |")
    marks = [2, 4, 6]
    lines += ["", f"| task | weights | average | {' | '.join(str(MARKS[k]) for k in marks)} |", "|---" * 6 + "|"]
    for task in TASKS:
        for precision in PRECISIONS[:2]:
            for average in AVERAGES:
                curve = medians(results, "of", task=task, precision=precision, average=average)
                kept = average or "none: the last weights"
                lines.append(f"| {task} | {precision} | {kept} | {' | '.join(f'{curve[k]:.3f}' for k in marks)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("results/torch"))
    options = parser.parse_args()
    jobs = [
        (task, precision, average, seed)
        for task in sorted(TASKS, key="transformer".__ne__)  # the slowest first
        for k, precision in enumerate(PRECISIONS)
        for average in (AVERAGES if k < 2 else AVERAGES[:1])
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
