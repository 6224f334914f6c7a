"""Fine-tune a small language model: `poem_cma.torch.Poem`, with nothing set, beside MeZO on a grid of rates.

    python benchmarks/torch_lm.py --device cuda                  # three precisions, full weights and LoRA, three seeds
    python benchmarks/torch_lm.py --size cpu --passes 4000 --seeds 1 --kinds full
    python benchmarks/torch_lm.py --table results/torch-lm/torch_lm.jsonl

A byte-level transformer is pretrained with Adam on the source code of Python's standard library, and fine-tuned on the
documentation that `pydoc` carries. The loss is the mean cross entropy of a byte, in nats, on text that is not used for
training, in the precision of the run. A run of MeZO draws normal directions and takes a central pair a step; its rate
is the one of six whose mean loss at the end, over the seeds, is lowest.
"""

from __future__ import annotations

import argparse
import itertools
import json
import pathlib
import statistics
import sysconfig
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from math import isfinite
from pydoc_data import topics
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, scaled_dot_product_attention
from torch_quality import Mezo
from torch_tasks import Lora

from poem_cma.torch import Poem

PRECISIONS = "float32", "autocast", "bfloat16"
RATES = {  # around the best of each kind, a factor of about three apart
    "full": (3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3),
    "lora": (3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2),
}
PERTURBATION = 1e-3
LOOKS = 20  # points of a curve


class Size(NamedTuple):
    """Of the model, of its batches and of its pretraining."""

    width: int
    layers: int
    context: int  # bytes
    batch: int  # rows
    pretraining: int  # steps of Adam


SIZES = {"gpu": Size(256, 4, 128, 16, 2000), "cpu": Size(64, 2, 64, 16, 6000), "cut": Size(64, 2, 64, 8, 400)}


class Layer(nn.Module):
    """Attention and a perceptron, each beside a shortcut."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = max(1, width // 32)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        b, t, w = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        x = x + self.out(scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, w))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Model(nn.Module):
    """The logits of the next byte."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.embed = nn.Embedding(256, size.width)
        self.places = nn.Parameter(0.02 * torch.randn(size.context, size.width))
        self.layers = nn.ModuleList(Layer(size.width) for _ in range(size.layers))
        self.norm, self.head = nn.LayerNorm(size.width), nn.Linear(size.width, 256)
        nn.init.normal_(self.embed.weight, std=0.02)

    def forward(self, x: Tensor) -> Tensor:
        h = self.embed(x) + self.places
        for layer in self.layers:
            h = layer(h)
        return self.head(self.norm(h))


def code() -> Tensor:
    """The modules of the standard library, as bytes."""
    files = sorted(pathlib.Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    return as_bytes("\n".join(f.read_text(errors="replace") for f in files))


def documentation() -> Tensor:
    """The help texts of the language, as bytes."""
    return as_bytes("\n".join(topics.topics[name] for name in sorted(topics.topics)))


def as_bytes(text: str) -> Tensor:
    return torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8)


