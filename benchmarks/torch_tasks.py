"""Small training problems on scikit-learn's digits, for the quality of `poem_cma.torch.Poem`."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import NamedTuple

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

BATCH = 64


class Task(NamedTuple):
    model: nn.Module
    inputs: Tensor
    labels: Tensor

    def loss(self) -> float:
        """On all examples."""
        with torch.no_grad():
            return float(cross_entropy(self.model(self.inputs).float(), self.labels))

    def batches(self, seed: int) -> Callable[[], Callable[[], Tensor]]:
        """Draws a batch and returns the closure of its loss."""
        rng = torch.Generator().manual_seed(seed)

        def draw() -> Callable[[], Tensor]:
            i = torch.randint(len(self.inputs), (BATCH,), generator=rng)
            x, y = self.inputs[i], self.labels[i]
            return lambda: cross_entropy(self.model(x).float(), y)

        return draw


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


def make(name: str, seed: int, dtype: torch.dtype = torch.float32) -> Task:
    """`mlp` and `transformer` from scratch on all digits; `finetune`: an MLP that knows 0 to 4 learns 5 to 9."""
    torch.manual_seed(seed)
    data = load_digits()
    x, y = torch.tensor(data.data / 16.0, dtype=torch.float32), torch.tensor(data.target)
    if name == "finetune":
        model = perceptron()
        known = y < 5
        task = Task(model, x[known], y[known])
        adam, draw = torch.optim.Adam(model.parameters(), 1e-3), task.batches(seed)
        for _ in range(1500):
            adam.zero_grad()
            draw()().backward()
            adam.step()
        adam.zero_grad()
        x, y = x[~known], y[~known]
    else:
        model = {"mlp": perceptron, "transformer": Transformer}[name]()
    return Task(model.to(dtype), x.to(dtype), y)
