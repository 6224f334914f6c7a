"""Distributions of search directions: uniform on the sphere, Gaussian, and the paper's anisotropic one.

Each turns standard normal numbers into directions v and knows the matrix that makes slope * matrix * v an unbiased
estimate of a linear function's gradient (on the subspace it searches).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from poem_cma._types import Array
from poem_cma.randomness import Stream, Streams
from poem_cma.spectrum import Spectrum, exact_moments

__all__ = ["Anisotropic", "Directions", "Gaussian", "Search", "Sphere", "anisotropic"]


class Search(Protocol):
    """A distribution of directions."""

    @property
    def dimension(self) -> float:
        """The number that stands for d in the smoothing radius: d, or d*."""

    @property
    def width(self) -> int:
        """How many standard normal numbers make one direction."""

    @property
    def reach(self) -> float:
        """No direction is longer than this."""

    def directions(self, Z: Array) -> Array:
        """Directions (..., d) from standard normal numbers (..., width), which may be overwritten."""

    def whiten(self, V: Array) -> Array:
        """The inverse second moment of the directions, applied to the rows of V."""

    def gradient(self, slopes: list[float], V: Array) -> Array:
        """The mean of slope times whitened direction."""


@dataclass(frozen=True, eq=False)
class Sphere:
    """Uniform on the unit sphere of a space of n <= d dimensions; `tangent` confines vectors to that space."""

    width: int  # d
    dimension: int  # n
    tangent: Callable[[Array], Array]
    reach: float = 1.0

    def directions(self, Z: Array) -> Array:
        return _normalised(self.tangent(Z))

    def whiten(self, V: Array) -> Array:
        return self.dimension * V  # E[v v'] = I/d

    def gradient(self, slopes: list[float], V: Array) -> Array:
        return _mean(slopes, V, self.dimension)


@dataclass(frozen=True, eq=False)
class Gaussian:
    """Standard normal directions, not normalised; cut at `reach` where the domain needs a bound."""

    width: int  # d
    dimension: int
    tangent: Callable[[Array], Array]
    reach: float = np.inf

    def directions(self, Z: Array) -> Array:
        U = self.tangent(Z)
        if self.reach < np.inf:
            U = U * np.minimum(1.0, self.reach / _lengths(U))
        return U

    def whiten(self, V: Array) -> Array:
        return V  # E[u u'] = I

    def gradient(self, slopes: list[float], V: Array) -> Array:
        return _mean(slopes, V)


@dataclass(frozen=True, eq=False)
class Anisotropic:
    """v = u/|u| with u ~ N(0, Sigma): the paper's directions. Built by `anisotropic`.

    `inverse` and `inverse_floor` are the eigenvalues of the whitening matrix on the spectrum's vectors and beside them.
    """

    spectrum: Spectrum
    inverse: Array
    inverse_floor: float
    tangent: Callable[[Array], Array]
    reach: float = 1.0

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

    def whiten(self, V: Array) -> Array:
        Q = self.spectrum.vectors
        C = V @ Q
        if self.inverse_floor == 0.0:
            return (C * self.inverse) @ Q.T
        return self.inverse_floor * V + (C * (self.inverse - self.inverse_floor)) @ Q.T

    def gradient(self, slopes: list[float], V: Array) -> Array:
        return self.whiten(_mean(slopes, V))


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


class Directions:
    """Direction number n of a search, a pure function of the seed and n, drawn a block at a time for speed."""

    def __init__(self, streams: Streams, rows: int, d: int) -> None:
        self.rows = rows
        self.block = max(1, 2**13 // (rows * d))
        self._streams = streams
        self._search: Search | None = None  # whose block is held
        self._at = self._number = -1
        self._V: Array = np.empty(0)  # the block
        self._probe: Array = np.empty(0)  # and the probe last asked for, which is asked for again when told

    def __call__(self, search: Search, number: int) -> Array:
        """The directions (rows, d) of probe `number`."""
        if number != self._number or search is not self._search:
            self._find(search, number)
        return self._probe

    def _find(self, search: Search, number: int) -> None:
        block, row = divmod(number, self.block)
        if block != self._at or search is not self._search:
            rng = self._streams.at(Stream.DIRECTIONS, block)
            self._V = search.directions(rng.standard_normal((self.block, self.rows, search.width)))
            self._at, self._search = block, search
        self._number, self._probe = number, self._V[row]


def _mean(slopes: list[float], V: Array, factor: float = 1.0) -> Array:
    """factor / q * sum_j slope_j v_j."""
    q = len(slopes)
    if q == 1:
        g: Array = (factor * slopes[0]) * V[0]
    else:
        g = (factor / q * np.array(slopes)) @ V
    return g


def _lengths(U: Array) -> Array:
    squares: Array = np.einsum("...i,...i->...", U, U)[..., None]
    return np.sqrt(squares)


def _normalised(U: Array) -> Array:
    U /= _lengths(U)
    return U
