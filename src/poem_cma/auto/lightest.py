"""The dual of the small problem in `cuts`: what each plane, and each wall, has to say about the next step.

    w, v >= 0,  sum w = 1,  that minimise   1/2 |G' w + N' v|^2 + e' w + c' v

This is a problem of least squares without negative weights, up to two rows with large numbers: with P that large,

    (e' w + c' v) / P = P - small    and    P sum w = P,

the linear part comes from the square of the one, and the sum from the other.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from poem_cma._types import Array

__all__ = ["lightest"]

_LARGE = 1e4  # P, where half of the rows of G are shorter than one
_FAR = 1e5  # a plane that is so much further below F than another has no weight


def lightest(G: Array, below: Array, N: Array, slack: Array) -> tuple[Array, Array]:
    """w and v, from the slopes G of planes that lie `below` F, and the normals N of walls that leave this `slack`."""
    from scipy.optimize import nnls

    usual = float(np.median((G**2).sum(axis=1))) or 1.0
    below = below - below.min()  # as the weights are one together
    near = below <= _FAR * usual
    n = int(near.sum())
    linear = np.concatenate((below[near], slack)) / usual / -_LARGE
    ones = np.concatenate((np.full(n, _LARGE), np.zeros(len(N))))
    rows = np.vstack((np.concatenate((G[near], N)).T / sqrt(usual), linear, ones))
    goal = np.concatenate((np.zeros(G.shape[1]), (_LARGE, _LARGE)))
    try:
        found, _ = nnls(rows, goal, maxiter=100 * rows.shape[1])
    except RuntimeError:  # it goes round in circles, for rounding
        found = np.zeros(rows.shape[1])
    total = float(found[:n].sum())
    if not total > 0.0:
        return np.eye(len(G))[-1], np.zeros(len(N))
    weights = np.zeros(len(G))
    weights[near] = found[:n] / total
    return weights, found[n:] / total
