"""A quadratic model of F, from gradients at the points of a path: BFGS (Nocedal and Wright 2006, chapter 6).

    m(z) = <g, z - x> + 1/2 (z - x)' B (z - x),       H = B^-1

Only H is kept, and the diagonal of B. Where the domain is in the way, the model is minimised over it by projected
gradients, which takes time but not a single call of F.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from poem_cma._types import Array
from poem_cma.arithmetic import equal

__all__ = ["model_minimum", "sound", "updated"]

_UPWARDS = 1e-12  # of |s| |y|: a path along which the slope has not grown says nothing of the curvature
_ROUNDS = 400  # projected gradients, at most
_CLOSE = 1e-9  # of the way: the model's minimum is known well enough


def updated(H: Array, diagonal: Array, s: Array, y: Array, Bs: Array, first: bool) -> tuple[Array, Array]:
    """H, and the diagonal of B, after a step s that has changed the gradient by y; `Bs` is what the model expected.

    Before the first update nothing is known of the curvature: H is scaled so that it has the size that was seen.
    """
    rise = float(s @ y)
    if not rise > _UPWARDS * sqrt(float(s @ s) * float(y @ y)):
        return H, diagonal
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # `sound` tells
        if first:
            c = rise / float(y @ (H @ y))
            H, diagonal, Bs = c * H, diagonal / c, Bs / c
        Hy = H @ y
        v = 0.5 * (1.0 + float(y @ Hy) / rise) / rise * s - Hy / rise
        change = np.array((s, v)).T @ np.array((v, s))  # s v' + v s', as one matrix: they are large
        change += H
        H = change
        diagonal = diagonal - Bs**2 / float(s @ Bs) + y**2 / rise
        return H, np.maximum(diagonal, 1.0 / H.diagonal())  # but for rounding it is no less


def sound(H: Array, diagonal: Array) -> bool:
    """Whether rounding has left a model that has a minimum."""
    return bool(np.isfinite(H).all() and (H.diagonal() > 0.0).all() and np.isfinite(diagonal).all())


def model_minimum(x: Array, g: Array, H: Array, domain: Any) -> tuple[Array, Array]:
    """The way p from x to the minimum of the model over the domain, and B p."""
    p = -(H @ g)
    free = x + p
    z = domain.project(free)
    if equal(z, free):
        return p, -g
    return _on_domain(x, g, _inverse(H), domain, z)


def _inverse(H: Array) -> Array:
    """B; where rounding has spoilt it, with the curvatures along the axes alone."""
    try:
        B = np.linalg.inv(H)
    except np.linalg.LinAlgError:
        B = np.zeros_like(H)
    return B if (B.diagonal() > 0.0).all() else np.diag(1.0 / H.diagonal())


def _on_domain(x: Array, g: Array, B: Array, domain: Any, z: Array) -> tuple[Array, Array]:
    """By projected gradients with momentum, which begins anew where it leads uphill (O'Donoghue and Candes 2015)."""
    D = B.diagonal().copy() if domain.weighted else np.full(len(x), float(np.abs(B).sum(axis=1).max()))
    root = np.sqrt(D)
    D *= float((np.abs(B) / np.outer(root, root)).sum(axis=1).max())  # then D - B has no negative eigenvalue
    weight = D if domain.weighted else None
    ahead, momentum = z, 1.0
    for _ in range(_ROUNDS):
        slope = g + B @ (ahead - x)
        after = domain.project(ahead - slope / D, weight) if weight is not None else domain.project(ahead - slope / D)
        moved = after - z
        if float((ahead - after) * D @ moved) > 0.0:
            momentum = 1.0
        larger = 0.5 * (1.0 + sqrt(1.0 + 4.0 * momentum**2))
        ahead, momentum = after + (momentum - 1.0) / larger * moved, larger
        z = after
        if float(np.abs(moved).max()) <= _CLOSE * float(np.abs(z - x).max()):
            break
    return z - x, B @ (z - x)
