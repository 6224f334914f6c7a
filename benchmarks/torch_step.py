"""What a step of `poem_cma.torch.Poem` costs in time and memory, against its floor, on one GPU.

    python benchmarks/torch_step.py --out results/torch          # 124M, 1.3B and 6.7B parameters
    python benchmarks/torch_step.py --sizes 124M --configurations 1

The floor of a step is its forward passes plus its passes over the weights (one read, one write each) at the bandwidth
of a copy measured in the same run. Plain steps are those with just these forward passes (a step may look at the scale,
or take the one before back); the mean holds all. The baseline is the usual implementation: four passes of per-tensor
normal noise.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import pathlib
import statistics
import time
from collections.abc import Callable

import torch
from torch import nn

from poem_cma.torch import Poem, passes

LARGEST_ON_CPU = 2 * 10**9  # parameters: beyond this, an average on the CPU takes minutes to measure
SIZES = {  # layers, width, heads, (batch, tokens)
    "124M": (12, 768, 12, (8, 256)),
    "1.3B": (24, 2048, 16, (4, 256)),
    "6.7B": (32, 4096, 32, (2, 256)),
}

# name, options, forward passes and passes over the weights of a step
CONFIGURATIONS = (
    ("1 direction (plainest)", {"directions": 1, "average": None}, 2, 3),
    ("4 directions, no average", {"directions": 4, "average": None}, 6, 7),
    ("4 directions, average in bf16", {"directions": 4}, 6, 7 + 1.5 / 8),
    ("4 directions, average in float32", {"directions": 4, "average": "float32"}, 6, 7 + 2.5 / 8),
    ("4 directions, shaped", {"directions": 4, "average": None, "shaped": True}, 6, 7),
    ("8 directions, no average", {"average": None}, 10, 11),
    ("8 directions, average in bf16 (default)", {}, 10, 11 + 1.5 / 8),
    ("4 directions, average in bf16 on the CPU", {"directions": 4, "average": "bfloat16@cpu"}, 6, 7),
    ("4 directions, average in float32 on the CPU", {"directions": 4, "average": "float32@cpu"}, 6, 7),
)


class Layer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, w = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        a = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(a.transpose(1, 2).reshape(b, t, w))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Decoder(nn.Module):
    """A causal language model with tied embeddings."""

    def __init__(self, layers: int, width: int, heads: int, vocabulary: int = 50257, context: int = 1024) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.tokens(ids) + self.places.weight[: ids.shape[1]]
        for layer in self.layers:
            x = layer(x)
        logits = self.norm(x) @ self.tokens.weight.T
        return nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1).float(), ids[:, 1:].flatten())


def made(size: str) -> tuple[Decoder, torch.Tensor]:
    layers, width, heads, (batch, tokens) = SIZES[size]
    torch.manual_seed(0)
    with torch.device("cuda"):
        torch.set_default_dtype(torch.bfloat16)
        model = Decoder(layers, width, heads)
        torch.set_default_dtype(torch.float32)
        for p in model.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)
        ids = torch.randint(0, 50257, (batch, tokens))
    return model.eval(), ids


def timed(f: Callable[[], object], repeats: int) -> list[float]:
    """Seconds of each call, the device's work included."""
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        f()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return times


def bandwidth() -> float:
    """Bytes read and written a second by a copy of four gigabytes."""
    a = torch.empty(2 * 2**30, dtype=torch.bfloat16, device="cuda").normal_()
    b = torch.empty_like(a)
    timed(lambda: b.copy_(a), 3)
    return 2 * a.nbytes / statistics.median(timed(lambda: b.copy_(a), 15))


