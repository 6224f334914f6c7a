"""The passes over the weights as Triton kernels: all tensors of a dtype at once, one read and one write of each.

A program takes one tile of one tensor (see `philox`), eight rows at a time: all are read before the first is written.
Tables on the device say which tensor a program works on and where it lies, so that neither the number nor the order of
the tensors matters; `launches` makes them. Whole tiles and the ends of tensors are launched apart: masks take so many
registers that whole tiles would wait for them. Imported only where Triton runs.
"""

import triton
import triton.language as tl

from poem_cma.torch import philox

__all__ = ["blend_kernel", "move_kernel"]

ROWS = tl.constexpr(8)  # at a time
TIMES = tl.constexpr(4)  # for a whole tile
# As signed numbers: products of 32 bits are the same.
MULTIPLIER = tl.constexpr(philox.MULTIPLIER - 2**32)
SCRAMBLE = tl.constexpr(philox.SCRAMBLE - 2**32)


@triton.jit
def _words(seed, counter, address, call, stream):  # type: ignore[no-untyped-def]
    """Four words for each lane: Philox4x32-10 as in `philox`, with products of 64 bits, one instruction each."""
    key = seed.to(tl.int64)  # a small seed comes as 32 bits
    k0, k1 = key.to(tl.uint32), (key >> 32).to(tl.uint32)
    c0 = counter.to(tl.uint32)
    zero = tl.zeros_like(c0)
    c1, c2, c3 = zero + address.to(tl.uint32), zero + call.to(tl.uint32), zero + stream
    for _ in tl.static_range(10):
        a = c0.to(tl.uint64) * 0xD2511F53
        b = c2.to(tl.uint64) * 0xCD9E8D57
        c0 = (b >> 32).to(tl.uint32) ^ c1 ^ k0
        c2 = (a >> 32).to(tl.uint32) ^ c3 ^ k1
        c1 = b.to(tl.uint32)
        c3 = a.to(tl.uint32)
        k0 = k0 + 0x9E3779B9
        k1 = k1 + 0xBB67AE85
    return (
        c0.to(tl.int32, bitcast=True), c1.to(tl.int32, bitcast=True),
        c2.to(tl.int32, bitcast=True), c3.to(tl.int32, bitcast=True),
    )  # fmt: skip


@triton.jit
def _tile(x, y, sources, targets, sizes, tensors, tiles, skip, LANES: tl.constexpr, ALIGNED: tl.constexpr):  # type: ignore[no-untyped-def]
    """This program's tensor, the counters of its lanes, its place in x and y, and how many elements there are."""
    p = tl.program_id(0) + skip
    k = tl.load(tensors + p)
    tile = tl.load(tiles + p)
    source = tl.load(sources + k)
    target = tl.load(targets + k)
    if ALIGNED:  # reads and writes sixteen bytes wide
        source = tl.multiple_of(source, 8)
        target = tl.multiple_of(target, 8)
    start = tile.to(tl.int64) * (LANES * ROWS * TIMES)
    left = tl.minimum(tl.load(sizes + k) - start, LANES * ROWS * TIMES).to(tl.int32)
    return k, tile * LANES + tl.arange(0, LANES), x + source + start, y + target + start, left


@triton.jit
def _place(row, LANES: tl.constexpr):  # type: ignore[no-untyped-def]
    """Where rows lie in a tile."""
    return row * LANES + tl.arange(0, LANES)[None, :]


@triton.jit
def _load(x, place, left, WHOLE: tl.constexpr):  # type: ignore[no-untyped-def]
    """In float32; whole tiles go without masks."""
    if WHOLE:
        return tl.load(x + place).to(tl.float32)
    return tl.load(x + place, mask=place < left, other=0.0).to(tl.float32)


@triton.jit
def _store(y, place, value, left, WHOLE: tl.constexpr):  # type: ignore[no-untyped-def]
    value = value.to(y.dtype.element_ty)
    if WHOLE:
        tl.store(y + place, value)
    else:
        tl.store(y + place, value, mask=place < left)


@triton.jit
def _signed(word, row, c):  # type: ignore[no-untyped-def]
    """c, or where the word's bit is 0 minus c."""
    minus = (-c).to(tl.int32, bitcast=True)
    return (((word[None, :] << (31 - row)) & -2147483648) ^ minus).to(tl.float32, bitcast=True)


