"""Small training problems on scikit-learn's data, for the quality of `poem_cma.torch.Poem`.

`mlp`, `transformer` and `finetune` are those that the constants of the step were first chosen on. `cancer`, `wine`,
`conv`, `diabetes` and `lora` were held back at first; what they showed made steps safer. Of the last choice (eight
directions, ten steps to settle) all but `inverted` had a part, on seeds 0 to 47.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import NamedTuple

import torch
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss

BATCH = 64


def fit(out: Tensor, y: Tensor) -> Tensor:
    """The loss of a network's outputs: squared errors of numbers, or the classes' cross entropy."""
    return mse_loss(out[:, 0], y) if y.is_floating_point() else cross_entropy(out, y)


class Task(NamedTuple):
    model: nn.Module
    inputs: Tensor
    labels: Tensor  # classes, or numbers to predict

    def loss(self) -> float:
        """On all examples."""
        with torch.no_grad():
            return float(fit(self.model(self.inputs).float(), self.labels))

    def batches(self, seed: int) -> Callable[[], Callable[[], Tensor]]:
        """Draws a batch and returns the closure of its loss."""
        rng = torch.Generator().manual_seed(seed)

        def draw() -> Callable[[], Tensor]:
            i = torch.randint(len(self.inputs), (BATCH,), generator=rng)
            x, y = self.inputs[i], self.labels[i]
            return lambda: fit(self.model(x).float(), y)

        return draw

    def adam(self, steps: int, seed: int) -> None:
        """Ordinary training."""
        adam, draw = torch.optim.Adam(self.model.parameters(), 1e-3), self.batches(seed)
        for _ in range(steps):
            adam.zero_grad()
            draw()().backward()
            adam.step()
        adam.zero_grad()


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        b, t, w = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        a = (q @ k.transpose(-1, -2) / sqrt(w // self.heads)).softmax(-1) @ v
        x = x + self.out(a.transpose(1, 2).reshape(b, t, w))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    """The eight rows of a digit are its tokens."""

    def __init__(self, width: int = 32, layers: int = 2, heads: int = 4) -> None:
        super().__init__()
        self.embed = nn.Linear(8, width)
        self.places = nn.Parameter(0.1 * torch.randn(8, width))
        self.layers = nn.ModuleList(Attention(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x.reshape(-1, 8, 8)) + self.places
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x).mean(1))


class Lora(nn.Module):
    """A frozen linear layer and a product of two thin matrices beside it; the second starts at zero."""

    def __init__(self, frozen: nn.Linear, rank: int = 4) -> None:
        super().__init__()
        self.frozen = frozen.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(rank, frozen.in_features) / frozen.in_features**0.5)
        self.up = nn.Parameter(torch.zeros(frozen.out_features, rank))

    def forward(self, x: Tensor) -> Tensor:
        return self.frozen(x) + x @ self.down.T @ self.up.T


def convolutions() -> nn.Module:
    return nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2, padding=1),
        nn.ReLU(), nn.Flatten(), nn.Linear(256, 10),
    )  # fmt: skip


class Recurrent(nn.Module):
    """The rows of a digit one after the other."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.gru, self.head = nn.GRU(8, width, batch_first=True), nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.gru(x.reshape(-1, 8, 8))[0][:, -1])
        return out


class Deep(nn.Module):
    """Six layers with shortcuts around them."""

    def __init__(self, width: int = 48, layers: int = 6) -> None:
        super().__init__()
        self.embed, self.head = nn.Linear(64, width), nn.Linear(width, 10)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x)
        for layer in self.layers:
            x = x + torch.tanh(layer(x))
        return self.head(x)


# From scratch: the network and the data
SCRATCH: dict[str, tuple[Callable[[], nn.Module], Callable[[], object]]] = {
    "mlp": (perceptron, load_digits),
    "transformer": (Transformer, load_digits),
    "conv": (convolutions, load_digits),
    "gru": (Recurrent, load_digits),
    "deep": (Deep, load_digits),
    "cancer": (
        lambda: nn.Sequential(nn.Linear(30, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 2)),
        load_breast_cancer,
    ),
    "wine": (
        lambda: nn.Sequential(nn.Linear(13, 128), nn.LayerNorm(128), nn.GELU(), nn.Linear(128, 3)),
        load_wine,
    ),
    "diabetes": (
        lambda: nn.Sequential(nn.Linear(10, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1)),
        load_diabetes,
    ),
}


def tables(load: Callable[[], object]) -> tuple[Tensor, Tensor]:
    """Inputs and labels: digits from 0 to 1; other columns, and numbers to predict, with mean 0 and variance 1."""
    data = load()
    x, y = torch.tensor(data.data, dtype=torch.float32), torch.tensor(data.target)  # type: ignore[attr-defined]
    x = x / 16.0 if load is load_digits else (x - x.mean(0)) / x.std(0)
    return x, ((y - y.mean()) / y.std()).float() if y.is_floating_point() else y


def make(name: str, seed: int, dtype: torch.dtype = torch.float32) -> Task:
    """One of SCRATCH, or: `finetune`, an MLP that knows 0 to 4 learns 5 to 9; `lora`, a transformer does with adapters;
    `inverted`, a network that knows black on white learns white on black.
    """
    torch.manual_seed(seed)
    if name in SCRATCH:
        network, load = SCRATCH[name]
        model, (x, y) = network(), tables(load)
    elif name == "inverted":
        x, y = tables(load_digits)
        model = nn.Sequential(
            nn.Linear(64, 96), nn.LayerNorm(96), nn.ReLU(), nn.Linear(96, 48), nn.ReLU(), nn.Linear(48, 10)
        )
        Task(model, x, y).adam(1000, seed)
        x = 1.0 - x
    else:
        x, y = tables(load_digits)
        model = {"finetune": perceptron, "lora": Transformer}[name]()
        known = y < 5
        Task(model, x[known], y[known]).adam(1500, seed)
        x, y = x[~known], y[~known]
        if name == "lora":
            model.requires_grad_(False)
            for layer in model.layers:  # type: ignore[union-attr]
                for part in ("qkv", "out", "up", "down"):
                    setattr(layer, part, Lora(getattr(layer, part)))
            model.head = Lora(model.head)  # type: ignore[arg-type]
    return Task(model.to(dtype), x.to(dtype), y)
