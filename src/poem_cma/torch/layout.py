"""The parameters as memory: which tensors are searched, where their perturbed copies lie, how the two are swapped.

x itself is never perturbed. Every probe is written to a second buffer, and while the closure runs the module's
parameters point there; afterwards they point back to x. So x is bit for bit what it was, whatever the closure did.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from math import sqrt
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter

from poem_cma.torch.philox import SmallWords, address_of

__all__ = ["Block", "Layout", "flat", "named", "norm"]

FLOATS = torch.float64, torch.float32, torch.bfloat16, torch.float16
_ALIGN = 8  # elements: work copies start at multiples of 16 bytes


@dataclass(eq=False)
class Block:
    """One tensor that is searched, and the parameters (more than one where weights are tied) that share it."""

    name: str
    parameters: list[Parameter]
    x: Tensor  # flat, in memory order: the weights themselves
    home: Tensor  # the weights in their shape
    scale: float = 1.0  # how far this tensor moves, compared with the others
    address: int = field(init=False)
    work: Tensor = field(init=False)  # flat: where probes are written
    away: Tensor = field(init=False)  # the same in the tensor's shape

    def __post_init__(self) -> None:
        self.address = address_of(self.name)


def flat(p: Tensor, name: str) -> Tensor:
    """The memory of a dense tensor as one row, whatever the order of its axes."""
    size = 1
    for stride, n in sorted(zip(p.stride(), p.shape, strict=True)):
        if n > 1 and stride != size:
            raise ValueError(f"{name} is not dense in memory (strides {p.stride()}); make it contiguous first")
        size *= n
    return p.as_strided((p.numel(),), (1,))


class Layout:
    """All tensors that are searched, in the order of their names."""

    def __init__(self, named: Iterable[tuple[str, Parameter, float]]) -> None:
        by_memory: dict[tuple[object, ...], Block] = {}
        for name, p, scale in named:
            if not p.requires_grad or p.numel() == 0:
                continue  # frozen
            if p.dtype not in FLOATS:
                raise TypeError(f"{name} has dtype {p.dtype}; only float64, float32, bfloat16 and float16 are searched")
            home = p.detach()
            key = (home.device, home.dtype, home.data_ptr(), home.shape, home.stride())
            if key in by_memory:
                by_memory[key].parameters.append(p)  # tied
            else:
                by_memory[key] = Block(name, [p], flat(home, name), home, scale)
        self.blocks = list(by_memory.values())
        if not self.blocks:
            raise ValueError("there is no parameter to train: all are frozen (requires_grad is False) or empty")
        _refuse_overlaps(self.blocks)
        if len({b.address for b in self.blocks}) < len(self.blocks):
            raise ValueError("two parameters have the same name, or names that collide; rename one of them")
        self.dimension = sum(b.x.numel() for b in self.blocks)
        self.groups: dict[tuple[torch.device, torch.dtype], list[Block]] = {}
        for b in self.blocks:
            self.groups.setdefault((b.x.device, b.x.dtype), []).append(b)
        self.words = {
            key: SmallWords([b.address for b in blocks], [b.x.numel() for b in blocks], key[0])
            for key, blocks in self.groups.items()
        }
        self.bytes = 0
        for (device, dtype), blocks in self.groups.items():
            starts = [0]
            for b in blocks:
                starts.append(starts[-1] + -(-b.x.numel() // _ALIGN) * _ALIGN)
            buffer = torch.empty(starts[-1], dtype=dtype, device=device)
            self.bytes += buffer.nbytes
            for b, start in zip(blocks, starts, strict=False):
                b.work = buffer[start : start + b.x.numel()]
                b.away = b.work.as_strided(b.home.shape, b.home.stride(), b.work.storage_offset())

    def weigh(self, vectors: float) -> None:
        """Settle how far each tensor moves: as its group says, and biases and norms by a factor, beside matrices."""
        matrices = any(b.home.dim() > 1 for b in self.blocks)
        for b in self.blocks:
            b.scale *= vectors if matrices and b.home.dim() <= 1 else 1.0
        mean = sqrt(sum(b.scale**2 * b.x.numel() for b in self.blocks) / self.dimension)
        for b in self.blocks:
            b.scale /= mean  # directions keep their length

    def check(self) -> None:
        """Whether the parameters still are where they were."""
        for b in self.blocks:
            for p in b.parameters:
                if p.data_ptr() != b.x.data_ptr() or p.dtype != b.x.dtype:
                    raise RuntimeError(
                        f"{b.name} was moved or converted after the optimizer was made; "
                        "make the optimizer after model.to(...), and load weights in place"
                    )

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """While this lasts, the parameters are the buffer that probes are written to."""
        try:
            for b in self.blocks:
                for p in b.parameters:
                    p.data = b.away
            yield
        finally:
            for b in self.blocks:
                for p in b.parameters:
                    p.data = b.home


def named(groups: list[dict[str, Any]]) -> Iterator[tuple[str, Parameter, float]]:
    """Names as given, or the parameters' numbers."""
    number = 0
    for group in groups:
        scale = group["scale"]
        if not isinstance(scale, int | float) or not 0.0 < scale < float("inf"):
            raise ValueError(f"a group's scale must be a positive number, not {scale!r}")
        names = group.get("param_names")
        for i, p in enumerate(group["params"]):
            yield (names[i] if names else f"#{number}"), p, float(scale)
            number += 1


def norm(x: Tensor) -> float:
    """In float32 at least."""
    wide = torch.float64 if x.dtype is torch.float64 else torch.float32
    return float(torch.linalg.vector_norm(x, dtype=wide))


def _refuse_overlaps(blocks: list[Block]) -> None:
    spans = sorted((str(b.x.device), b.x.data_ptr(), b.x.data_ptr() + b.x.nbytes, b.name) for b in blocks)
    for (device, _, end, name), (other_device, start, _, other) in pairwise(spans):
        if device == other_device and start < end:
            raise ValueError(f"{name} and {other} share part of their memory; tie whole tensors or none")
