"""Closed forms: a badly conditioned quadratic, one with noise of its own, a box whose corner is the answer."""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

import numpy as np

from poem_cma.domains.sets import Box
from poem_cma.problems.problem import Problem

__all__ = ["box_corner", "noisy_quadratic", "unshared_quadratic"]


def noisy_quadratic(d: int = 50, condition: float = 1e4) -> Problem:
    """F(x; xi) = (x - x*)'H(x - x*) / 2 + u'(x - x*) + e, with xi = (u, e) normal and H turned at random."""
    rng = np.random.default_rng(50)
    Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
    H = (Q * np.geomspace(1.0 / sqrt(condition), sqrt(condition), d)) @ Q.T
    x_star = rng.standard_normal(d) / sqrt(d)

    def quadratic(X: Any) -> Any:
        off = X - x_star
        return 0.5 * ((off @ H) * off).sum(axis=-1)

    return Problem(
        name="noisy-quadratic",
        x0=np.zeros(d),
        domain=None,
        fun=lambda X, xi: quadratic(X) + 0.1 * ((X - x_star) @ xi[:d] + xi[d]),
        sample=lambda rng: rng.standard_normal(d + 1),
        objective=lambda x: float(quadratic(x)),
        optimum=0.0,
        certificate="closed form: the matrix is positive definite, so f is 0 at its centre; the noise has mean 0",
        noisy=True,
        smooth=True,
        gradient=lambda x, xi: H @ (x - x_star) + 0.1 * xi[:d],
    )


def unshared_quadratic(d: int = 20, condition: float = 10.0) -> Problem:
    """F(x; xi) = (x - x*)'H(x - x*) / 2 + xi / 10, xi normal and new for every call: a measurement, not a sample."""
    rng = np.random.default_rng(22)
    Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
    H = (Q * np.geomspace(1.0 / sqrt(condition), sqrt(condition), d)) @ Q.T
    x_star = rng.standard_normal(d) / sqrt(d)

    def quadratic(X: Any) -> Any:
        off = X - x_star
        return 0.5 * ((off @ H) * off).sum(axis=-1)

    return Problem(
        name="unshared-quadratic",
        x0=np.zeros(d),
        domain=None,
        fun=lambda X, xi: quadratic(X) + 0.1 * xi,
        sample=lambda rng: float(rng.standard_normal()),
        objective=lambda x: float(quadratic(x)),
        optimum=0.0,
        certificate="closed form: the matrix is positive definite, so f is 0 at its centre; the noise has mean 0",
        noisy=True,
        smooth=True,
        shareable=False,
    )


def box_corner(d: int = 30) -> Problem:
    """F(x; xi) = mean of w_i |x_i - p_i - xi_i| on the box [-1, 1]^d, p_i = +-1.5 outside of it, xi normal."""
    from scipy.special import erf

    rng = np.random.default_rng(30)
    p = 1.5 * rng.choice([-1.0, 1.0], size=d)
    w = np.geomspace(0.1, 10.0, d)

    def objective(x: Any) -> float:
        off = x - p  # E |t - xi| for a normal xi
        return float((w * (off * erf(off / sqrt(2.0)) + sqrt(2.0 / pi) * np.exp(-0.5 * off**2))).mean())

    return Problem(
        name="box-corner",
        x0=np.zeros(d),
        domain=Box(np.full(d, -1.0), np.full(d, 1.0)),
        fun=lambda X, xi: (np.abs(X - p - xi) * w).mean(axis=-1),
        sample=lambda rng: rng.standard_normal(d),
        objective=objective,
        optimum=objective(np.sign(p)),
        certificate="closed form: E |t - xi| grows with |t|, so every variable goes to the side where p_i is",
        noisy=True,
        smooth=False,
        gradient=lambda x, xi: w * np.sign(x - p - xi) / d,
    )
