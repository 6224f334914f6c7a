"""Curvature along the pairs: F(x + s y) + F(x - s y) - 2 F(x) tells how C should be changed along y."""

from __future__ import annotations

import numpy as np

from poem_cma._types import Array
from poem_cma.auto.far.noise import Noise, share
from poem_cma.auto.far.state import Shape, decomposed

__all__ = ["bend"]

#: Memory of the mean curvature, in generations with as many pairs as variables.
KEEP = 0.95
#: C takes half of the change that a curvature suggests, limited to 1/4 to 4 times the mean.
HALF, MOST = 0.5, 4.0
#: The mean curvature must exceed this many standard errors.
SURE = 2.0


def bend(shape: Shape, sums: Array, Y: Array, k: Array, noise: Noise) -> tuple[Shape, Array]:
    """The covariance and the sums of curvature, with the curvatures k along the pairs y (rows, in units of sigma).

    C along y is divided by 1 + e (k / mean - 1), with det C kept; e is small where k is noise.
    """
    d = Y.shape[1]
    sums = KEEP ** (len(k) / d) * sums + [len(k), k.sum(), k @ k]
    mean = sums[1] / sums[0]
    variance = max(sums[2] / sums[0] - mean * mean, 0.0)
    e = HALF * (1.0 - share(noise))
    if not (mean > 0.0 and mean * mean * sums[0] > SURE * SURE * variance and e > 0.0):
        return shape, sums
    C, inverse = shape.C.copy(), (shape.basis / shape.axes**2) @ shape.basis.T
    before = 2.0 * np.log(shape.axes).sum()
    for y, factor in zip(Y, 1.0 / (1.0 + e * (np.clip(k / mean, 1.0 / MOST, MOST) - 1.0)), strict=True):
        w = inverse @ y
        length = float(y @ w)
        if not length > 0.0:  # rounding, where C is nearly singular
            continue
        C += (factor - 1.0) / length * np.outer(y, y)  # y' C^-1 y changes by 1 / factor, all else stays
        inverse -= (factor - 1.0) / (length * factor) * np.outer(w, w)
    if not np.isfinite(C).all():
        return shape, sums
    shape = decomposed(C)
    scale = float(np.exp((before - 2.0 * np.log(shape.axes).sum()) / d))
    changed = Shape(shape.C * scale, shape.axes * np.sqrt(scale), shape.basis)
    return changed, sums * [1.0, scale, scale * scale]
