"""The passes over the weights as Triton kernels: one launch for all tensors of a dtype, one read and one write of each.

A program takes one tile of one tensor (see `philox`). Tables on the device say which tensor a program works on and
where it lies, so that neither the number nor the order of the tensors matters. Imported only where Triton runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import torch
import triton
import triton.language as tl

from poem_cma.torch.layout import Block
from poem_cma.torch.philox import LANES, ROUNDING, SIGNS, TILE

__all__ = ["blend", "launch"]

_NAMES = {torch.float32: tl.float32, torch.bfloat16: tl.bfloat16, torch.float16: tl.float16}
_DROP = {torch.float32: 0, torch.bfloat16: 16, torch.float16: 13}
_LEAST = {torch.float32: 1, torch.bfloat16: 1, torch.float16: 113}


@triton.jit
def _signed(word, row, c):  # type: ignore[no-untyped-def]
    return tl.where((word >> row) & 1 == 1, c, -c)


@triton.jit
def _rounded(y, word, shift, DROP: tl.constexpr, LEAST: tl.constexpr):  # type: ignore[no-untyped-def]
    """y rounded to a neighbour by sixteen random bits; see `passes.stochastic`."""
    exponent = tl.maximum((y.to(tl.int32, bitcast=True) >> 23) & 0xFF, LEAST) - (23 - DROP)
    exponent = tl.minimum(tl.maximum(exponent, 1), 253)
    quantum = (exponent << 23).to(tl.float32, bitcast=True)
    inverse = ((254 - exponent) << 23).to(tl.float32, bitcast=True)
    bits = (word >> shift) & 0xFFFF
    u = (bits >> (16 - DROP)).to(tl.float32) * (1.0 / (1 << DROP))
    return tl.floor(y * inverse + u) * quantum


@triton.jit(do_not_specialize=[f"c{j}" for j in range(8)] + ["first", "seed", "update"])
def _pass(  # type: ignore[no-untyped-def]
    sources, targets, sizes, addresses, tensors, tiles, table, c0, c1, c2, c3, c4, c5, c6, c7, first, seed, update,
    Q: tl.constexpr, ALIKE: tl.constexpr, DTYPE: tl.constexpr, DROP: tl.constexpr, LEAST: tl.constexpr, RANDOM: tl.constexpr,
    LANES: tl.constexpr, SIGNS: tl.constexpr, ROUNDING: tl.constexpr, ALIGNED: tl.constexpr,
):  # fmt: skip
    """Up to eight directions. Q = 1: any; else `first` is a multiple of four and Q is four or eight."""
    p = tl.program_id(0)
    k = tl.load(tensors + p)
    tile = tl.load(tiles + p)
    n = tl.load(sizes + k)
    address = tl.load(addresses + k)
    x = tl.load(sources + k).to(tl.pointer_type(DTYPE))
    y = tl.load(targets + k).to(tl.pointer_type(DTYPE))
    if ALIGNED:
        x = tl.multiple_of(x, 16)
        y = tl.multiple_of(y, 16)
    lane = tl.arange(0, LANES)
    counter = tile * LANES + lane
    start = tile.to(tl.int64) * (LANES * 32)
    zero = tl.zeros([LANES], tl.int32)
    w0, w1, w2, w3 = tl.philox(seed, counter, zero + address, zero + first // 4, zero + SIGNS)
    if Q == 1:
        word = first % 4
        w0 = tl.where(word == 0, w0, tl.where(word == 1, w1, tl.where(word == 2, w2, w3)))
    if not ALIKE:
        c0 = tl.load(table + k * Q)
        if Q >= 4:
            c1 = tl.load(table + k * Q + 1)
            c2 = tl.load(table + k * Q + 2)
            c3 = tl.load(table + k * Q + 3)
        if Q == 8:
            c4 = tl.load(table + k * Q + 4)
            c5 = tl.load(table + k * Q + 5)
            c6 = tl.load(table + k * Q + 6)
            c7 = tl.load(table + k * Q + 7)
    if Q == 8:
        v0, v1, v2, v3 = tl.philox(seed, counter, zero + address, zero + first // 4 + 1, zero + SIGNS)
    groups = tl.minimum(4, tl.cdiv(n - start, LANES * 8)).to(tl.int32)
    for group in range(0, groups):
        if RANDOM:
            r0, r1, r2, r3 = tl.philox(seed, counter, zero + address, zero + update, zero + ROUNDING + group)
        for i in tl.static_range(8):
            row = group * 8 + i
            place = start + row * LANES + lane
            inside = place < n
            value = tl.load(x + place, mask=inside, other=0.0).to(tl.float32)
            total = _signed(w0, row, c0)
            if Q >= 4:
                total = total + _signed(w1, row, c1)
                total = total + _signed(w2, row, c2)
                total = total + _signed(w3, row, c3)
            if Q == 8:
                total = total + _signed(v0, row, c4)
                total = total + _signed(v1, row, c5)
                total = total + _signed(v2, row, c6)
                total = total + _signed(v3, row, c7)
            value = value + total
            if RANDOM:
                r = r0
                if i // 2 == 1:
                    r = r1
                if i // 2 == 2:
                    r = r2
                if i // 2 == 3:
                    r = r3
                value = _rounded(value, r, (i % 2) * 16, DROP, LEAST)
            tl.store(y + place, value.to(DTYPE), mask=inside)


@triton.jit(do_not_specialize=["share", "seed", "number"])
def _blend(  # type: ignore[no-untyped-def]
    sources, targets, sizes, addresses, tensors, tiles, share, seed, number,
    DTYPE: tl.constexpr, KEPT: tl.constexpr, DROP: tl.constexpr, LEAST: tl.constexpr,
    LANES: tl.constexpr, ROUNDING: tl.constexpr,
):  # fmt: skip
    """average += share (x - average), the average being of dtype KEPT."""
    p = tl.program_id(0)
    k = tl.load(tensors + p)
    tile = tl.load(tiles + p)
    n = tl.load(sizes + k)
    address = tl.load(addresses + k)
    x = tl.load(sources + k).to(tl.pointer_type(DTYPE))
    y = tl.load(targets + k).to(tl.pointer_type(KEPT))
    lane = tl.arange(0, LANES)
    counter = tile * LANES + lane
    start = tile.to(tl.int64) * (LANES * 32)
    zero = tl.zeros([LANES], tl.int32)
    groups = tl.minimum(4, tl.cdiv(n - start, LANES * 8)).to(tl.int32)
    for group in range(0, groups):
        if DROP > 0:
            r0, r1, r2, r3 = tl.philox(seed, counter, zero + address, zero + number, zero + ROUNDING + group)
        for i in tl.static_range(8):
            place = start + (group * 8 + i) * LANES + lane
            inside = place < n
            value = tl.load(x + place, mask=inside, other=0.0).to(tl.float32)
            mean = tl.load(y + place, mask=inside, other=0.0).to(tl.float32)
            mean = mean + share * (value - mean)
            if DROP > 0:
                r = r0
                if i // 2 == 1:
                    r = r1
                if i // 2 == 2:
                    r = r2
                if i // 2 == 3:
                    r = r3
                mean = _rounded(mean, r, (i % 2) * 16, DROP, LEAST)
            tl.store(y + place, mean.to(KEPT), mask=inside)


class _Tables:
    """What the kernels read about the tensors of one group; made once."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        device = blocks[0].x.device

        def table(values: list[int], dtype: torch.dtype) -> torch.Tensor:
            return torch.tensor(values, dtype=dtype, device=device)

        tiles = [-(-b.x.numel() // TILE) for b in blocks]
        self.programs = sum(tiles)
        self.x = table([b.x.data_ptr() for b in blocks], torch.int64)
        self.work = table([b.work.data_ptr() for b in blocks], torch.int64)
        self.sizes = table([b.x.numel() for b in blocks], torch.int64)
        self.addresses = table([b.address - (b.address >> 31 << 32) for b in blocks], torch.int32)  # same 32 bits
        count = torch.tensor(tiles)
        self.tensors = torch.repeat_interleave(torch.arange(len(blocks)), count).to(torch.int32).to(device)
        starts = torch.repeat_interleave(torch.cumsum(count, 0) - count, count)
        self.tiles = (torch.arange(self.programs) - starts).to(torch.int32).to(device)
        self.aligned = all(t.data_ptr() % 16 == 0 for b in blocks for t in (b.x, b.work))


_TABLES: WeakKeyDictionary[Block, _Tables] = WeakKeyDictionary()


def _tables(blocks: Sequence[Block]) -> _Tables:
    tables = _TABLES.get(blocks[0])
    if tables is None:
        tables = _TABLES[blocks[0]] = _Tables(blocks)
    return tables


def launch(blocks: Sequence[Block], rows: Sequence[Sequence[float]], first: int, seed: int, update: int | None) -> None:
    """x + sum_j c_j z_(first + j) for the tensors of a group, to the work buffer or (with `update`) to x."""
    tables = _tables(blocks)
    dtype, device, q = blocks[0].x.dtype, blocks[0].x.device, len(rows[0])
    padded = 1 if q <= 1 else -(-q // 4) * 4
    if padded > 8 or (padded > 1 and first % 4):
        raise ValueError(f"a pass takes one direction, or up to eight from a multiple of four on; got {q} from {first}")
    padding = (0.0,) * (padded - q)
    target = tables.work if update is None else tables.x
    if len(rows) == 1:  # one row for all: plain arguments, nothing to copy
        table, scalars = tables.sizes, [*rows[0], *padding, *(0.0,) * (8 - padded)]
    else:
        host = torch.tensor([[*row, *padding] for row in rows], dtype=torch.float32, pin_memory=True)
        table, scalars = host.to(device, non_blocking=True), [0.0] * 8
    arguments: list[Any] = [tables.x, target, tables.sizes, tables.addresses, tables.tensors, tables.tiles, table]
    settings: dict[str, Any] = {
        "DTYPE": _NAMES[dtype], "DROP": _DROP[dtype], "LEAST": _LEAST[dtype],
        "RANDOM": update is not None and _DROP[dtype] > 0,
        "LANES": LANES, "SIGNS": SIGNS, "ROUNDING": ROUNDING, "num_warps": 4,
    }  # fmt: skip
    with torch.cuda.device(device):
        _pass[(tables.programs,)](
            *arguments, *scalars, first, seed, update or 0, Q=padded, ALIKE=len(rows) == 1, ALIGNED=tables.aligned, **settings
        )


def blend(blocks: Sequence[Block], averages: Sequence[torch.Tensor], share: float, number: int, seed: int) -> None:
    """averages += share (x - averages), for the tensors of a group."""
    tables = _tables(blocks)
    dtype, kept = blocks[0].x.dtype, averages[0].dtype
    pointers = torch.tensor([a.data_ptr() for a in averages], dtype=torch.int64, device=blocks[0].x.device)
    with torch.cuda.device(blocks[0].x.device):
        _blend[(tables.programs,)](
            tables.x, pointers, tables.sizes, tables.addresses, tables.tensors, tables.tiles, share, seed, number,
            DTYPE=_NAMES[dtype], KEPT=_NAMES[kept], DROP=_DROP[kept], LEAST=_LEAST[kept],
            LANES=LANES, ROUNDING=ROUNDING, num_warps=4,
        )  # fmt: skip
