"""Small networks for the tests of poem_cma.torch."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn


def network(seed: int = 0, dtype: torch.dtype = torch.float32) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)).to(dtype)


def data(n: int = 32, seed: int = 1, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    rng = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 6, generator=rng)
    return x.to(dtype), (x[:, :3] + x[:, 3:]).argmax(1)


def loss_of(model: nn.Module, x: Tensor, y: Tensor) -> Callable[[], Tensor]:
    return lambda: nn.functional.cross_entropy(model(x).float(), y)


def weights(model: nn.Module) -> list[Tensor]:
    return [p.detach().clone() for p in model.parameters()]


def same(a: list[Tensor], b: list[Tensor]) -> bool:
    """Bit for bit."""
    return all(torch.equal(u.view(torch.uint8), v.view(torch.uint8)) for u, v in zip(a, b, strict=True))
