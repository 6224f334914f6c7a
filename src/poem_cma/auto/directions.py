"""Forward differences along random directions, and in a subspace that is known."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from math import isfinite, isinf, isnan, nan
from typing import Any, NamedTuple

import numpy as np

from poem_cma._types import Array
from poem_cma.arithmetic import LONG, length
from poem_cma.auto.estimators import ROUNDING, Tangent, around, base_point, one_by_one, stretch_of
from poem_cma.core import Run

__all__ = [
    "BESIDE",
    "DIRECTIONS",
    "FIRST",
    "SELDOM",
    "SHARED",
    "Drawn",
    "Haar",
    "directions_a_step",
    "draw_haar",
    "drawn",
    "haar",
    "many_differences",
    "many_gradients",
    "needed_directions",
    "orthonormal",
    "with_last_of",
    "worked_out",
]

_MANY_DIMENSIONS = 2000  # in which random directions are taken for orthogonal

#: Places that are asked first, where samples may be flat: the base and two directions; with a subspace two more.
FIRST = 3

#: Random directions a step,
DIRECTIONS = 4

#: of which, at x_0, the last are the same for all samples,
SHARED = 2

#: and beside a subspace, where there are any.
BESIDE = 2

#: Where all slopes are known to lie in a subspace, the directions beside it are asked in one estimate of so many.
SELDOM = 8


def directions_a_step(run: Run) -> int:
    """How many random directions a step takes on one xi."""
    return DIRECTIONS if run.method.settings.get("directions", True) else 1


class Haar(NamedTuple):
    """Forward differences along orthonormal directions: exact on a subspace, random in its complement.

    Two random directions, and two of the subspace, come first: where none sees a change, the sample is taken as flat.
    While no sample has been flat, all are asked at once. There may be no random directions: what other estimates see
    along theirs then counts for several.
    """

    base: Array
    directions: Array  # (m + k, d): m at random, then
    k: int  # of the subspace
    stretch: Array | float  # of the metric: directions are divided by it, gradients multiplied
    h: float
    dimension: int  # of the space that is searched
    counts_for: int = 1  # estimates, all others of which have no random directions

    @property
    def size(self) -> int:
        return 1 + len(self.directions)

    def points(self, places: list[int]) -> Iterable[Array]:
        return self._rows(places) if len(self.base) <= LONG else one_by_one(self._rows, places)

    def _rows(self, places: list[int]) -> Array:
        """The points of places that follow each other."""
        base, V = self.base, self.directions
        rows = np.empty((len(places), len(base)), base.dtype)
        ahead = rows
        if places[0] == 0:
            rows[0], ahead = base, rows[1:]
        np.multiply(self.h / self.stretch, V[places[-1] - len(ahead) : places[-1]], out=ahead)
        ahead += base
        return rows

    def needed(self, v: Array, eps: float) -> list[int]:
        return needed_directions(v, self.k, eps, whole=False)

    def differences(self, v: Array, eps: float) -> tuple[list[float], float]:
        """F's change along each direction: zero where the sample was found flat, NaN where the call failed.

        In a list: there are few, and Python's numbers are quicker.
        """
        base, *F = v.tolist()
        near = ROUNDING * eps * abs(base)
        return [nan if isinf(f) else f - base if abs(f - base) > near else 0.0 for f in F], self.h

    def gradient(self, slopes: list[float], d: int) -> Array:
        k, V = self.k, self.directions
        m = len(V) - k
        if m:
            c, beside = slopes[:m], V[:m]
            if not isfinite(sum(c)):
                beside = beside[list(map(isfinite, c))]  # the mean over the others is as unbiased
                c = [slope for slope in c if isfinite(slope)]
            gain = self.counts_for * (self.dimension - k) / len(c)
            g: Array = np.array([gain * slope for slope in c], V.dtype).dot(beside)
        if k:
            within = np.array(slopes[m:], V.dtype).dot(V[m:])
            g = g + within if m else within
        if not (isinstance(self.stretch, float) and self.stretch == 1.0):
            g *= self.stretch
        return g

    def usable(self, v: Array) -> bool:
        F = v.tolist()
        if isfinite(sum(F)):
            return True
        m = len(self.directions) - self.k
        beside, within = F[1 : 1 + m], F[1 + m :]
        return isfinite(F[0]) and not (m and all(map(isinf, beside))) and not any(map(isinf, within))


def many_differences(F: Array, eps: float) -> Array:
    """`Haar.differences` of many runs, from values (1 + q, n) that have not failed; NaN where they were not asked."""
    change: Array = F[1:] - F[0]
    change[~(np.abs(change) > ROUNDING * eps * np.abs(F[0]))] = 0.0
    return change


def many_gradients(slopes: Array, V: Array, dimension: int, stretch: Array | float) -> Array:
    """`Haar.gradient` of many runs, from slopes (q, n) along random directions V (n, q, d)."""
    c = dimension / len(slopes) * slopes.T
    g: Array = (c[:, None] @ V)[:, 0]
    if not (isinstance(stretch, float) and stretch == 1.0):
        g *= stretch
    return g


def needed_directions(v: Array, k: int, eps: float, whole: bool) -> list[int]:
    """`Haar.needed`, which can be told before the directions, k of a subspace among them, are drawn."""
    F = v.tolist()
    if whole and isnan(F[0]):
        return list(range(len(F)))
    first = 1 + min(FIRST - 1, len(F) - 1 - k) + min(FIRST - 1, k)
    if isnan(F[0]):
        return list(range(first))
    if isnan(F[-1]) and isfinite(F[0]):
        near = ROUNDING * eps * abs(F[0])
        seen = [f for f in F[1:first] if isfinite(f)]
        if not seen or any(abs(f - F[0]) > near for f in seen):
            return list(range(first, len(v)))
    return []


#: The random numbers of an estimate along random directions: w, which are d + 2 for the base, |w|, and q orthonormal
#: directions V (q, d).
Drawn = tuple[Array, float, Array]


def drawn(rngs: Iterable[np.random.Generator], count: int, q: int, x: Array, tangent: Tangent) -> list[Drawn]:
    """Of as many estimates as there are generators, `count`, worked on together."""
    numbers = np.empty((count, len(x) + 2 + q * len(x)), x.dtype)
    for rng, row in zip(rngs, numbers, strict=True):
        rng.standard_normal(out=row, dtype=x.dtype)
    W, V = worked_out(numbers, q, tangent)
    return list(zip(W, map(length, W), V, strict=True))


def worked_out(numbers: Array, q: int, tangent: Tangent) -> tuple[Array, Array]:
    """Normal numbers (..., d + 2 + q d) as w (..., d + 2) and V (..., q, d)."""
    d = (numbers.shape[-1] - 2) // (q + 1)
    Z = numbers[..., d + 2 :].reshape(*numbers.shape[:-1], q, d)
    return numbers[..., : d + 2], orthonormal(tangent(Z))


def with_last_of(first: Drawn, now: Drawn) -> Drawn:
    """The same, but for the last directions, which are those of another estimate."""
    w, size, V = now
    return w, size, np.concatenate((V[:-SHARED], first[2][-SHARED:]))


def haar(now: Drawn, x: Array, mu: float, metric: Array, tangent: Tangent, n: int, step: float) -> Haar:
    """Along random directions of a space of n dimensions."""
    (w, size, V), stretch = now, stretch_of(metric)
    return Haar(around(x, mu, stretch, tangent, w, size), V, 0, stretch, step * mu, n)


def draw_haar(
    rng: np.random.Generator,
    x: Array,
    mu: float,
    metric: Array,
    tangent: Tangent,
    n: int,
    q: int,
    subspace: Array,
    step: float = 0.1,
    counts_for: int = 1,
) -> Haar:
    """q orthonormal directions beside the subspace, within the domain's directions (of dimension n)."""
    k = len(subspace)
    if not k:
        return haar(drawn([rng], 1, min(q, n), x, tangent)[0], x, mu, metric, tangent, n, step)
    base = base_point(rng, x, mu, metric, tangent)
    Z = tangent(rng.standard_normal((min(q, n - k), len(x)), x.dtype))
    beside = orthonormal(Z - (Z @ subspace.T) @ subspace) if q else Z
    # Turned at random, so that none of its directions is blind to a kind of samples.
    factors, tau, _, _ = _lapack().dgeqrf(rng.standard_normal((k, k)))
    subspace = _lapack().dorgqr(factors, tau)[0] @ subspace
    return Haar(base, np.concatenate((beside, subspace)), k, stretch_of(metric), step * mu, n, counts_for)


def orthonormal(Z: Array) -> Array:
    """Orthonormal bases of the rows of Z (..., q, d), which are random.

    Where there are many more dimensions than rows, K = Z Z' is well conditioned, and its Cholesky factor does what a QR
    decomposition does, sooner. In thousands of dimensions random directions are orthogonal but for a few percent, which
    biases nothing: they are left as they are.
    """
    q, d = Z.shape[-2:]
    if d > _MANY_DIMENSIONS:
        rows = Z.reshape(-1, d)
        rows /= length(rows).astype(Z.dtype)
        return rows.reshape(Z.shape)
    if 4 * q > d:
        return np.linalg.qr(Z.swapaxes(-1, -2))[0].swapaxes(-1, -2)
    L = np.linalg.cholesky((Z @ Z.swapaxes(-1, -2)).astype(np.float64, copy=False))
    basis: Array = np.linalg.inv(L).astype(Z.dtype, copy=False) @ Z
    return basis


@cache
def _lapack() -> Any:
    from scipy.linalg import lapack  # numpy's QR takes five times as long on small matrices

    return lapack
