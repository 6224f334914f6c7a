"""The passes over the weights as Triton kernels: one launch for all tensors of a dtype, one read and one write of each.

A program takes one tile of one tensor (see `philox`). Tables on the device say which tensor a program works on and
where it lies, so that neither the number nor the order of the tensors matters. Imported only where Triton runs.
"""

from __future__ import annotations

from collections.abc import Sequence
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
def _random(seed, c0, c1, c2, c3):  # type: ignore[no-untyped-def]
    """Four words, as signed integers: one type for all variables that hold words."""
    a, b, c, d = tl.philox(seed, c0, c1, c2, c3)
    return (
        a.to(tl.int32, bitcast=True), b.to(tl.int32, bitcast=True),
        c.to(tl.int32, bitcast=True), d.to(tl.int32, bitcast=True),
    )  # fmt: skip


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


@triton.jit
def _load(x, place, left, WHOLE: tl.constexpr):  # type: ignore[no-untyped-def]
    """Whole tiles go without masks, so that reads and writes are sixteen bytes wide."""
    if WHOLE:
        return tl.load(x + place)
    return tl.load(x + place, mask=place < left, other=0.0)


@triton.jit
def _store(y, place, value, left, WHOLE: tl.constexpr):  # type: ignore[no-untyped-def]
    if WHOLE:
        tl.store(y + place, value)
    else:
        tl.store(y + place, value, mask=place < left)


