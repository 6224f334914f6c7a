"""Gradient estimates on one xi, in as few calls as the sample allows.

An estimator has places on which F may be asked. `needed` says which of them are worth a call, given the values so far;
when it names none, `gradient` turns what is known into an estimate. Both estimators take their differences around a
base point drawn at random within the smoothing radius, which makes them unbiased for the smoothed function also where F
has kinks. Values are NaN where they are not asked, and infinite where the call failed; they are rounded to `eps`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from math import isfinite, isinf, isnan, nan, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from poem_cma._types import Array, IntArray
from poem_cma.arithmetic import LONG, length
from poem_cma.auto.state import is_even

__all__ = [
    "Drawn", "Haar", "Staircase", "draw_haar", "draw_staircase", "drawn", "haar", "needed_directions", "orthonormal",
    "step_length",
]  # fmt: skip

Tangent = Callable[[Array], Array]
Flags = NDArray[np.bool_]

_MANY_DIMENSIONS = 2000  # in which random directions are taken for orthogonal
_ROUNDING = 32.0  # values closer than so many units in the last place are equal


def step_length(eps: float) -> float:
    """The length of differences, in smoothing radii: as short as rounding allows."""
    return 0.1 if eps > 1e-10 else 1e-3


def _around(x: Array, mu: float, stretch: Array | float, tangent: Tangent, w: Array, size: float) -> Array:
    """Uniform in the ellipsoid of radius mu around x: of d + 2 coordinates on a sphere, d are uniform in the ball.

    w are d + 2 normal numbers, and size is |w|.
    """
    base = tangent(w[:-2] * (mu / size / stretch))
    base += x
    return base


def _base(rng: np.random.Generator, x: Array, mu: float, metric: Array, tangent: Tangent) -> Array:
    w = rng.standard_normal(len(x) + 2, x.dtype)
    return _around(x, mu, stretch_of(metric), tangent, w, length(w))


class Staircase(NamedTuple):
    """A walk from the base along one axis after the other; F is asked on the walk, where it makes a difference.

    An interval of the walk whose ends have equal values is taken as flat, any other is halved until it is one axis
    long. A sample that depends on few variables costs about as many calls times a logarithm, one that is flat costs
    two, and none costs more than one call for each axis and one.
    """

    base: Array
    axes: IntArray
    steps: Array
    dense: bool  # few parts of a walk that is not flat will be: ask them all
    whole: bool = False  # ask everything at once

    @property
    def size(self) -> int:
        return len(self.axes) + 1

    def points(self, places: list[int]) -> Iterable[Array]:
        return self._rows(places) if len(self.base) <= LONG else _one_by_one(self._rows, places)

    def _rows(self, places: list[int]) -> Array:
        rows = np.empty((len(places), len(self.base)), self.base.dtype)
        rows[:] = self.base
        start = self.base[self.axes]
        passed = np.arange(len(self.axes)) < np.array(places)[:, None]
        rows[:, self.axes] = np.where(passed, start + self.steps, start)
        return rows

    def needed(self, v: Array, eps: float) -> list[int]:
        if isnan(v[0]):
            return list(range(self.size)) if self.whole or self.size <= 4 else [0, self.size - 1]
        known, _, uneven = self._known(v, eps)
        if self.dense and uneven.any():
            return np.isnan(v).nonzero()[0].tolist()
        ends = known.tolist()
        split = [(ends[i], ends[i + 1]) for i in uneven.nonzero()[0].tolist()]
        middles = [(lo + hi) // 2 for lo, hi in split if hi - lo > 1]
        return [middle for middle in middles if isnan(v[middle])]

    def _known(self, v: Array, eps: float) -> tuple[IntArray, Array, Flags]:
        """The places with a value, how it changes from each to the next, and whether by more than rounding."""
        known = np.isfinite(v).nonzero()[0]
        F = v[known]
        change = F[1:] - F[:-1]
        return known, change, np.abs(change) > _ROUNDING * eps * float(np.abs(F).max(initial=0.0))

    def differences(self, v: Array, eps: float) -> tuple[Array, Array]:
        """F's change over each axis, and the step it belongs to; where a call failed, over the whole interval.

        The signs of the steps are random, so that a change over several axes, divided by the step along one of them,
        is still an unbiased slope along that one.
        """
        if not self.usable(v):
            return np.zeros(len(self.axes)), self.steps
        known, change, uneven = self._known(v, eps)
        return np.where(uneven, change, 0.0).repeat(known[1:] - known[:-1]), self.steps

    def gradient(self, slopes: Array, d: int) -> Array:
        g = np.zeros(d, self.base.dtype)
        g[self.axes] = slopes * (d / len(self.axes))
        return g

    def usable(self, v: Array) -> bool:
        return isfinite(v[0]) and isfinite(v[-1])


def draw_staircase(
    rng: np.random.Generator,
    x: Array,
    mu: float,
    metric: Array,
    tangent: Tangent,
    order: IntArray,
    q: int,
    dense: bool,
    whole: bool = False,
    step: float = 0.1,
) -> Staircase:
    """A walk along q axes chosen at random, in the given order, with random signs and lengths."""
    base = _base(rng, x, mu, metric, tangent)
    axes = order if q >= len(order) else order[np.sort(rng.permutation(len(order))[:q])]
    signs = 2.0 * rng.integers(0, 2, len(axes)) - 1.0
    steps = signs * rng.uniform(0.5, 1.5, len(axes)) * (step * mu / np.sqrt(len(axes))) / np.sqrt(metric[axes])
    steps = (base[axes] + steps.astype(base.dtype)) - base[axes]  # the step as floating point holds it
    steps[steps == 0.0] = np.finfo(steps.dtype).tiny
    return Staircase(base, axes, steps, dense, whole)


class Haar(NamedTuple):
    """Forward differences along orthonormal directions: exact on a subspace, random in its complement.

    Two random directions, and two of the subspace, come first: where none sees a change, the sample is taken as flat.
    While no sample has been flat, all are asked at once.
    """

    base: Array
    directions: Array  # (m + k, d): m at random, then
    k: int  # of the subspace
    stretch: Array | float  # of the metric: directions are divided by it, gradients multiplied
    h: float
    dimension: int  # of the space that is searched

    @property
    def size(self) -> int:
        return 1 + len(self.directions)

    def points(self, places: list[int]) -> Iterable[Array]:
        return self._rows(places) if len(self.base) <= LONG else _one_by_one(self._rows, places)

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
        near = _ROUNDING * eps * abs(base)
        return [nan if isinf(f) else f - base if abs(f - base) > near else 0.0 for f in F], self.h

    def gradient(self, slopes: list[float], d: int) -> Array:
        k, V = self.k, self.directions
        m = len(V) - k
        c = slopes[:m]
        if not isfinite(sum(c)):
            kept = list(map(isfinite, c))  # the mean over the others is as unbiased
            c, V = [slope for slope in c if isfinite(slope)], V[:m][kept]
        gain = (self.dimension - k) / len(c)
        g: Array = np.array([gain * slope for slope in c], V.dtype).dot(V[: len(c)])
        if k:
            g += np.array(slopes[m:], V.dtype).dot(self.directions[m:])
        if not (isinstance(self.stretch, float) and self.stretch == 1.0):
            g *= self.stretch
        return g

    def usable(self, v: Array) -> bool:
        F = v.tolist()
        if isfinite(sum(F)):
            return True
        m = len(self.directions) - self.k
        return isfinite(F[0]) and not all(map(isinf, F[1 : 1 + m])) and not any(map(isinf, F[1 + m :]))


def needed_directions(v: Array, k: int, eps: float, whole: bool) -> list[int]:
    """`Haar.needed`, which can be told before the directions, k of a subspace among them, are drawn."""
    first = min(5 if k else 3, len(v))
    F = v.tolist()
    if isnan(F[0]):
        return list(range(len(F) if whole else first))
    if isnan(F[-1]) and isfinite(F[0]):
        near = _ROUNDING * eps * abs(F[0])
        seen = [f for f in F[1:first] if isfinite(f)]
        if not seen or any(abs(f - F[0]) > near for f in seen):
            return list(range(first, len(v)))
    return []


#: The random numbers of an estimate along random directions: w, which are d + 2 for the base, |w|, and q orthonormal
#: directions V (q, d).
Drawn = tuple[Array, float, Array]


def drawn(rngs: Iterable[np.random.Generator], count: int, q: int, x: Array, tangent: Tangent) -> list[Drawn]:
    """Of as many estimates as there are generators, `count`, worked on together."""
    d = len(x)
    numbers = np.empty((count, d + 2 + q * d), x.dtype)
    for rng, row in zip(rngs, numbers, strict=True):
        rng.standard_normal(out=row, dtype=x.dtype)
    W, Z = numbers[:, : d + 2], numbers[:, d + 2 :].reshape(count, q, d)
    return list(zip(W, map(length, W), orthonormal(tangent(Z)), strict=True))


def haar(now: Drawn, x: Array, mu: float, metric: Array, tangent: Tangent, n: int, step: float) -> Haar:
    """Along random directions of a space of n dimensions."""
    (w, size, V), stretch = now, stretch_of(metric)
    return Haar(_around(x, mu, stretch, tangent, w, size), V, 0, stretch, step * mu, n)


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
) -> Haar:
    """q orthonormal directions beside the subspace, within the domain's directions (of dimension n)."""
    k = len(subspace)
    if not k:
        return haar(drawn([rng], 1, min(q, n), x, tangent)[0], x, mu, metric, tangent, n, step)
    base = _base(rng, x, mu, metric, tangent)
    Z = tangent(rng.standard_normal((min(q, n - k), len(x)), x.dtype))
    beside = orthonormal(Z - (Z @ subspace.T) @ subspace)
    # Turned at random, so that none of its directions is blind to a kind of samples.
    factors, tau, _, _ = _lapack().dgeqrf(rng.standard_normal((k, k)))
    subspace = _lapack().dorgqr(factors, tau)[0] @ subspace
    return Haar(base, np.concatenate((beside, subspace)), k, stretch_of(metric), step * mu, n)


def stretch_of(metric: Array) -> Array | float:
    """The root of the metric; a number where it is even."""
    return sqrt(metric[0]) if is_even(metric) else np.sqrt(metric)


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


def _one_by_one(rows: Callable[[list[int]], Array], places: list[int]) -> Iterator[Array]:
    """The points of the places, one after the other, where they are long."""
    return (rows([place])[0] for place in places)
