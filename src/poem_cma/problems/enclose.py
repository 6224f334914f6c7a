"""The least mean loss of a linear model on a ball, enclosed between two numbers.

The losses are phi_i(b_i'x), each convex. The upper number is the mean loss at a point. The lower one is a dual value:
for any slopes u_i, phi_i(m) >= u_i m - phi_i^conj(u_i), and the mean of u_i b_i'x is at least -radius |mean u_i b_i| on
the ball. Both hold whatever the solver did. The solver takes Newton steps in d variables along the central path of a
barrier, of the ball and, where the loss has a kink, of the two half lines on which it is linear.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from poem_cma.problems.optimum import Optimum

__all__ = ["Logistic", "Loss", "Pinball", "least_loss"]


class Smoothed(NamedTuple):
    """A loss along the barrier's path at the margins: values, first and second derivatives."""

    value: Any
    slope: Any
    curvature: Any


class Loss(Protocol):
    """A convex loss of the margin m_i = b_i'x."""

    def __call__(self, m: Any) -> Any:
        """The losses."""
        ...

    def smoothed(self, m: Any, c: float) -> Smoothed:
        """The losses with a barrier of weight c."""
        ...

    def dual(self, m: Any, slope: Any) -> Any:
        """-phi_i^conj(slope), for the slopes that `smoothed` gave at m."""
        ...


class Pinball:
    """The quantile loss rho(r) = max(tau r, (tau - 1) r) of the residual r_i = y_i - y_i m_i, y_i = +-1.

    Examples
    --------
    >>> Pinball(0.75, np.array([1.0, -1.0]))(np.array([0.0, 0.0]))
    array([0.75, 0.25])
    """

    def __init__(self, tau: float, y: Any) -> None:
        self.tau, self.y = tau, y

    def __call__(self, m: Any) -> Any:
        r = self.y * (1.0 - m)
        return np.maximum(self.tau * r, (self.tau - 1.0) * r)

    def smoothed(self, m: Any, c: float) -> Smoothed:
        """The least of tau p + (1 - tau) q - c log(p q) over p, q > 0 with p - q = r."""
        r = self.y * (1.0 - m)
        root = np.sqrt(r * r + 4.0 * c * c)
        less = 4.0 * c * c / (root + np.abs(r))  # root - |r| without cancellation
        p = c + 0.5 * np.where(r > 0.0, root + r, less)
        q = c + 0.5 * np.where(r > 0.0, less, root - r)
        value = self.tau * p + (1.0 - self.tau) * q - c * np.log(p) - c * np.log(q)
        return Smoothed(value, -self.y * (self.tau - c / p), 1.0 / (p * p / c + q * q / c))

    def dual(self, m: Any, slope: Any) -> Any:
        return -slope  # the loss is the largest of u (1 - m) over the slopes -u of its two sides


class Logistic:
    """The loss log(1 + exp(-m)).

    Examples
    --------
    >>> float(Logistic()(np.array(0.0)).round(3))
    0.693
    """

    def __call__(self, m: Any) -> Any:
        return np.logaddexp(0.0, -m)

    def smoothed(self, m: Any, c: float) -> Smoothed:
        from scipy.special import expit

        away, value = expit(-m), np.logaddexp(0.0, -m)
        return Smoothed(value, -away, away * (1.0 - away))

    def dual(self, m: Any, slope: Any) -> Any:
        return self(m) - slope * m


def least_loss(B: Any, loss: Loss, radius: float, accuracy: float = 1e-7, most: int = 300) -> Optimum:
    """Enclose the least mean of loss(B x) over |x| <= radius.

    Parameters
    ----------
    B : array or sparse array (n, d)
    loss : Loss
    radius : float
    accuracy : float
        Stop when the two values are closer than this.
    most : int
        Newton steps at most.

    Examples
    --------
    >>> best = least_loss(np.eye(2), Logistic(), radius=np.sqrt(2.0))
    >>> bool(best.dual <= np.log1p(np.exp(-1.0)) <= best.primal <= best.dual + 1e-7)
    True
    """
    n, d = B.shape
    x, c, steps = np.zeros(d), 0.5, 0
    best = Optimum(x, float("inf"), -float("inf"))
    for _ in range(most):
        m = B @ x
        here = loss.smoothed(m, c)
        total = B.T @ here.slope / n
        primal = float(loss(m).mean())
        dual = float(np.mean(loss.dual(m, here.slope))) - radius * float(np.linalg.norm(total))
        best = Optimum(x if primal < best.primal else best.x, min(primal, best.primal), max(dual, best.dual))
        if best.primal - best.dual <= accuracy:
            break
        steps += 1
        if primal - dual <= 2.0 * c or steps > 12:  # near the central path: go further along
            c, steps = 0.25 * c, 0
            here = loss.smoothed(m, c)
            total = B.T @ here.slope / n
        rest = radius**2 - float(x @ x)
        gradient = total + 2.0 * c * x / rest
        hessian = _gram(B, here.curvature) + 2.0 * c * (np.eye(d) / rest + 2.0 * np.outer(x, x) / rest**2)
        step = -np.linalg.solve(hessian, gradient)
        x = x + _length(B, loss, radius, x, step, c, float(-gradient @ step)) * step
    return best


def _gram(B: Any, weight: Any) -> Any:
    """The mean of weight_i b_i b_i', without the rows that do not count."""
    rows = np.flatnonzero(weight > 1e-9 * weight.max())
    C, root = B[rows], np.sqrt(weight[rows])[:, None]
    W = C * root if isinstance(C, np.ndarray) else C.multiply(root).tocsr()
    H = W.T @ W
    return (H if isinstance(H, np.ndarray) else H.toarray()) / B.shape[0]


def _length(B: Any, loss: Loss, radius: float, x: Any, step: Any, c: float, decrement: float) -> float:
    """Backtrack until the barrier function decreases as it should."""
    m, along = B @ x, B @ step
    rest = radius**2 - float(x @ x)
    start, t = float(loss.smoothed(m, c).value.mean()), 1.0
    while t > 1e-10:
        there = x + t * step
        left = radius**2 - float(there @ there)
        if left >= 0.05 * rest:
            change = float(loss.smoothed(m + t * along, c).value.mean()) - start - c * float(np.log(left / rest))
            if change <= 1e-15 - 1e-4 * t * decrement:
                return t
        t *= 0.5
    return 0.0
