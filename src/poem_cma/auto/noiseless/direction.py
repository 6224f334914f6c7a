"""The quasi-Newton direction on the face of the domain that gradient steps lead to.

Let z = x - c g, with c the inverse of a typical curvature. The derivative T of the projection at z is the projection
on the directions of the face that P(z) lies on: for a box, it leaves out the variables that stay at their bounds. Steps
and gradients are reduced by T, and BFGS is done with these (Nocedal 1980: the recursion on pairs).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from poem_cma._types import Array
from poem_cma.auto.noiseless.state import Exact
from poem_cma.domains.sets import Whole
from poem_cma.run.algorithm import Run

__all__ = ["PAIRS", "direction", "joined"]

#: Number of pairs that are kept.
PAIRS = 200
#: Distance of the difference for T, as a fraction of the reach.
SHORT = 1e-6
#: Least cosine of step and gradient change in a pair.
COSINE = 1e-10
#: First step, in units of the reach.
FIRST = 0.1


def joined(exact: Exact, g: Array) -> Exact:
    """The search with the pair of the last step, and the gradient at its end."""
    s, y = exact.step, g - exact.g
    if s @ y > COSINE * np.sqrt((s @ s) * (y @ y)):
        S, Y = np.vstack([exact.S, s])[-PAIRS:], np.vstack([exact.Y, y])[-PAIRS:]
        exact = exact._replace(S=S, Y=Y)
    return exact._replace(g=g, step=np.zeros(len(s)))


def direction(exact: Exact, run: Run) -> Array:
    """Where to go from x; zero if F falls nowhere."""
    x, g, S, Y = exact.x, exact.g, exact.S, exact.Y
    length = float(np.sqrt(g @ g)) or 1.0
    c = float((S[-1] @ S[-1]) / (S[-1] @ Y[-1])) if len(S) else FIRST * exact.reach / length
    z = x - c * g
    plain: Array = run.domain.project(z) - x
    if not len(S):
        return plain
    T = face(z, exact.reach, run)
    q = T(g)
    p = -T(recursion(q, np.array([T(s) for s in S]), np.array([T(y) for y in Y]), c)) + plain - T(plain)
    return p if np.isfinite(p).all() and g @ p < 0.0 else plain


def face(z: Array, reach: float, run: Run) -> Callable[[Array], Array]:
    """The derivative of the projection at z."""
    if isinstance(run.domain, Whole):
        return lambda v: v
    at_z = run.domain.project(z)

    def reduced(v: Array) -> Array:
        e = SHORT * reach / (float(np.abs(v).max()) or 1.0)
        ways: Array = (run.domain.project(z + e * v) - at_z) / e
        return ways

    return reduced


def recursion(q: Array, S: Array, Y: Array, c: float) -> Array:
    """The product of the inverse matrix of BFGS with q."""
    good = [(s, y, s @ y) for s, y in zip(S, Y, strict=True) if s @ y > COSINE * np.sqrt((s @ s) * (y @ y))]
    if good:
        c = max(sy / (y @ y) for _, y, sy in good)  # the longest: short ones come from kinks
    shares = []
    for s, y, sy in reversed(good):
        shares.append((s @ q) / sy)
        q = q - shares[-1] * y
    q = c * q
    for (s, y, sy), share in zip(good, reversed(shares), strict=True):
        q = q + (share - (y @ q) / sy) * s
    return q
