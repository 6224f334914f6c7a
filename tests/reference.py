"""Algorithms 1 and 2 of the paper, transcribed line by line.

Shares no code with the library. Slow and plain on purpose: d x d matrices, a list of all iterates. The random draws
come in from outside (`normal()` gives the next standard normal vector, `sample()` the next xi), so that the library
can be compared with it draw by draw.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Objective = Callable[[Vector, Any], float]


def algorithm_1(
    F: Objective,
    x0: Vector,
    r_eps: float,
    T: int,
    project: Callable[[Vector], Vector],
    normal: Callable[[], Vector],
    sample: Callable[[], Any],
    Sigma: NDArray[np.float64] | None = None,
    root: NDArray[np.float64] | None = None,
    shared: bool = True,
) -> tuple[Vector, list[Vector]]:
    """POEM-CMA; the output x_bar_tau and the iterates x_0 .. x_T. Without a covariance it is POEM (Sigma = I).

    `root` is the matrix with root root' = Sigma that turns standard normal vectors into u ~ N(0, Sigma).
    """
    d_star = float(len(x0))
    if Sigma is not None:
        d_star = float(np.trace(Sigma) / np.linalg.eigvalsh(Sigma)[-1])
        Sigma_tilde = np.trace(Sigma) * np.linalg.pinv(Sigma, rcond=1e-10, hermitian=True)
    r_bar, G = r_eps, 0.0
    x = x0
    xs, r_bars = [x0], []
    for t in range(T):
        r_bar = max(r_bar, float(np.linalg.norm(x - x0)))
        u = normal() if root is None else root @ normal()
        v = u / np.linalg.norm(u)
        mu = r_bar * np.sqrt(d_star / (t + 1))
        xi_plus = sample()
        xi_minus = xi_plus if shared else sample()
        F_plus = F(x + mu * v, xi_plus)
        F_minus = F(x - mu * v, xi_minus)
        delta = F_plus - F_minus
        g = 1.0 / (2.0 * mu) * delta * (d_star * v if Sigma is None else Sigma_tilde @ v)
        G = G + float(np.linalg.norm(g)) ** 2
        eta = r_bar / np.sqrt(G) if G > 0 else 0.0
        x = project(x - eta * g)
        xs.append(x)
        r_bars.append(r_bar)
    r_bars.append(max(r_bar, float(np.linalg.norm(x - x0))))
    ratios = [sum(r_bars[:t]) / r_bars[t] for t in range(T + 1)]
    tau = int(np.argmax(ratios))
    weights = np.array(r_bars[:tau])
    return weights @ np.array(xs[:tau]) / weights.sum(), xs


def algorithm_2(
    F: Objective,
    x0: Vector,
    M: int,
    mu: float,
    ridge: float,
    normal: Callable[[], Vector],
    sample: Callable[[], Any],
    shared: bool = True,
) -> tuple[float, NDArray[np.float64]]:
    """d* and the covariance of M two-point estimates at x0."""
    d = len(x0)
    Sigma = np.zeros((d, d))
    for _ in range(M):
        v = normal()
        v = v / np.linalg.norm(v)
        xi_plus = sample()
        xi_minus = xi_plus if shared else sample()
        F_plus = F(x0 + mu * v, xi_plus)
        F_minus = F(x0 - mu * v, xi_minus)
        delta = F_plus - F_minus
        g = d / (2.0 * mu) * delta * v
        Sigma = Sigma + 1.0 / M * np.outer(g, g)
    Sigma = Sigma + ridge * np.eye(d)
    lam_max = np.linalg.eigvalsh(Sigma)[-1]
    return float(np.trace(Sigma) / lam_max), Sigma


def spectral_filter(Sigma: NDArray[np.float64], tol: float) -> NDArray[np.float64]:
    """The experiments' filter: eigenvalues under tol times the largest become zero."""
    lam, Q = np.linalg.eigh(Sigma)
    lam = np.where(lam < tol * lam[-1], 0.0, lam)
    return (Q * lam) @ Q.T