class Usual:
    """The usual implementation: in place, normal noise of one tensor after the other, four times a step."""

    def __init__(self, model: nn.Module, rate: float = 1e-6, epsilon: float = 1e-3) -> None:
        self.parameters, self.rate, self.epsilon = list(model.parameters()), rate, epsilon
        self.device = self.parameters[0].device

    @torch.no_grad()
    def perturb(self, seed: int, factor: float) -> None:
        torch.manual_seed(seed)
        for p in self.parameters:
            z = torch.normal(mean=0.0, std=1.0, size=p.shape, device=p.device, dtype=p.dtype)
            p.data.add_(z, alpha=factor)

    @torch.no_grad()
    def step(self, closure: Callable[[], torch.Tensor], seed: int = 0) -> None:
        self.perturb(seed, self.epsilon)
        plus = closure()
        self.perturb(seed, -2 * self.epsilon)
        minus = closure()
        self.perturb(seed, self.epsilon)
        self.perturb(seed, -self.rate * float(plus - minus) / (2 * self.epsilon))


def steps(opt: Poem, closure: Callable[[], object], repeats: int) -> tuple[list[float], list[int]]:
    """Seconds and forward passes of each step."""
    passed = [opt.now.forwards]
    times = []
    for _ in range(repeats):
        times += timed(lambda: opt.step(closure), 1)
        passed.append(opt.now.forwards)
    return times, [b - a for a, b in itertools.pairwise(passed)]


def pieces(opt: Poem, sweep: float) -> dict[str, float]:
    """What the passes over the weights take by themselves, by the device's clock."""
    out = {}
    for name, row, update in (
        ("probe, 1 direction", [1e-9], None), ("update, 1 direction", [0.0], 1), ("update, 4 directions", [0.0] * 4, 1),
    ):  # fmt: skip
        times = []
        for _ in range(12):
            start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            passes.apply(opt.layout, [row], 0, 1, update=update)
            stop.record()
            torch.cuda.synchronize()
            times.append(start.elapsed_time(stop) * 1e-3)
        out[f"{name} ms"] = 1e3 * statistics.median(times[2:])
        out[f"{name}, in passes of the copy"] = statistics.median(times[2:]) / sweep
    return out


