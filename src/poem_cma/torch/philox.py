"""Random bits by address: Philox4x32-10 (Salmon et al. 2011) in plain integer operations of PyTorch.

The sign of an element is a pure function of (seed, direction, tensor, offset in the tensor), so a direction is never
stored: it is made again wherever it is needed, on any device, in any order and for any part of a tensor. The Triton
kernels make the same bits.

A tensor is cut into tiles of 32 rows of `LANES` elements. One 32-bit word serves the 32 elements of a lane, one bit
for each row: a kernel makes a word once and uses all of it.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict

import torch
from torch import Tensor

__all__ = [
    "LANES", "MULTIPLIER", "ROUNDING", "ROWS", "SCRAMBLE", "SIGNS", "TILE", "SmallWords", "address_of", "bits",
    "rounding", "words",
]  # fmt: skip

LANES = 1024
ROWS = 32
TILE = LANES * ROWS

# The fourth word of the counter says what the bits are for.
SIGNS = 0
ROUNDING = 1

# What makes eight numbers of one word, when it rounds: see `rounding`.
MULTIPLIER, SCRAMBLE = 0x9E3779B9, 0x85EBCA6B

_MASK = 0xFFFFFFFF
_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_WEYL = 0x9E3779B9, 0xBB67AE85


def philox(
    c0: Tensor, c1: Tensor | int, c2: Tensor | int, c3: Tensor | int, seed: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Four 32-bit words, in 64-bit integers, for each counter; `seed` is the 64-bit key."""
    k0, k1 = seed & _MASK, seed >> 32 & _MASK
    c1, c2, c3 = (torch.as_tensor(c, dtype=torch.int64, device=c0.device) for c in (c1, c2, c3))
    for _ in range(10):
        a, b = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]  # they wrap as unsigned products do
        c0, c1, c2, c3 = (b >> 32 & _MASK) ^ c1 ^ k0, b & _MASK, (a >> 32 & _MASK) ^ c3 ^ k1, a & _MASK
        k0, k1 = k0 + _WEYL[0] & _MASK, k1 + _WEYL[1] & _MASK
    return c0, c1, c2, c3


def address_of(name: str) -> int:
    """The number that a tensor's name stands for in the counter."""
    return zlib.crc32(name.encode())


def words(address: int, start: int, stop: int, call: int, stream: int, seed: int, device: torch.device) -> Tensor:
    """The words (4, n) of the lanes that elements `start` to `stop` of a tensor need, whole tiles at a time."""
    first, last = start // TILE, (stop - 1) // TILE
    c0 = torch.arange(first * LANES, (last + 1) * LANES, device=device)
    if first == last == 0 and stop < LANES:
        c0 = c0[:stop]
    return torch.stack(torch.broadcast_tensors(*philox(c0, address, call, stream, seed)))


class SmallWords:
    """The words of many small tensors, made together and kept for a few calls: plain PyTorch is slow by the call."""

    MOST = 2**17  # words; no tensor is then longer than one piece of a plain pass

    def __init__(self, addresses: list[int], sizes: list[int], device: torch.device) -> None:
        counts = [n if n < LANES else -(-n // TILE) * LANES for n in sizes]
        self.useful = sum(counts) <= self.MOST
        self._counts, self._kept = counts, OrderedDict[tuple[int, int], tuple[Tensor, ...]]()
        if self.useful:
            self._counters = torch.cat([torch.arange(n) for n in counts]).to(device)
            self._addresses = torch.repeat_interleave(torch.tensor(addresses), torch.tensor(counts)).to(device)

    def __call__(self, call: int, seed: int) -> tuple[Tensor, ...]:
        """For each tensor, the words (4, n) of its signs."""
        if (call, seed) not in self._kept:
            made = torch.stack(philox(self._counters, self._addresses, call, SIGNS, seed))
            self._kept[call, seed] = made.split(self._counts, dim=1)
            if len(self._kept) > 6:
                self._kept.popitem(last=False)
        return self._kept[call, seed]


def bits(word: Tensor, start: int, stop: int) -> Tensor:
    """One bit (0 or 1) for each element from `start` to `stop`, from the words of their tiles."""
    rows = torch.arange(min(ROWS, -(-stop // LANES)), device=word.device)
    spread = word.view(-1, 1, min(LANES, len(word))) >> rows[None, :, None] & 1
    first = start // TILE * TILE
    return spread.flatten()[start - first : stop - first]


def rounding(address: int, start: int, stop: int, call: int, seed: int, device: torch.device) -> Tensor:
    """Sixteen random bits for each element: row r of a lane has the upper half of word r % 4 times multiplier r // 4.

    The product of a uniform word and an odd number is uniform, so the mean is right; that eight elements of a tensor,
    thousands apart, share a word costs nothing that can be measured, and saves seven of eight calls.
    """
    first = start // TILE * TILE
    rows = min(ROWS, -(-stop // LANES))
    w = words(address, start, stop, call, ROUNDING, seed, device)
    w = w.view(4, -1, min(LANES, w.shape[1]))  # word, tile, lane
    r = torch.arange(rows, device=device)
    multipliers = ((r // 4 + 1) * MULTIPLIER ^ SCRAMBLE) & _MASK | 1
    spread = (w[r % 4] * multipliers[:, None, None] & _MASK) >> 16  # row, tile, lane
    return spread.transpose(0, 1).flatten()[start - first : stop - first]