@triton.jit
def _sixteen(r0, r1, r2, r3, row):  # type: ignore[no-untyped-def]
    """Sixteen random bits for each element of eight rows; see `philox.rounding`."""
    i = tl.arange(0, ROWS)[:, None] % 4
    word = tl.where(i < 2, tl.where(i < 1, r0[None, :], r1[None, :]), tl.where(i < 3, r2[None, :], r3[None, :]))
    return ((word * ((((row // 4 + 1) * MULTIPLIER) ^ SCRAMBLE) | 1)) >> 16) & 0xFFFF


@triton.jit
def _rounded(y, bits, DROP: tl.constexpr, LEAST: tl.constexpr):  # type: ignore[no-untyped-def]
    """y rounded to a neighbour by sixteen random bits; see `passes.stochastic`."""
    number = y.to(tl.int32, bitcast=True)
    if DROP == 16:
        return tl.where(y != y, y, ((number + bits) & -65536).to(tl.float32, bitcast=True))
    exponent = tl.maximum((number >> 23) & 0xFF, LEAST) - (23 - DROP)
    exponent = tl.minimum(tl.maximum(exponent, 1), 253)
    quantum = (exponent << 23).to(tl.float32, bitcast=True)
    inverse = ((254 - exponent) << 23).to(tl.float32, bitcast=True)
    u = (bits >> (16 - DROP)).to(tl.float32) * (1.0 / (1 << DROP))
    return tl.floor(y * inverse + u) * quantum


@triton.jit(do_not_specialize=["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "first", "seed", "update", "skip"])
def move_kernel(  # type: ignore[no-untyped-def]
    x, y, sources, targets, sizes, addresses, scales, tensors, tiles, table,
    c0, c1, c2, c3, c4, c5, c6, c7, first, seed, update, skip,
    Q: tl.constexpr, ALIKE: tl.constexpr, DROP: tl.constexpr, LEAST: tl.constexpr,
    LANES: tl.constexpr, SIGNS: tl.constexpr, ROUNDING: tl.constexpr, ALIGNED: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """Up to eight directions. Q = 1: any; else `first` is a multiple of four and Q is four or eight.

    x and y are the first tensors of the group; `sources` and `targets` say how far from them the others lie.
    Coefficients are arguments, or (not ALIKE) rows of `table`. DROP > 0: that many bits are rounded off at random.
    """
    k, counter, x, y, left = _tile(x, y, sources, targets, sizes, tensors, tiles, skip, LANES, ALIGNED)
    address = tl.load(addresses + k)
    w0, w1, w2, w3 = _words(seed, counter, address, first // 4, SIGNS)
    if Q == 1:
        word = first % 4
        w0 = tl.where(word == 0, w0, tl.where(word == 1, w1, tl.where(word == 2, w2, w3)))
    v0, v1, v2, v3 = w0, w1, w2, w3
    if Q == 8:
        v0, v1, v2, v3 = _words(seed, counter, address, first // 4 + 1, SIGNS)
    if not ALIKE:
        c0 = tl.load(table + k * Q)
        if Q >= 4:
            c1, c2, c3 = tl.load(table + k * Q + 1), tl.load(table + k * Q + 2), tl.load(table + k * Q + 3)
        if Q == 8:
            c4, c5 = tl.load(table + k * Q + 4), tl.load(table + k * Q + 5)
            c6, c7 = tl.load(table + k * Q + 6), tl.load(table + k * Q + 7)
    scale = tl.load(scales + k)
    c0, c1, c2, c3 = c0 * scale, c1 * scale, c2 * scale, c3 * scale
    c4, c5, c6, c7 = c4 * scale, c5 * scale, c6 * scale, c7 * scale
    r0, r1, r2, r3 = w0, w1, w2, w3
    if DROP > 0:
        r0, r1, r2, r3 = _words(seed, counter, address, update, ROUNDING)
    for group in range(TIMES if WHOLE else tl.cdiv(left, LANES * ROWS)):
        row = group * ROWS + tl.arange(0, ROWS)[:, None]
        place = _place(row, LANES)
        value = _load(x, place, left, WHOLE)
        total = _signed(w0, row, c0)  # the sum is made in the order of j
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
        if DROP > 0:
            value = _rounded(value, _sixteen(r0, r1, r2, r3, row), DROP, LEAST)
        _store(y, place, value, left, WHOLE)


@triton.jit(do_not_specialize=["share", "seed", "number", "skip"])
def blend_kernel(  # type: ignore[no-untyped-def]
    x, y, sources, targets, sizes, addresses, tensors, tiles, share, seed, number, skip,
    LATE: tl.constexpr, DROP: tl.constexpr, LEAST: tl.constexpr, LANES: tl.constexpr, ROUNDING: tl.constexpr,
    ALIGNED: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """y += share (x - y), or (LATE) y = x + share (y - x): the mean of two numbers from the nearer one."""
    k, counter, x, y, left = _tile(x, y, sources, targets, sizes, tensors, tiles, skip, LANES, ALIGNED)
    address = tl.load(addresses + k)
    r0, r1, r2, r3 = counter, counter, counter, counter
    if DROP > 0:
        r0, r1, r2, r3 = _words(seed, counter, address, number, ROUNDING)
    for group in range(TIMES if WHOLE else tl.cdiv(left, LANES * ROWS)):
        row = group * ROWS + tl.arange(0, ROWS)[:, None]
        place = _place(row, LANES)
        value = _load(x, place, left, WHOLE)
        mean = _load(y, place, left, WHOLE)
        mean = value + share * (mean - value) if LATE else mean + share * (value - mean)
        if DROP > 0:
            mean = _rounded(mean, _sixteen(r0, r1, r2, r3, row), DROP, LEAST)
        _store(y, place, mean, left, WHOLE)
