"""The subspace in which all gradients lie, if there is one.

Once two gradients in a row lie in the span of those before, walks take a basis of the span and one random direction
out of it. Where F changes along that direction, the subspace was not all, and full walks go on.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from poem_cma._types import Array
from poem_cma.auto.judge import SURE
from poem_cma.auto.near.state import Memory, Walk
from poem_cma.run.algorithm import Run

__all__ = ["IN_A_ROW", "given_up", "outside", "rank", "seen"]

#: A gradient lies in a subspace if its part outside is below this fraction. Slopes of a walk are not quite those at
#: one point, so that it is never zero where F is curved.
OUTSIDE = 0.1
#: Number of consecutive gradients that must lie in the span of those before.
IN_A_ROW = 2
#: Number of directions used to estimate the rank, and protection against rounding.
MOST, ROUNDING = 100, 1e-9


def outside(g: Array, slope: float, walk: Walk) -> bool:
    """Whether a walk along a basis has seen a part of the gradient outside, by the slope along one direction there."""
    part = slope * sqrt(max(len(g) - walk.axes + 1, 1))
    return walk.spanned and part > SURE * OUTSIDE * float(np.sqrt(g @ g))


def seen(memory: Memory, g: Array, walk: Walk, run: Run) -> Memory:
    """The memory after a walk along all coordinates, with the basis of a subspace if one has shown.

    The span of all directions of the domain is none: there is no direction out of it, and it makes no walk shorter.
    """
    known = np.array([u for u in memory.directions if u.any()])
    if walk.place >= 0 or len(known) < 2 or not g.any():
        return memory
    Q = _basis(known[:-1])
    rest = g - Q.T @ (Q @ g)
    if rest @ rest > OUTSIDE**2 * float(g @ g):
        return memory._replace(inside=0)
    memory = memory._replace(inside=memory.inside + 1)
    basis = _basis(known)
    shorter = len(basis) + 1 < run.domain.hull_dimension(len(g))
    return memory._replace(basis=basis) if memory.inside >= IN_A_ROW and shorter else memory


def given_up(memory: Memory) -> Memory:
    """The memory without the subspace, which was not all: full walks go on to find it."""
    return memory._replace(basis=memory.basis[:0], inside=0)


def rank(memory: Memory) -> float:
    """How many dimensions the subspace seems to have, from how well the other directions explain each of them.

    Of a random direction in r dimensions, n others explain the part n / r of its square.
    """
    U = np.array([u for u in memory.directions[-MOST:] if u.any()])
    n = len(U)
    if n < 2:
        return np.inf
    outside = 1.0 / np.diag(np.linalg.inv(U @ U.T + ROUNDING * np.eye(n)))
    return float((n - 1) / max(1.0 - float(np.mean(outside)), ROUNDING))


def _basis(U: Array) -> Array:
    """An orthonormal basis of the span of unit vectors, but for what is a small part of each.

    The eigenvalues are squares of singular values; for some matrices LAPACK's singular values do not converge.
    """
    least = (OUTSIDE / SURE) ** 2
    if len(U) > U.shape[1]:
        squares, V = np.linalg.eigh(U.T @ U)
        return V[:, squares > least].T
    squares, B = np.linalg.eigh(U @ U.T)
    Q: Array = (B[:, squares > least] / np.sqrt(squares[squares > least])).T @ U
    return Q