class Text:
    """Training text, and the tenth at its end for testing."""

    def __init__(self, text: Tensor, size: Size, device: str) -> None:
        self.size, cut = size, len(text) * 9 // 10
        self.train = text[:cut].to(device)
        rows = (len(text) - cut) // (size.context + 1)
        test = text[cut : cut + rows * (size.context + 1)].view(rows, -1).to(device)
        self.test = test[:: max(1, rows // 128)]

    def batch(self, rng: torch.Generator) -> Tensor:
        starts = torch.randint(len(self.train) - self.size.context - 1, (self.size.batch, 1), generator=rng)
        places = starts.to(self.train.device) + torch.arange(self.size.context + 1, device=self.train.device)
        return self.train[places]


def loss_of(model: nn.Module, rows: Tensor) -> Tensor:
    """Mean cross entropy of the next byte."""
    rows = rows.long()
    logits = model(rows[:, :-1])
    return cross_entropy(logits.float().flatten(0, 1), rows[:, 1:].flatten())


def pretrained(size: Size, device: str) -> nn.Module:
    """By Adam, on code."""
    torch.manual_seed(0)
    model, text = Model(size).to(device), Text(code(), size, device)
    rng = torch.Generator().manual_seed(0)
    adam = torch.optim.Adam(model.parameters(), 2e-3)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(adam, size.pretraining)
    for _ in range(size.pretraining):
        adam.zero_grad()
        loss_of(model, text.batch(rng)).backward()
        adam.step()
        falling.step()
    adam.zero_grad()
    return model


def adapted(model: Model) -> None:
    """Adapters in all layers; everything else is frozen."""
    model.requires_grad_(False)
    for layer in model.layers:
        for part in ("qkv", "out", "up", "down"):
            setattr(layer, part, Lora(getattr(layer, part), rank=8))


def tuned(size: Size, weights: dict[str, Tensor], job: dict[str, Any], passes: int, device: str) -> dict[str, Any]:
    """One run: the curve of (forward passes, test loss)."""
    seed = job["seed"]
    torch.manual_seed(seed)
    model = Model(size)
    model.load_state_dict(weights)
    if job["kind"] == "lora":
        adapted(model)
    model.to(device, torch.bfloat16 if job["precision"] == "bfloat16" else torch.float32)
    text, rng = Text(documentation(), size, device), torch.Generator().manual_seed(seed)

    def precision() -> AbstractContextManager[Any]:
        return torch.autocast(device, torch.bfloat16) if job["precision"] == "autocast" else nullcontext()

    def test() -> float:
        with torch.no_grad(), precision():
            return statistics.mean(float(loss_of(model, rows)) for rows in text.test.split(64))

    def drawn() -> Callable[[], Tensor]:
        rows = text.batch(rng)

        def closure() -> Tensor:
            with precision():
                return loss_of(model, rows)

        return closure

    spent, curve, averaged = 0, [(0, test())], []
    if job["rate"] is None:
        opt = Poem(model, seed=seed)
    else:
        mezo = Mezo(model, job["rate"], PERTURBATION, seed)
    while spent < passes:
        if job["rate"] is None:
            opt.step(drawn())
            spent = opt.now.forwards
        else:
            mezo.step(drawn())
            spent += 2
        if spent >= len(curve) * passes / LOOKS:
            curve.append((spent, test()))
            if job["rate"] is None:
                with opt.averaged():
                    averaged.append((spent, test()))
            if not isfinite(curve[-1][1]):
                break
    return job | {"curve": curve, "averaged": averaged}


def ends(results: list[dict[str, Any]], **wanted: Any) -> list[float]:
    """The losses at the end of the runs that are wanted."""
    found = [r["curve"][-1][1] for r in results if all(r[k] == v for k, v in wanted.items())]
    return [v if isfinite(v) else float("inf") for v in found]


def table(results: list[dict[str, Any]]) -> str:
    """The loss at the end: least, mean and most of the seeds."""
    lines = [
        "| weights | precision | before | MeZO, best rate | its loss | Poem | allowed | Poem, worst seed |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for kind, precision in sorted({(r["kind"], r["precision"]) for r in results}):
        here = {"kind": kind, "precision": precision}
        first = statistics.mean(r["curve"][0][1] for r in results if all(r[k] == v for k, v in here.items()))
        poem = ends(results, **here, rate=None)
        rates = sorted({r["rate"] for r in results if r["rate"] is not None and r["kind"] == kind})
        mean = {rate: statistics.mean(found) for rate in rates if (found := ends(results, **here, rate=rate))}
        row = f"| {kind} | {precision} | {first:.4f} "
        best = min(mean, key=mean.__getitem__, default=None)
        row += f"| {best:g} | {mean[best]:.4f} " if best is not None else "| | "
        row += f"| {statistics.mean(poem):.4f} " if poem else "| "
        row += f"| {mean[best] + 0.1 * (first - mean[best]):.4f} " if best is not None else "| "
        lines.append(row + (f"| {max(poem):.4f} |" if poem else "| |"))
    return "\n".join(lines)


def draw(results: list[dict[str, Any]], path: pathlib.Path) -> None:
    """The curves as a picture: one panel for each kind of weights and precision."""
    from matplotlib import pyplot as plt

    panels = sorted({(r["kind"], r["precision"]) for r in results})
    figure, axes = plt.subplots(1, len(panels), figsize=(3.2 * len(panels), 3.0), squeeze=False, layout="constrained")
    for axis, (kind, precision) in zip(axes[0], panels, strict=True):
        for r in results:
            if (r["kind"], r["precision"]) == (kind, precision):
                mine = r["rate"] is None
                axis.plot(*zip(*r["curve"], strict=True), color="C3" if mine else "0.7", zorder=2 if mine else 1)
        here = [[loss for _, loss in r["curve"]] for r in results if (r["kind"], r["precision"]) == (kind, precision)]
        first, least = max(losses[0] for losses in here), min(min(losses) for losses in here)
        fell = first - least
        axis.set(title=f"{kind}, {precision}", xlabel="forward passes", ylim=(least - 0.1 * fell, first + 0.7 * fell))
    axes[0][0].set_ylabel("test loss (nats a byte)")
    axes[0][0].plot([], [], color="C3", label="Poem, nothing set")
    axes[0][0].plot([], [], color="0.7", label="MeZO, one line for each rate")
    axes[0][0].legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="gpu")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--passes", type=int, default=8000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--kinds", default="full,lora")
    parser.add_argument("--precisions", default=",".join(PRECISIONS))
    parser.add_argument("--part", choices=("all", "poem", "mezo"), default="all")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("results/torch-lm"))
    parser.add_argument("--table", type=pathlib.Path, nargs="+", help="show stored results, and run nothing")
    options = parser.parse_args()
    if options.table:
        results = [json.loads(line) for path in options.table for line in path.read_text().splitlines()]
    else:
        results = made(options)
    print(table(results))
    draw(results, options.out / "torch_lm.png")


def made(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Run, store and show progress."""
    start, results = time.perf_counter(), []
    size = SIZES[options.size]
    weights = {k: v.cpu() for k, v in pretrained(size, options.device).state_dict().items()}
    print(f"pretrained, {time.perf_counter() - start:.0f} s", flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    with (options.out / "torch_lm.jsonl").open("w") as f:
        for kind, precision in itertools.product(options.kinds.split(","), options.precisions.split(",")):
            rates = ((None,) if options.part != "mezo" else ()) + (RATES[kind] if options.part != "poem" else ())
            for rate, seed in itertools.product(rates, range(options.seeds)):
                job = {"kind": kind, "precision": precision, "rate": rate, "seed": seed}
                results.append(tuned(size, weights, job, options.passes, options.device))
                f.write(json.dumps(results[-1]) + "\n")
                f.flush()
                print(f"{job}: {results[-1]['curve'][-1][1]:.4f}, {time.perf_counter() - start:.0f} s", flush=True)
    return results


if __name__ == "__main__":
    main()
