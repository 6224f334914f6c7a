"""Launching the kernels: the tables that they read about the tensors, and their arguments."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from functools import cache
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from poem_cma.torch.layout import Block
from poem_cma.torch.philox import LANES, ROUNDING, SIGNS, TILE

__all__ = ["blend", "move", "uses_kernels"]

_DROP = {torch.float32: 0, torch.bfloat16: 16, torch.float16: 13}  # bits of float32 that the dtype has no room for
_LEAST = {torch.float32: 1, torch.bfloat16: 1, torch.float16: 113}  # least exponent of a normal number
_WARPS = 4  # of a program: eight elements, sixteen bytes, a thread and row


@cache
def uses_kernels(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether a Triton kernel serves this kind of tensor."""
    if device.type != "cuda" or dtype is torch.float64:
        return False
    try:
        import triton  # noqa: F401
    except ImportError:
        return False
    return True


def move(blocks: Sequence[Block], rows: Sequence[Sequence[float]], first: int, seed: int, update: int | None) -> None:
    """x + sum_j c_j z_(first + j) for the tensors of a group, to the work buffer or (with `update`) to x."""
    from poem_cma.torch.kernels import move_kernel

    tables, dtype, q = _tables(blocks), blocks[0].x.dtype, len(rows[0])
    padded = 1 if q <= 1 else -(-q // 4) * 4
    if padded > 8 or (padded > 1 and first % 4):
        raise ValueError(f"a pass takes one direction, or up to eight from a multiple of four on; got {q} from {first}")
    padding = (0.0,) * (padded - q)
    alike = len(rows) == 1  # one row for all: plain arguments, nothing to copy
    table = tables.scales if alike else tables.sent([[*row, *padding] for row in rows], torch.float32)
    scalars = [*rows[0], *padding, *(0.0,) * (8 - padded)] if alike else [0.0] * 8
    y, targets = (tables.work, tables.targets) if update is None else (tables.x, tables.sources)
    with _on(tables.device):
        for programs, skip, whole in tables.parts:
            move_kernel[(programs,)](
                tables.x, y, tables.sources, targets, tables.sizes, tables.addresses, tables.scales,
                tables.tensors, tables.tiles, table, *scalars, first, seed, update or 0, skip,
                Q=padded, ALIKE=alike, DROP=0 if update is None else _DROP[dtype], LEAST=_LEAST[dtype], LANES=LANES,
                SIGNS=SIGNS, ROUNDING=ROUNDING, ALIGNED=tables.aligned, WHOLE=whole, num_warps=_WARPS,
            )  # fmt: skip


def blend(
    blocks: Sequence[Block], averages: Sequence[Tensor], share: float, late: bool, number: int, seed: int
) -> None:
    """averages += share (x - averages), or (late) x + share (averages - x), for the tensors of a group."""
    from poem_cma.torch.kernels import blend_kernel

    tables, kept = _tables(blocks), averages[0].dtype
    targets = tables.sent(_apart(averages), torch.int64)
    with _on(tables.device):
        for programs, skip, whole in tables.parts:
            blend_kernel[(programs,)](
                tables.x, averages[0], tables.sources, targets, tables.sizes,
                tables.addresses, tables.tensors, tables.tiles, share, seed, number, skip,
                LATE=late, DROP=_DROP[kept], LEAST=_LEAST[kept], LANES=LANES, ROUNDING=ROUNDING,
                ALIGNED=tables.aligned and _aligned(averages), WHOLE=whole, num_warps=_WARPS,
                enable_fp_fusion=False,  # a product and a sum, each rounded, as in plain PyTorch
            )  # fmt: skip


class _Tables:
    """What the kernels read about the tensors of one group; made once."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.device = blocks[0].x.device
        pairs = [(k, tile) for k, b in enumerate(blocks) for tile in range(b.x.numel() // TILE)]
        ends = [(k, b.x.numel() // TILE) for k, b in enumerate(blocks) if b.x.numel() % TILE]
        # how many programs, how many others come before them, and whether their tiles are whole
        self.parts = [part for part in ((len(pairs), 0, True), (len(ends), len(pairs), False)) if part[0]]
        self.tensors, self.tiles = self.sent(list(zip(*(pairs + ends), strict=True)), torch.int32)
        self.x, self.work = blocks[0].x, blocks[0].work
        self.sources = self.sent(_apart([b.x for b in blocks]), torch.int64)
        self.targets = self.sent(_apart([b.work for b in blocks]), torch.int64)
        self.sizes = self.sent([b.x.numel() for b in blocks], torch.int64)
        self.addresses = self.sent([b.address - (b.address >> 31 << 32) for b in blocks], torch.int32)  # same 32 bits
        self.scales = self.sent([b.scale for b in blocks], torch.float32)
        self.aligned = _aligned([b.x for b in blocks]) and _aligned([b.work for b in blocks])

    def sent(self, values: Sequence[object], dtype: torch.dtype) -> Tensor:
        """Numbers on the device, without waiting for it."""
        there = self.device.type == "cuda"
        return torch.tensor(values, dtype=dtype, pin_memory=there).to(self.device, non_blocking=True)


_TABLES: WeakKeyDictionary[Block, _Tables] = WeakKeyDictionary()


def _tables(blocks: Sequence[Block]) -> _Tables:
    tables = _TABLES.get(blocks[0])
    if tables is None:
        tables = _TABLES[blocks[0]] = _Tables(blocks)
    return tables


def _apart(tensors: Sequence[Tensor]) -> list[int]:
    """How many elements each tensor lies from the first, in memory."""
    return [(t.data_ptr() - tensors[0].data_ptr()) // t.element_size() for t in tensors]


def _aligned(tensors: Sequence[Tensor]) -> bool:
    return all(t.data_ptr() % (8 * t.element_size()) == 0 for t in tensors)


def _on(device: torch.device) -> torch.cuda.device | nullcontext[None]:
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()
