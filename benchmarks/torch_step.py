"""What a step of `poem_cma.torch.Poem` costs in time and memory, against its floor, on one GPU.

    python benchmarks/torch_step.py --out results/torch          # verify the kernels, then measure 124M, 1.3B and 6.7B
    python benchmarks/torch_step.py --sizes 124M --quick

The floor of a step is its forward passes plus its passes over the weights (one read, one write each) at the bandwidth
of a copy measured in the same run. The baseline is the usual implementation: four passes of per-tensor normal noise.
"""

from __future__ import annotations

import argparse
import datetime
import json
import pathlib
import statistics
import time
from collections.abc import Callable

import torch
from torch import nn

from poem_cma.torch import Poem, passes, philox
from poem_cma.torch.layout import Layout

SIZES = {  # layers, width, heads, (batch, tokens)
    "124M": (12, 768, 12, (8, 256)),
    "1.3B": (24, 2048, 16, (4, 256)),
    "6.7B": (32, 4096, 32, (2, 256)),
}

# name, options, forward passes and passes over the weights of a step
CONFIGURATIONS = (
    ("1 direction (plainest)", {"directions": 1, "average": None}, 2, 3),
    ("4 directions, no average", {"average": None}, 6, 7),
    ("4 directions, average in bf16 (default)", {}, 6, 7 + 1.5 / 8),
    ("4 directions, average in float32", {"average": "float32"}, 6, 7 + 2.5 / 8),
    ("4 directions, average in float32 on the CPU", {"average": "float32@cpu"}, 6, 7),
    ("4 directions, shaped", {"average": None, "shaped": True}, 6, 7),
    ("8 directions, no average", {"directions": 8, "average": None}, 10, 11),
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


def verify() -> int:
    """The kernels give the same bits as plain PyTorch on the CPU; the number of comparisons."""
    done = 0
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        sizes = [1, 1000, 4097, philox.TILE + 5]
        values = [torch.randn(n) * 10.0 ** float(torch.empty(1).uniform_(-6, 1)) for n in sizes]
        for q, first in ((0, 0), (1, 0), (1, 5), (1, 2**20 + 2), (4, 8), (3, 4), (8, 16)):
            rows = [[float(c) for c in torch.randn(q) * 0.01] for _ in sizes]
            for alike in (False, True):
                for update in (None, 77):
                    out = []
                    for device in ("cuda", "cpu"):
                        layout = Layout(
                            (f"w{i}", nn.Parameter(v.to(dtype).to(device)), 0.7 + i) for i, v in enumerate(values)
                        )
                        for b in layout.blocks:
                            b.work.fill_(float("nan"))
                        passes.apply(layout, rows[:1] if alike else rows, first, 2**62 + 12345, update=update)
                        out.append([(b.work if update is None else b.x).cpu() for b in layout.blocks])
                    for g, c in zip(*out, strict=True):
                        assert not torch.isnan(c).any()
                        assert torch.equal(g, c), (dtype, q, first, update, len(c), (g != c).sum())
                        done += 1
    return done


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
    for name, options, forwards, sweeps in CONFIGURATIONS[:configurations]:
        opt = Poem(model.named_parameters(), seed=0, **options)  # type: ignore[arg-type]
        for _ in range(9):
            opt.step(closure)
        torch.cuda.reset_peak_memory_stats()
        start = opt.now.forwards
        times = timed(lambda opt=opt: opt.step(closure), repeats if forwards > 2 else 3 * repeats)
        peak = torch.cuda.max_memory_allocated() - sum(p.nbytes for p in before)
        measured = (opt.now.forwards - start) / len(times)
        plain = [t for t in times if t < 1.3 * min(times)]  # a step that looks at the scale has two passes more
        report(
            name, statistics.median(plain), statistics.mean(times), forwards, sweeps, peak, sum(opt.memory().values())
        )
        rows[-1]["forwards measured"] = measured
        if "CPU" in name:
            rows[-1]["table GB"] = (peak_forward + opt.memory()["probes"]) / 1e9
            rows[-1]["peak / table"] = peak / (peak_forward + opt.memory()["probes"])
        del opt
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
        "pass ms": 1e3 * sweep, "rows": rows, "changed by +e -2e +e": changed / count,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="124M,1.3B,6.7B")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("results/torch"))
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--verify-only", action="store_true")
    parser.add_argument("--skip-verify", action="store_true")
    parser.add_argument("--configurations", type=int, default=len(CONFIGURATIONS), help="how many, in their order")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("this benchmark needs a GPU that PyTorch can use")
    start = time.perf_counter()
    if not options.skip_verify:
        count = verify()
        print(f"kernels equal plain PyTorch to the bit in {count} comparisons ({time.perf_counter() - start:.0f} s)")
    if options.verify_only:
        return
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
        print(f"| {size} | +e, -2e, +e in place changes | {100 * m['changed by +e -2e +e']:.0f}% of weights | | | | |")  # type: ignore[operator]
        (options.out / "torch_step.json").write_text(json.dumps(result, indent=1))
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