def measure(size: str, rate: float, repeats: int, configurations: int) -> dict[str, object]:
    """All configurations for one model."""
    model, ids = made(size)
    weights = sum(p.nbytes for p in model.parameters())
    count = sum(p.numel() for p in model.parameters())

    def closure() -> torch.Tensor:
        return model(ids)

    with torch.no_grad():
        timed(closure, 5)
        torch.cuda.reset_peak_memory_stats()
        forward = statistics.median(timed(closure, 3 * repeats))
        peak_forward = torch.cuda.max_memory_allocated()
    sweep = 2 * weights / rate
    rows: list[dict[str, object]] = []

    def report(name: str, seconds: float, mean: float, forwards: float, sweeps: float, peak: int, stated: int) -> None:
        floor = forwards * forward + sweeps * sweep
        rows.append(
            {"configuration": name, "ms": 1e3 * seconds, "mean ms": 1e3 * mean, "forwards": forwards, "passes": sweeps,
             "floor ms": 1e3 * floor, "ratio": seconds / floor, "peak GB": peak / 1e9,
             "table GB": (peak_forward + stated) / 1e9, "peak / table": peak / (peak_forward + stated)}
        )  # fmt: skip

    before = [p.detach().clone() for p in model.parameters()]
    parts: dict[str, float] = {}
    for name, options, forwards, sweeps in CONFIGURATIONS[:configurations]:
        if "CPU" in name and count > LARGEST_ON_CPU:
            continue
        opt = Poem(model.named_parameters(), seed=0, **options)  # type: ignore[arg-type]
        for _ in range(9):
            opt.step(closure)
        torch.cuda.reset_peak_memory_stats()
        times, passed = steps(opt, closure, repeats if forwards > 2 else 3 * repeats)
        peak = torch.cuda.max_memory_allocated() - sum(p.nbytes for p in before)
        plain = [t for t, n in zip(times, passed, strict=True) if n == forwards]
        on_gpu = {k: n for k, n in opt.memory().items() if not ("CPU" in name and k == "average")}
        report(
            name, statistics.median(plain), statistics.mean(times), forwards, sweeps, peak, sum(on_gpu.values())
        )  # fmt: skip
        rows[-1]["forwards measured"] = statistics.mean(passed)
        if forwards == 2:
            parts = pieces(opt, sweep)
        del opt
        for p, b in zip(model.parameters(), before, strict=True):
            p.data.copy_(b)
    opt = Poem(model.named_parameters(), seed=0, **CONFIGURATIONS[0][1])  # type: ignore[arg-type]
    graph = opt.captured(closure)
    with torch.no_grad(), opt.layout.elsewhere():
        replay = statistics.median(timed(graph, 3 * repeats))
    times, passed = steps(opt, graph, 3 * repeats)
    plain = [t for t, n in zip(times, passed, strict=True) if n == 2]
    parts["forward as a graph ms"] = 1e3 * replay
    parts["step with the forward pass as a graph ms"] = 1e3 * statistics.median(plain)
    parts["and its ratio"] = statistics.median(plain) / (2 * replay + 3 * sweep)
    del graph, opt
    for p, b in zip(model.parameters(), before, strict=True):
        p.data.copy_(b)
    usual = Usual(model)
    usual.step(closure)
    times = timed(lambda: usual.step(closure), repeats)
    report("usual (normal noise, in place)", statistics.median(times), statistics.mean(times), 2, 3, 0, 0)
    for p, b in zip(model.parameters(), before, strict=True):
        p.data.copy_(b)
    with torch.no_grad():
        for factor in (1e-3, -2e-3, 1e-3):
            usual.perturb(1, factor)
    changed = sum(int((p != b).sum()) for p, b in zip(model.parameters(), before, strict=True))
    return {
        "size": size, "parameters": count, "tokens": list(ids.shape), "forward ms": 1e3 * forward,
        "pass ms": 1e3 * sweep, "parts": parts, "rows": rows, "changed by +e -2e +e": changed / count,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="124M,1.3B,6.7B")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("results/torch"))
    parser.add_argument("--repeats", type=int, default=16, help="a multiple of eight: every eighth step averages")
    parser.add_argument("--configurations", type=int, default=len(CONFIGURATIONS), help="how many, in their order")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("this benchmark needs a GPU that PyTorch can use")
    rate = bandwidth()
    result = {
        "date": datetime.date.today().isoformat(), "gpu": torch.cuda.get_device_name(), "torch": torch.__version__,
        "bandwidth": rate, "sizes": [],
    }  # fmt: skip
    options.out.mkdir(parents=True, exist_ok=True)
    print(f"{result['date']}, {result['gpu']}, torch {torch.__version__}, copy {rate / 1e12:.2f} TB/s\n", flush=True)
    print(
        "| model | configuration | ms a step | floor | ratio | mean ms | peak / table |\n|---|---|---|---|---|---|---|"
    )
    for size in options.sizes.split(","):
        m = measure(size, rate, options.repeats, options.configurations)
        result["sizes"].append(m)  # type: ignore[attr-defined]
        for r in m["rows"]:  # type: ignore[attr-defined]
            print(
                f"| {size} | {r['configuration']} | {r['ms']:.2f} | {r['floor ms']:.2f} | {r['ratio']:.3f} "
                f"| {r['mean ms']:.2f} | {r['peak / table']:.3f} |",
                flush=True,
            )
        for name, value in m["parts"].items():  # type: ignore[attr-defined]
            print(f"| {size} | {name} | {value:.3f} | | | | |")
        print(f"| {size} | +e, -2e, +e in place changes | {100 * m['changed by +e -2e +e']:.0f}% of weights | | | | |")  # type: ignore[operator]
        (options.out / "torch_step.json").write_text(json.dumps(result, indent=1))
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