@triton.jit
def _row(  # type: ignore[no-untyped-def]
    y, value, left, lane, row, shift, w0, w1, w2, w3, v0, v1, v2, v3, r, c0, c1, c2, c3, c4, c5, c6, c7,
    Q: tl.constexpr, DTYPE: tl.constexpr, DROP: tl.constexpr, LEAST: tl.constexpr, RANDOM: tl.constexpr,
    LANES: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """One row of a tile, once it is read."""
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
    value = value.to(tl.float32) + total
    if RANDOM:
        value = _rounded(value, r, shift, DROP, LEAST)
    _store(y, row * LANES + lane, value.to(DTYPE), left, WHOLE)


@triton.jit
def _rows(  # type: ignore[no-untyped-def]
    x, y, left, lane, group, w0, w1, w2, w3, v0, v1, v2, v3, r0, r1, r2, r3, c0, c1, c2, c3, c4, c5, c6, c7,
    Q: tl.constexpr, DTYPE: tl.constexpr, DROP: tl.constexpr, LEAST: tl.constexpr, RANDOM: tl.constexpr,
    LANES: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """Eight rows of a tile, all read before the first is written: y may be x, so the compiler cannot reorder them."""
    row = group * 8
    place = row * LANES + lane
    x0 = _load(x, place, left, WHOLE)
    x1 = _load(x, place + LANES, left, WHOLE)
    x2 = _load(x, place + 2 * LANES, left, WHOLE)
    x3 = _load(x, place + 3 * LANES, left, WHOLE)
    x4 = _load(x, place + 4 * LANES, left, WHOLE)
    x5 = _load(x, place + 5 * LANES, left, WHOLE)
    x6 = _load(x, place + 6 * LANES, left, WHOLE)
    x7 = _load(x, place + 7 * LANES, left, WHOLE)
    _row(y, x0, left, lane, row + 0, 0, w0, w1, w2, w3, v0, v1, v2, v3, r0, c0, c1, c2, c3, c4, c5, c6, c7,
         Q, DTYPE, DROP, LEAST, RANDOM, LANES, WHOLE)  # fmt: skip
    _row(y, x1, left, lane, row + 1, 16, w0, w1, w2, w3, v0, v1, v2, v3, r0, c0, c1, c2, c3, c4, c5, c6, c7,
         Q, DTYPE, DROP, LEAST, RANDOM, LANES, WHOLE)  # fmt: skip
    _row(y, x2, left, lane, row + 2, 0, w0, w1, w2, w3, v0, v1, v2, v3, r1, c0, c1, c2, c3, c4, c5, c6, c7,
         Q, DTYPE, DROP, LEAST, RANDOM, LANES, WHOLE)  # fmt: skip
    _row(y, x3, left, lane, row + 3, 16, w0, w1, w2, w3, v0, v1, v2, v3, r1, c0, c1, c2, c3, c4, c5, c6, c7,
         Q, DTYPE, DROP, LEAST, RANDOM, LANES, WHOLE)  # fmt: skip
    _row(y, x4, left, lane, row + 4, 0, w0, w1, w2, w3, v0, v1, v2, v3, r2, c0, c1, c2, c3, c4, c5, c6, c7,
         Q, DTYPE, DROP, LEAST, RANDOM, LANES, WHOLE)  # fmt: skip
    _row(y, x5, left, lane, row + 5, 16, w0, w1, w2, w3, v0, v1, v2, v3, r2, c0, c1, c2, c3, c4, c5, c6, c7,
         Q, DTYPE, DROP, LEAST, RANDOM, LANES, WHOLE)  # fmt: skip
    _row(y, x6, left, lane, row + 6, 0, w0, w1, w2, w3, v0, v1, v2, v3, r3, c0, c1, c2, c3, c4, c5, c6, c7,
         Q, DTYPE, DROP, LEAST, RANDOM, LANES, WHOLE)  # fmt: skip
    _row(y, x7, left, lane, row + 7, 16, w0, w1, w2, w3, v0, v1, v2, v3, r3, c0, c1, c2, c3, c4, c5, c6, c7,
         Q, DTYPE, DROP, LEAST, RANDOM, LANES, WHOLE)  # fmt: skip


@triton.jit(do_not_specialize=["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "first", "seed", "update"])
def _pass(  # type: ignore[no-untyped-def]
    x, y, sources, targets, sizes, addresses, scales, tensors, tiles, table,
    c0, c1, c2, c3, c4, c5, c6, c7, first, seed, update,
    Q: tl.constexpr, ALIKE: tl.constexpr, DTYPE: tl.constexpr, DROP: tl.constexpr, LEAST: tl.constexpr,
    RANDOM: tl.constexpr, LANES: tl.constexpr, SIGNS: tl.constexpr, ROUNDING: tl.constexpr, ALIGNED: tl.constexpr,
):  # fmt: skip
    """Up to eight directions. Q = 1: any; else `first` is a multiple of four and Q is four or eight.

    x and y are the first tensors of the group; `sources` and `targets` say how far from them the others lie.
    """
    p = tl.program_id(0)
    k = tl.load(tensors + p)
    tile = tl.load(tiles + p)
    n = tl.load(sizes + k)
    address = tl.load(addresses + k)
    source = tl.load(sources + k)
    target = tl.load(targets + k)
    if ALIGNED:
        source = tl.multiple_of(source, 8)
        target = tl.multiple_of(target, 8)
    start = tile.to(tl.int64) * (LANES * 32)
    x = x + source + start
    y = y + target + start
    lane = tl.arange(0, LANES)
    counter = tile * LANES + lane
    zero = tl.zeros([LANES], tl.int32)
    w0, w1, w2, w3 = _random(seed, counter, zero + address, zero + first // 4, zero + SIGNS)
    if Q == 1:
        word = first % 4
        w0 = tl.where(word == 0, w0, tl.where(word == 1, w1, tl.where(word == 2, w2, w3)))
    v0, v1, v2, v3 = w0, w1, w2, w3
    if Q == 8:
        v0, v1, v2, v3 = _random(seed, counter, zero + address, zero + first // 4 + 1, zero + SIGNS)
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
    scale = tl.load(scales + k)
    c0, c1, c2, c3 = c0 * scale, c1 * scale, c2 * scale, c3 * scale
    c4, c5, c6, c7 = c4 * scale, c5 * scale, c6 * scale, c7 * scale
    left = tl.minimum(n - start, LANES * 32).to(tl.int32)
    r0, r1, r2, r3 = w0, w1, w2, w3
    if left == LANES * 32:
        for group in range(4):
            if RANDOM:
                r0, r1, r2, r3 = _random(seed, counter, zero + address, zero + update, zero + ROUNDING + group)
            _rows(
                x, y, left, lane, group, w0, w1, w2, w3, v0, v1, v2, v3, r0, r1, r2, r3, c0, c1, c2, c3, c4, c5, c6, c7,
                Q, DTYPE, DROP, LEAST, RANDOM, LANES, True,
            )  # fmt: skip
    else:
        for group in range(tl.cdiv(left, LANES * 8)):
            if RANDOM:
                r0, r1, r2, r3 = _random(seed, counter, zero + address, zero + update, zero + ROUNDING + group)
            _rows(
                x, y, left, lane, group, w0, w1, w2, w3, v0, v1, v2, v3, r0, r1, r2, r3, c0, c1, c2, c3, c4, c5, c6, c7,
                Q, DTYPE, DROP, LEAST, RANDOM, LANES, False,
            )  # fmt: skip


@triton.jit
def _blended(  # type: ignore[no-untyped-def]
    x, y, left, lane, group, r0, r1, r2, r3, share,
    KEPT: tl.constexpr, DROP: tl.constexpr, LEAST: tl.constexpr, LANES: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    for i in tl.static_range(8):
        place = (group * 8 + i) * LANES + lane
        if WHOLE:
            value = tl.load(x + place).to(tl.float32)
            mean = tl.load(y + place).to(tl.float32)
        else:
            value = tl.load(x + place, mask=place < left, other=0.0).to(tl.float32)
            mean = tl.load(y + place, mask=place < left, other=0.0).to(tl.float32)
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
        if WHOLE:
            tl.store(y + place, mean.to(KEPT))
        else:
            tl.store(y + place, mean.to(KEPT), mask=place < left)


@triton.jit(do_not_specialize=["share", "seed", "number"])
def _blend(  # type: ignore[no-untyped-def]
    x, y, sources, targets, sizes, addresses, tensors, tiles, share, seed, number,
    KEPT: tl.constexpr, DROP: tl.constexpr, LEAST: tl.constexpr, LANES: tl.constexpr, ROUNDING: tl.constexpr,
    ALIGNED: tl.constexpr,
):  # fmt: skip
    """average += share (x - average), the average being of dtype KEPT."""
    p = tl.program_id(0)
    k = tl.load(tensors + p)
    tile = tl.load(tiles + p)
    source = tl.load(sources + k)
    target = tl.load(targets + k)
    if ALIGNED:
        source = tl.multiple_of(source, 8)
        target = tl.multiple_of(target, 8)
    address = tl.load(addresses + k)
    start = tile.to(tl.int64) * (LANES * 32)
    x = x + source + start
    y = y + target + start
    lane = tl.arange(0, LANES)
    counter = tile * LANES + lane
    zero = tl.zeros([LANES], tl.int32)
    left = tl.minimum(tl.load(sizes + k) - start, LANES * 32).to(tl.int32)
    r0, r1, r2, r3 = counter, counter, counter, counter
    if left == LANES * 32:
        for group in range(4):
            if DROP > 0:
                r0, r1, r2, r3 = _random(seed, counter, zero + address, zero + number, zero + ROUNDING + group)
            _blended(x, y, left, lane, group, r0, r1, r2, r3, share, KEPT, DROP, LEAST, LANES, True)
    else:
        for group in range(tl.cdiv(left, LANES * 8)):
            if DROP > 0:
                r0, r1, r2, r3 = _random(seed, counter, zero + address, zero + number, zero + ROUNDING + group)
            _blended(x, y, left, lane, group, r0, r1, r2, r3, share, KEPT, DROP, LEAST, LANES, False)


class _Tables:
    """What the kernels read about the tensors of one group; made once."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        device = blocks[0].x.device

        def table(values: list[int], dtype: torch.dtype) -> torch.Tensor:
            return torch.tensor(values, dtype=dtype, device=device)

        tiles = [-(-b.x.numel() // TILE) for b in blocks]
        self.programs = sum(tiles)
        self.x, self.work = blocks[0].x, blocks[0].work
        self.sources = table(_apart([b.x for b in blocks]), torch.int64)
        self.targets = table(_apart([b.work for b in blocks]), torch.int64)
        self.sizes = table([b.x.numel() for b in blocks], torch.int64)
        self.addresses = table([b.address - (b.address >> 31 << 32) for b in blocks], torch.int32)  # same 32 bits
        self.scales = torch.tensor([b.scale for b in blocks], dtype=torch.float32, device=device)
        count = torch.tensor(tiles)
        self.tensors = torch.repeat_interleave(torch.arange(len(blocks)), count).to(torch.int32).to(device)
        starts = torch.repeat_interleave(torch.cumsum(count, 0) - count, count)
        self.tiles = (torch.arange(self.programs) - starts).to(torch.int32).to(device)
        self.aligned = _aligned([b.x for b in blocks]) and _aligned([b.work for b in blocks])


def _apart(tensors: Sequence[torch.Tensor]) -> list[int]:
    """How many elements each tensor lies from the first, in memory."""
    return [(t.data_ptr() - tensors[0].data_ptr()) // t.element_size() for t in tensors]


def _aligned(tensors: Sequence[torch.Tensor]) -> bool:
    return all(t.data_ptr() % (8 * t.element_size()) == 0 for t in tensors)


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
    if len(rows) == 1:  # one row for all: plain arguments, nothing to copy
        table, scalars = tables.scales, [*rows[0], *padding, *(0.0,) * (8 - padded)]
    else:
        host = torch.tensor([[*row, *padding] for row in rows], dtype=torch.float32, pin_memory=True)
        table, scalars = host.to(device, non_blocking=True), [0.0] * 8
    y, targets = (tables.work, tables.targets) if update is None else (tables.x, tables.sources)
    with torch.cuda.device(device):
        _pass[(tables.programs,)](
            tables.x, y, tables.sources, targets, tables.sizes, tables.addresses, tables.scales,
            tables.tensors, tables.tiles, table, *scalars, first, seed, update or 0,
            Q=padded, ALIKE=len(rows) == 1, DTYPE=_NAMES[dtype], DROP=_DROP[dtype], LEAST=_LEAST[dtype],
            RANDOM=update is not None and _DROP[dtype] > 0,
            LANES=LANES, SIGNS=SIGNS, ROUNDING=ROUNDING, ALIGNED=tables.aligned, num_warps=4,
        )  # fmt: skip


def blend(blocks: Sequence[Block], averages: Sequence[torch.Tensor], share: float, number: int, seed: int) -> None:
    """averages += share (x - averages), for the tensors of a group."""
    tables, kept = _tables(blocks), averages[0].dtype
    targets = torch.tensor(_apart(averages), dtype=torch.int64, pin_memory=True)
    targets = targets.to(blocks[0].x.device, non_blocking=True)
    with torch.cuda.device(blocks[0].x.device):
        _blend[(tables.programs,)](
            tables.x, averages[0], tables.sources, targets, tables.sizes, tables.addresses, tables.tensors,
            tables.tiles, share, seed, number,
            KEPT=_NAMES[kept], DROP=_DROP[kept], LEAST=_LEAST[kept], LANES=LANES, ROUNDING=ROUNDING,
            ALIGNED=tables.aligned and _aligned(averages), num_warps=4,
        )  # fmt: skip
