"""Distributions of search directions: uniform on the sphere, Gaussian, and the paper's anisotropic one.

Each turns standard normal numbers into directions v and knows the matrix that makes slope * matrix * v an unbiased
estimate of a linear function's gradient (on the subspace it searches).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from poem_cma._types import Array
from poem_cma.paper.algorithm_2 import Spectrum, exact_moments
from poem_cma.run.arithmetic import length
from poem_cma.run.randomness import Stream, Streams

__all__ = ["Anisotropic", "Directions", "Drawn", "Gaussian", "Search", "Sphere", "anisotropic", "drawn", "whiten"]


class Search(Protocol):
    """A distribution of directions."""

    @property
    def dimension(self) -> float:
        """The number that stands for d in the smoothing radius: d, or d*."""

    @property
    def width(self) -> int:
        """How many standard normal numbers make one direction."""

    def directions(self, Z: Array) -> Array:
        """Directions (..., d) from standard normal numbers (..., width), which may be overwritten."""

    @property
    def gain(self) -> float:
        """Whitening, the inverse second moment of the directions, is this factor times `reshaped`."""

    def reshaped(self, V: Array) -> Array:
        """The rows of V, whitened but for the factor; V itself where all directions are alike."""


@dataclass(frozen=True, eq=False)
class Sphere:
    """Uniform on the unit sphere of a space of n <= d dimensions; `tangent` confines vectors to that space."""

    width: int  # d
    dimension: int  # n
    tangent: Callable[[Array], Array]

    def directions(self, Z: Array) -> Array:
        return _normalised(self.tangent(Z))

    @property
    def gain(self) -> float:
        return self.dimension  # E[v v'] = I/d

    def reshaped(self, V: Array) -> Array:
        return V


@dataclass(frozen=True, eq=False)
class Gaussian:
    """Standard normal directions, not normalised."""

    width: int  # d
    dimension: int
    tangent: Callable[[Array], Array]
    gain: float = 1.0  # E[u u'] = I

    def directions(self, Z: Array) -> Array:
        return self.tangent(Z)

    def reshaped(self, V: Array) -> Array:
        return V


@dataclass(frozen=True, eq=False)
class Anisotropic:
    """v = u/|u| with u ~ N(0, Sigma): the paper's directions. Built by `anisotropic`.

    `inverse` and `inverse_floor` are the eigenvalues of the whitening matrix on the spectrum's vectors and beside them.
    """

    spectrum: Spectrum
    inverse: Array
    inverse_floor: float
    tangent: Callable[[Array], Array]
    gain: float = 1.0

    @property
    def dimension(self) -> float:
        return self.spectrum.effective_dimension

    @property
    def width(self) -> int:
        k = len(self.spectrum.eigenvalues)
        return k if self.spectrum.floor == 0.0 else k + len(self.spectrum.vectors)

    def directions(self, Z: Array) -> Array:
        s = self.spectrum
        k = len(s.eigenvalues)
        U: Array = (Z[..., :k] * np.sqrt(s.eigenvalues - s.floor)) @ s.vectors.T  # u = Q Λ^½ z
        if s.floor > 0.0:
            U = U + np.sqrt(s.floor) * self.tangent(Z[..., k:])
        return _normalised(U)

    def reshaped(self, V: Array) -> Array:
        Q = self.spectrum.vectors
        C = V @ Q
        if self.inverse_floor == 0.0:
            return (C * self.inverse) @ Q.T
        return self.inverse_floor * V + (C * (self.inverse - self.inverse_floor)) @ Q.T


def anisotropic(spectrum: Spectrum, tangent: Callable[[Array], Array], whitening: str) -> Anisotropic:
    """Directions from a spectrum, whitened as the paper does, Σ̃ = tr(Σ̂) Σ̂⁺, or by the exact second moment."""
    lam, floor = spectrum.eigenvalues, spectrum.floor
    rest = spectrum.rank - len(lam)
    if whitening == "exact":
        m, m_floor = exact_moments(lam, floor, rest)
    else:
        trace = lam.sum() + rest * floor
        m, m_floor = lam / trace, floor / trace
    return Anisotropic(spectrum, 1.0 / m, 1.0 / m_floor if m_floor > 0.0 else 0.0, tangent)


def whiten(search: Search, V: Array) -> Array:
    """The inverse second moment of the directions, applied to the rows of V."""
    return search.gain * search.reshaped(V)


class Drawn(NamedTuple):
    """The directions of a probe, and the gradient that a slope along the last of them stands for: slope * gain * w."""

    V: Array  # (rows, d)
    w: Array  # (d,)
    size: float  # |w| * gain


class Directions:
    """The directions of probe number n, a pure function of the seed and n, drawn a block at a time for speed."""

    def __init__(self, streams: Streams, rows: int, d: int, dtype: Any = np.float64) -> None:
        self.rows = rows
        self.size = max(1, 2**13 // (rows * d))  # of a block, in probes
        self._streams = streams
        self._dtype = dtype
        self._search: Search | None = None  # whose block is held
        self._first = 0  # its first probe
        self._block: list[Drawn] = []
        self._other: tuple[int, list[Drawn]] = (0, [])  # the one before: steps that are asked ahead may need both

    def __call__(self, search: Search, number: int) -> Drawn:
        """What is drawn for probe `number`."""
        at = number - self._first
        if not 0 <= at < len(self._block) or search is not self._search:
            at = self._turn_to(search, number)
        return self._block[at]

    def _turn_to(self, search: Search, number: int) -> int:
        """Hold the block of probe `number`, and the last one, if they are no vectors of a large space."""
        if search is not self._search or self.size == 1:
            self._block, self._other = [], (0, [])  # before the next is made: it may be most of the memory
        now, self._other = self._other, (self._first, self._block)
        self._first, self._block = now
        block, at = divmod(number, self.size)
        if self._first != block * self.size or not self._block:
            V, W, sizes = self.draw(search, block)
            self._block = list(map(Drawn, V, W, sizes[:, 0].tolist()))
            self._first, self._search = block * self.size, search
        return at

    def another(self) -> Directions:
        """For another step in flight: this one, for it holds nothing of a step."""
        return self

    def draw(self, search: Search, block: int) -> tuple[Array, Array, Array]:
        """A block of directions (size, rows, d), their w (size, d), and the sizes of these (size, 1)."""
        shape = (self.size, self.rows, search.width)
        return drawn(search, self.generator(block).standard_normal(shape, self._dtype))

    def generator(self, block: int) -> np.random.Generator:
        """Where a block's numbers come from, at its beginning."""
        return self._streams.block(Stream.DIRECTIONS, block)


def drawn(search: Search, Z: Array) -> tuple[Array, Array, Array]:
    """Directions from standard normal numbers (..., rows, width), which may be overwritten, their w, and its size."""
    V = search.directions(Z).astype(Z.dtype, copy=False)
    W = search.reshaped(V[..., -1, :]).astype(Z.dtype, copy=False)
    return V, W, search.gain * _lengths(W)


def _lengths(U: Array) -> Array:
    lengths: Array = length(U.reshape(-1, U.shape[-1])).reshape(*U.shape[:-1], 1)
    return lengths.astype(U.dtype, copy=False)


def _normalised(U: Array) -> Array:
    U /= _lengths(U)
    return U
