"""The running average of the weights, with late ones weighing more (polynomial decay, Shamir and Zhang 2013)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from poem_cma.torch import philox
from poem_cma.torch.layout import Block, Layout
from poem_cma.torch.passes import stochastic, uses_kernels

__all__ = ["EVERY", "Average", "decayed"]

EVERY = 8  # steps between two looks at the weights: averaging every eighth is as good, and costs an eighth
_DECAY = 8.0  # as for distance over gradients (Ivgi et al. 2023)
_PIECE = 64 * philox.TILE  # elements at a time
_ANOTHER = 0x5EED  # the rounding of the average is independent of the rounding of the weights
_FORGETS = 400.0  # looks: in low precision, a longer memory would be drowned by rounding


def decayed(looks: int, low_precision: bool) -> float:
    """The share of the weights at look number `looks` (from 1) in the average."""
    return (1.0 + _DECAY) / ((min(float(looks), _FORGETS) if low_precision else looks) + _DECAY)


class Average:
    """One tensor for each block, in the dtype and on the device asked for."""

    def __init__(self, layout: Layout, dtype: torch.dtype | None, device: torch.device | None) -> None:
        self.layout = layout
        self.tensors: list[Tensor] = [
            b.x.to(device=device or b.x.device, dtype=dtype or b.x.dtype, copy=True) for b in layout.blocks
        ]
        self.low = any(t.dtype in (torch.bfloat16, torch.float16) for t in self.tensors)
        self.bytes = sum(t.nbytes for t in self.tensors)

    def add(self, share: float, number: int, seed: int) -> None:
        """average += share (x - average); in low precision rounded at random, so that small shares are not lost."""
        of = {id(b): a for b, a in zip(self.layout.blocks, self.tensors, strict=True)}
        for (device, dtype), blocks in self.layout.groups.items():
            kept = [of[id(b)] for b in blocks]
            if uses_kernels(device, dtype) and kept[0].device == device:
                from poem_cma.torch.kernels import blend

                blend(blocks, kept, share, number, seed ^ _ANOTHER)
            else:
                for b, a in zip(blocks, kept, strict=True):
                    _plain(b, a, share, number, seed ^ _ANOTHER)

    def show(self) -> None:
        """Write the average to the work buffer."""
        for b, a in zip(self.layout.blocks, self.tensors, strict=True):
            b.work.copy_(a)

    def load(self, tensors: Sequence[Tensor]) -> None:
        for mine, saved in zip(self.tensors, tensors, strict=True):
            mine.copy_(saved)


def _plain(b: Block, a: Tensor, share: float, number: int, seed: int) -> None:
    """The same for one tensor in plain PyTorch."""
    for start in range(0, a.numel(), _PIECE):
        stop = min(a.numel(), start + _PIECE)
        x, mean = b.x[start:stop].to(a.device), a[start:stop]
        if a.dtype in (torch.bfloat16, torch.float16):
            y = torch.lerp(mean.float(), x.float(), share)
            mean.copy_(stochastic(y, philox.rounding(b.address, start, stop, number, seed, a.device), a.dtype))
        else:
            mean.lerp_(x.to(a.dtype), share)
