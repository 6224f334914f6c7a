"""The running average of the weights, with late ones weighing more (polynomial decay, Shamir and Zhang 2013)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from poem_cma.torch import launches, philox
from poem_cma.torch.layout import Block, Layout
from poem_cma.torch.passes import LOW, stochastic

__all__ = ["EVERY", "Average", "decayed", "plain"]

EVERY = 8  # steps between two looks at the weights: averaging every eighth is as good, and costs an eighth
_DECAY = 8.0  # as for distance over gradients (Ivgi et al. 2023)
_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
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
        self.low = any(t.dtype in LOW for t in self.tensors)
        self.bytes = sum(t.nbytes for t in self.tensors)

    @staticmethod
    def kept(where: str | None, layout: Layout) -> Average | None:
        """As the user says: a dtype, and perhaps that it lies in the computer's memory."""
        if where is None:
            return None
        kind, at, place = where.partition("@")
        if (at and place != "cpu") or (kind != "same" and kind not in _DTYPES):
            raise ValueError(
                f'average must be None, "same", "float32", "bfloat16" or "float16", or one with "@cpu"; not {where!r}'
            )
        return Average(layout, _DTYPES.get(kind), torch.device("cpu") if at else None)

    def add(self, share: float, number: int, seed: int) -> None:
        """average += share (x - average); in low precision rounded at random, so that small shares are not lost."""
        late = share >= 0.5  # then from the nearer side: x + (1 - share) (average - x), which is x for share 1
        part, seed = 1.0 - share if late else share, seed ^ _ANOTHER
        of = {id(b): a for b, a in zip(self.layout.blocks, self.tensors, strict=True)}
        for (device, dtype), blocks in self.layout.groups.items():
            kept = [of[id(b)] for b in blocks]
            if launches.uses_kernels(device, dtype) and kept[0].device == device:
                launches.blend(blocks, kept, part, late, number, seed)
            else:
                for b, a in zip(blocks, kept, strict=True):
                    plain(b, a, part, late, number, seed)

    def show(self) -> None:
        """Write the average to the work buffer."""
        for b, a in zip(self.layout.blocks, self.tensors, strict=True):
            b.work.copy_(a)

    def load(self, tensors: Sequence[Tensor]) -> None:
        for mine, saved in zip(self.tensors, tensors, strict=True):
            mine.copy_(saved)


def plain(b: Block, a: Tensor, part: float, late: bool, number: int, seed: int) -> None:
    """The same for one tensor in plain PyTorch."""
    wide = torch.float64 if a.dtype is torch.float64 else torch.float32
    for start in range(0, a.numel(), _PIECE):
        stop = min(a.numel(), start + _PIECE)
        x, mean = b.x[start:stop].to(a.device).to(wide), a[start:stop].to(wide)
        y = x + part * (mean - x) if late else mean + part * (x - mean)
        if a.dtype in LOW:
            y = stochastic(y, philox.rounding(b.address, start, stop, number, seed, a.device), a.dtype)
        a[start:stop] = y
