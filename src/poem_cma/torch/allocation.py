"""Directions shaped by tensor: where the gradient has little energy per parameter, directions reach further.

The second moment of a gradient estimate from directions with covariance Sigma is tr(Sigma^-1) tr(Sigma A), with A the
second moment of the gradients; it is least for Sigma ~ A^(-1/2). Here Sigma is a number for each tensor. To learn the
energies without a call more, every direction leaves out each tensor with probability one half (and is longer by sqrt 2
in the others): a squared slope is larger by a tensor's share of the energy when the tensor is in.
Steps go along Sigma^-1 v, so that their mean is the gradient whatever the shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from poem_cma._types import Array, IntArray

__all__ = ["Allocation", "presence"]

_MEMORY = 0.998  # of a direction
_PATIENCE = 64  # directions a tensor before shapes are trusted


def presence(first: int, count: int, tensors: int, seed: int) -> IntArray:
    """Which tensors (0 or 1) the directions `first`, ... move, (count, tensors): a pure function of the numbers."""
    rows = [np.random.Generator(np.random.Philox(key=[seed, first + j])).integers(0, 2, tensors) for j in range(count)]
    return np.array(rows).reshape(count, tensors)


class Allocation(NamedTuple):
    """What is known of the tensors' energies, and the shape that follows."""

    sizes: tuple[int, ...]
    seed: int
    shape: tuple[float, ...]  # sigma by tensor; the mean of its square over the parameters is one
    excess: tuple[float, ...]  # sum of (squared slope / its mean) (2 presence - 1)
    weight: float = 0.0
    square: float = 0.0  # the mean squared slope

    @staticmethod
    def even(sizes: Sequence[int], seed: int) -> Allocation:
        return Allocation(tuple(sizes), seed, (1.0,) * len(sizes), (0.0,) * len(sizes))

    def shares(self) -> tuple[float, ...]:
        """Each tensor's share of the energy that the directions see, as far as it can be told from noise."""
        if self.weight == 0.0:
            return tuple(n / sum(self.sizes) for n in self.sizes)
        noise = (3.0 / self.weight) ** 0.5
        raw = np.maximum(np.array(self.excess) / self.weight, 0.5 * noise)
        return tuple((raw / raw.sum()).tolist())

    def whitened(self) -> tuple[tuple[float, ...], float]:
        """The shape of Sigma^-1 v as a direction of unit length, and its length; slope along v times it is unbiased."""
        n, inverse = np.array(self.sizes, dtype=float), 1.0 / np.array(self.shape)
        unit = _normed(inverse, n)
        return tuple(unit.tolist()), float(inverse[0] / unit[0])

    def told(self, first: int, slopes: Sequence[float]) -> Allocation:
        """After the slopes along the directions `first`, ..."""
        seen = 2.0 * presence(first, len(slopes), len(self.sizes), self.seed) - 1.0
        squares = np.array(slopes) ** 2
        mean = float(squares.mean())
        square = mean if self.weight == 0.0 else self.square + 0.05 * (mean - self.square)
        if square == 0.0:
            return self
        keep = _MEMORY ** len(slopes)
        excess = keep * np.array(self.excess) + (squares / square) @ seen
        now = self._replace(excess=tuple(excess.tolist()), weight=keep * self.weight + len(slopes), square=square)
        return now._reshaped() if now.weight > min(_PATIENCE * len(self.sizes), 0.5 / (1.0 - _MEMORY)) else now

    def _reshaped(self) -> Allocation:
        """sigma_k ~ (energy per parameter)^(-1/4), approached slowly."""
        n = np.array(self.sizes, dtype=float)
        old = np.array(self.shape)
        energy = np.array(self.shares()) / old**2 / n
        wish = _normed(energy**-0.25, n)
        return self._replace(shape=tuple(_normed(old * (wish / old) ** 0.02, n).tolist()))


def _normed(sigma: Array, n: Array) -> Array:
    scaled: Array = sigma / np.sqrt((sigma**2 * n).sum() / n.sum())
    return scaled
