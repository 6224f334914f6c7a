"""One pass over the weights: y = x + sum_j c_j z_j, with z_j random signs that are made on the way.

`apply` does it for a whole layout: with one Triton kernel for each device and dtype where Triton runs, in plain PyTorch
elsewhere. Both give the same bits: products of a sign and a number are exact, the sums are made in one order in float32
(float64 for float64 weights), and rounding to the weights' dtype is to nearest, or by random bits of the same address.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle

import torch
from torch import Tensor

from poem_cma.torch import launches, philox
from poem_cma.torch.layout import Block, Layout

__all__ = ["LOW", "apply", "plain", "stochastic"]

_PIECE = 128 * philox.TILE  # elements at a time: bounds the memory that integers and signs take
LOW = torch.bfloat16, torch.float16  # updates are rounded at random

Coefficients = Sequence[Sequence[float]]  # one row for each block, or one for all; in a row, one for each direction


def apply(layout: Layout, coefficients: Coefficients, first: int, seed: int, *, update: int | None = None) -> None:
    """Write x + sum_j c_j z_(first + j) to the work buffer, or, with `update`, to x itself, rounded at random.

    A block's own scale multiplies its coefficients.
    `update` numbers the step: it is the address of the random bits that round.
    """
    alike = len(coefficients) == 1
    of = {} if alike else {id(b): c for b, c in zip(layout.blocks, coefficients, strict=True)}
    for (device, dtype), blocks in layout.groups.items():
        rows = coefficients if alike else [of[id(b)] for b in blocks]
        if launches.uses_kernels(device, dtype):
            launches.move(blocks, rows, first, seed, update)
        else:
            small = layout.words[device, dtype]
            for k, (b, c) in enumerate(zip(blocks, cycle(rows), strict=False)):
                made = {n: small(n, seed)[k] for n in _calls(first, len(c))} if small.useful else {}
                plain(b, c, first, seed, update, made)


def _calls(first: int, count: int) -> range:
    """The calls of the generator that make directions `first`, ...: four each."""
    return range(first // 4, (first + count - 1) // 4 + 1 if count else first // 4)


def plain(b: Block, c: Sequence[float], first: int, seed: int, update: int | None, made: Mapping[int, Tensor]) -> None:
    """The same for one tensor in plain PyTorch; `made` holds words that need not be made again, by call."""
    n = b.x.numel()
    for start in range(0, n, _PIECE):
        stop = min(n, start + _PIECE)
        x = b.x[start:stop]
        wide = torch.float64 if x.dtype is torch.float64 else torch.float32
        y = x.to(wide)
        if len(c):
            y = y + _combined(b, c, first, seed, start, stop, wide, made)
        if update is None:
            b.work[start:stop] = y.to(x.dtype)
        elif x.dtype in LOW:
            bits = philox.rounding(b.address, start, stop, update, seed, x.device)
            x.copy_(stochastic(y, bits, x.dtype))
        else:
            x.copy_(y)


def _combined(
    b: Block,
    c: Sequence[float],
    first: int,
    seed: int,
    start: int,
    stop: int,
    wide: torch.dtype,
    made: Mapping[int, Tensor],
) -> Tensor:
    """sum_j c_j z_(first + j) for a piece of a tensor, added in the order of j."""
    device = b.x.device
    total = torch.zeros(stop - start, dtype=wide, device=device)
    sizes = torch.tensor(c, dtype=wide) * torch.tensor(b.scale, dtype=wide)
    for j, size in enumerate(sizes.tolist()):
        call, word = divmod(first + j, 4)
        if j == 0 or word == 0:
            w = made[call] if made else philox.words(b.address, start, stop, call, philox.SIGNS, seed, device)
        total += (2 * philox.bits(w[word], start, stop) - 1).to(wide).mul_(size)
    return total


def stochastic(y: Tensor, bits: Tensor, dtype: torch.dtype) -> Tensor:
    """Round float32 to one of the two neighbours in `dtype` by sixteen random bits, so that the mean is y."""
    number = y.view(torch.int32)
    if dtype is torch.bfloat16:  # the upper half of float32: a carry from the lower half rounds away from zero
        rounded = (number + bits.to(torch.int32) & -0x10000).view(torch.float32)
        return torch.where(y.isnan(), y, rounded).to(dtype)
    mantissa, least = 10, 113  # of float16; the least exponent of a normal number, as float32 writes it
    drop = 23 - mantissa  # bits that there is no room for
    exponent = torch.clamp(torch.clamp(number >> 23 & 0xFF, min=least) - mantissa, 1, 253)
    quantum, inverse = (exponent << 23).view(torch.float32), (254 - exponent << 23).view(torch.float32)
    u = (bits >> 16 - drop).to(torch.float32) * 2.0**-drop
    return (torch.floor(y * inverse + u) * quantum).to(dtype)
