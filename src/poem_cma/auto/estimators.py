"""Gradient estimates on one xi, in as few calls as the sample allows.

An estimator has places on which F may be asked. `needed` says which of them are worth a call, given the values so far;
when it names none, `gradient` turns what is known into an estimate. Both estimators take their differences around a
base point drawn at random within the smoothing radius, which makes them unbiased for the smoothed function also where F
has kinks. Values are NaN where they are not asked, and infinite where the call failed; they are rounded to `eps`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isfinite, isinf, isnan, nan, sqrt

import numpy as np
from numpy.typing import NDArray

from poem_cma._types import Array, IntArray
from poem_cma.arithmetic import length
from poem_cma.auto.state import is_even

__all__ = ["Haar", "Staircase", "draw_haar", "draw_staircase", "step_length"]

Tangent = Callable[[Array], Array]
Flags = NDArray[np.bool_]

_MANY_DIMENSIONS = 2000  # in which random directions are taken for orthogonal
_ROUNDING = 32.0  # values closer than so many units in the last place are equal


def step_length(eps: float) -> float:
    """The length of differences, in smoothing radii: as short as rounding allows."""
    return 0.1 if eps > 1e-10 else 1e-3


def _close(a: Array, b: Array | float, size: float, eps: float) -> Flags:
    near: Flags = np.abs(a - b) <= _ROUNDING * eps * size
    return near


def _base(rng: np.random.Generator, x: Array, mu: float, metric: Array, tangent: Tangent) -> Array:
    """Uniform in the ellipsoid of radius mu around x: of d + 2 coordinates on a sphere, d are uniform in the ball."""
    w = rng.standard_normal(len(x) + 2, x.dtype)
    base = tangent(w[:-2] * (mu / length(w) / stretch_of(metric)))
    base += x
    return base


@dataclass(frozen=True, eq=False)
class Staircase:
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

    def points(self, places: list[int]) -> Iterator[Array]:
        for place in places:
            point = self.base.copy()
            point[self.axes[:place]] += self.steps[:place]
            yield point

    def needed(self, v: Array, eps: float) -> list[int]:
        if np.isnan(v[0]):
            return list(range(self.size)) if self.whole or self.size <= 4 else [0, self.size - 1]
        lo, hi, uneven = self._intervals(v, eps)
        if self.dense and uneven.any():
            return np.flatnonzero(np.isnan(v)).tolist()
        split = uneven & (hi - lo > 1) & np.isnan(v[(lo + hi) // 2])
        middles: list[int] = ((lo + hi) // 2)[split].tolist()
        return middles

    def _intervals(self, v: Array, eps: float) -> tuple[IntArray, IntArray, Flags]:
        known = np.flatnonzero(np.isfinite(v))
        lo, hi = known[:-1], known[1:]
        return lo, hi, ~_close(v[hi], v[lo], float(np.abs(v[known]).max(initial=0.0)), eps)

    def differences(self, v: Array, eps: float) -> tuple[Array, Array]:
        """F's change over each axis, and the step it belongs to; where a call failed, over the whole interval.

        The signs of the steps are random, so that a change over several axes, divided by the step along one of them,
        is still an unbiased slope along that one.
        """
        change = np.zeros(len(self.axes))
        if np.isfinite(v[0]) and np.isfinite(v[-1]):
            for lo, hi, uneven in zip(*self._intervals(v, eps), strict=True):
                if uneven:
                    change[lo:hi] = v[hi] - v[lo]
        return change, self.steps

    def gradient(self, slopes: Array, d: int) -> Array:
        g = np.zeros(d, self.base.dtype)
        g[self.axes] = slopes * (d / len(self.axes))
        return g

    def usable(self, v: Array) -> bool:
        return bool(np.isfinite(v[0]) and np.isfinite(v[-1]))


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


@dataclass(frozen=True, eq=False)
class Haar:
    """Forward differences along orthonormal directions: exact on a subspace, random in its complement.

    Two random directions, and two of the subspace, come first: where none sees a change, the sample is taken as flat.
    """

    base: Array
    complement: Array  # (m, d) random directions
    subspace: Array  # (k, d)
    stretch: Array | float  # of the metric: directions are divided by it, gradients multiplied
    h: float
    dimension: int  # of the space that is searched

    @property
    def size(self) -> int:
        return 1 + len(self.complement) + len(self.subspace)

    def points(self, places: list[int]) -> Iterator[Array]:
        m = len(self.complement)
        for place in places:
            if place == 0:
                yield self.base.copy()
            else:
                v = self.complement[place - 1] if place <= m else self.subspace[place - 1 - m]
                point = (self.h / self.stretch) * v
                point += self.base
                yield point

    def needed(self, v: Array, eps: float) -> list[int]:
        first = min(5 if len(self.subspace) else 3, len(v))
        F = v.tolist()
        if isnan(F[0]):
            return list(range(first))
        if isnan(F[-1]) and isfinite(F[0]):
            near = _ROUNDING * eps * abs(F[0])
            seen = [f for f in F[1:first] if isfinite(f)]
            if not seen or any(abs(f - F[0]) > near for f in seen):
                return list(range(first, len(v)))
        return []

    def differences(self, v: Array, eps: float) -> tuple[Array, float]:
        """F's change along each direction: zero where the sample was found flat, NaN where the call failed."""
        F = v.tolist()
        near = _ROUNDING * eps * abs(F[0])
        change = [nan if isinf(f) else f - F[0] if abs(f - F[0]) > near else 0.0 for f in F[1:]]
        return np.array(change), self.h

    def gradient(self, slopes: Array, d: int) -> Array:
        m, k = len(self.complement), len(self.subspace)
        c, V = slopes[:m], self.complement
        if not np.isfinite(c).all():
            kept = np.isfinite(c)  # the mean over the others is as unbiased
            c, V = c[kept], V[kept]
        g: Array = ((self.dimension - k) / len(c) * c).astype(V.dtype, copy=False) @ V
        if k:
            g += slopes[m:].astype(V.dtype, copy=False) @ self.subspace
        if not (isinstance(self.stretch, float) and self.stretch == 1.0):
            g *= self.stretch
        return g

    def usable(self, v: Array) -> bool:
        m, F = len(self.complement), v.tolist()
        return isfinite(F[0]) and not all(map(isinf, F[1 : 1 + m])) and not any(map(isinf, F[1 + m :]))


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
    base = _base(rng, x, mu, metric, tangent)
    Z = tangent(rng.standard_normal((min(q, n - len(subspace)), len(x)), x.dtype))
    if len(subspace):
        Z = Z - (Z @ subspace.T) @ subspace
    if len(subspace):  # turned at random, so that none of its directions is blind to a kind of samples
        subspace = np.linalg.qr(rng.standard_normal((len(subspace), len(subspace))))[0] @ subspace
    return Haar(base, _orthonormal(Z), subspace, stretch_of(metric), step * mu, n)


def stretch_of(metric: Array) -> Array | float:
    """The root of the metric; a number where it is even."""
    return sqrt(metric[0]) if is_even(metric) else np.sqrt(metric)


def _orthonormal(Z: Array) -> Array:
    """An orthonormal basis of the rows of Z, which are random.

    Where there are many more dimensions than rows, K = Z Z' is well conditioned, and its Cholesky factor does what a QR
    decomposition does, sooner. In thousands of dimensions random directions are orthogonal but for a few percent, which
    biases nothing: they are left as they are.
    """
    q, d = Z.shape
    if d > _MANY_DIMENSIONS:
        Z /= length(Z).astype(Z.dtype)
        return Z
    if 4 * q > d:
        return np.linalg.qr(Z.T)[0].T
    from scipy.linalg.lapack import dpotrf, dtrtri  # numpy's ways to them take ten times as long on small matrices

    L, _ = dpotrf(Z @ Z.T, lower=1)
    basis: Array = dtrtri(L, lower=1)[0].astype(Z.dtype, copy=False) @ Z
    return basis
