"""The least hinge loss on the unit ball, with a certificate.

The problem, min of mean max(0, 1 - b_i'x) over |x| <= 1, has the dual, max of mean a_i - |mean a_i b_i| over a in
[0, 1]^n. Any x gives an upper bound and any a a lower one, whatever the solver did: that is the certificate. The
solver is a barrier method. The slack of each example is eliminated in closed form, which leaves Newton steps in d
variables, and the weights a come out of it feasible at every step.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

__all__ = ["Optimum", "least_hinge_loss"]


class Optimum(NamedTuple):
    """A minimiser, and two numbers that enclose the least value."""

    x: Any
    primal: float
    dual: float


def least_hinge_loss(B: Any, accuracy: float = 1e-7, most: int = 300) -> Optimum:
    """The least mean of max(0, 1 - B x) over the unit ball.

    Parameters
    ----------
    B : array or sparse array (n, d)
        The rows y_i a_i.
    accuracy : float
        Stop when primal and dual values are closer than this.
    most : int
        Newton steps at most.

    Examples
    --------
    >>> best = least_hinge_loss(np.array([[0.5, 0.0], [0.0, 0.5]]))
    >>> bool(abs(best.primal - (1 - 0.5 / np.sqrt(2))) < 1e-6 and best.primal >= best.dual)
    True
    """
    d = B.shape[1]
    x = np.zeros(d)
    best = Optimum(x, float("inf"), -float("inf"))
    c, steps = 0.5, 0
    for _ in range(most):
        margins = 1.0 - B @ x
        a, curvature = _weights(margins, c)
        here = _bounds(B, x, margins, a)
        best = Optimum(
            x if here.primal < best.primal else best.x, min(here.primal, best.primal), max(here.dual, best.dual)
        )
        if best.primal - best.dual <= accuracy:
            break
        steps += 1
        if (
            here.primal - here.dual <= 5.0 * c or steps > 12
        ):  # on the central path, where it is some c: go further along
            c, steps = 0.25 * c, 0
            a, curvature = _weights(margins, c)
        gradient, hessian = _derivatives(B, x, a, curvature, c)
        step = -np.linalg.solve(hessian, gradient)
        x = x + _length(B, x, step, c, float(-gradient @ step)) * step
    return best


def _weights(m: Any, c: float) -> tuple[Any, Any]:
    """First and second derivative of h(m) = min over s > max(0, m) of  s - c log(s - m) - c log s."""
    r = np.sqrt(m * m + 4.0 * c * c)
    beyond = np.where(m > 0.0, 4.0 * c * c / (r + np.abs(m)), r - m)  # r - m without cancellation
    free = c + 0.5 * beyond  # s - m
    return c / free, 0.5 * c * (beyond / r) / free**2


def _value(B: Any, x: Any, c: float) -> float:
    q = float(x @ x)
    if q >= 1.0:
        return float("inf")
    m = 1.0 - B @ x
    r = np.sqrt(m * m + 4.0 * c * c)
    free = c + 0.5 * np.where(m > 0.0, 4.0 * c * c / (r + np.abs(m)), r - m)
    s = c + 0.5 * np.where(m < 0.0, 4.0 * c * c / (r + np.abs(m)), r + m)
    return float((s - c * np.log(free) - c * np.log(s)).mean()) - c * float(np.log1p(-q))


def _derivatives(B: Any, x: Any, a: Any, curvature: Any, c: float) -> tuple[Any, Any]:
    n, d = B.shape
    rest = 1.0 - float(x @ x)
    gradient = -(B.T @ a) / n + 2.0 * c * x / rest
    rows = np.flatnonzero(curvature > 1e-9 * curvature.max())
    C = B[rows]
    W = (
        C * np.sqrt(curvature[rows])[:, None]
        if isinstance(C, np.ndarray)
        else C.multiply(np.sqrt(curvature[rows])[:, None])
    )
    H = W.T @ W
    H = (H if isinstance(H, np.ndarray) else H.toarray()) / n
    return gradient, H + 2.0 * c * (np.eye(d) / rest + 2.0 * np.outer(x, x) / rest**2)


def _length(B: Any, x: Any, step: Any, c: float, decrement: float) -> float:
    start, room, t = _value(B, x, c), 0.05 * (1.0 - float(x @ x)), 1.0
    while t > 1e-10:
        there = x + t * step
        stays_inside = 1.0 - float(there @ there) >= room  # rounding must not put it on the sphere
        if stays_inside and _value(B, there, c) <= start - 1e-4 * t * decrement + 1e-15:
            return t
        t *= 0.5
    return 0.0


def _bounds(B: Any, x: Any, margins: Any, a: Any) -> Optimum:
    dual = float(a.mean()) - float(np.linalg.norm(B.T @ a)) / len(a)
    return Optimum(x, float(np.maximum(0.0, margins).mean()), dual)
