"""The paper's formulas as functions: Table 1, Theorem 1 (up to its constant), Theorem 2, d* and kappa.

Complexities are counted in oracle calls and leave out constants and logarithms, as the table does: use them for
ratios and exponents, not as predictions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from poem_cma._types import Array

__all__ = [
    "condition_number",
    "convergence_rate",
    "effective_dimension",
    "log_plus",
    "lower_bound",
    "poem_cma_complexity",
    "poem_complexity",
    "rsnso_complexity",
    "sample_size",
    "theta",
    "tpbco_complexity",
    "tpge_complexity",
]


def effective_dimension(eigenvalues: Array | Sequence[float]) -> float:
    """d* = tr(Sigma) / lambda_max(Sigma); zero for the zero matrix.

    Examples
    --------
    >>> effective_dimension([4.0, 2.0, 1.0, 1.0])
    2.0
    >>> effective_dimension([3.0] * 7)
    7.0
    """
    lam = np.asarray(eigenvalues, dtype=float)
    top = float(lam.max(initial=0.0))
    return float((lam / top).sum()) if top > 0.0 else 0.0


def condition_number(eigenvalues: Array | Sequence[float]) -> float:
    """kappa = lambda_max / lambda_min over the non-zero eigenvalues (the active subspace); one for the zero matrix.

    Examples
    --------
    >>> condition_number([4.0, 2.0, 1.0, 0.0])
    4.0
    """
    lam = np.asarray(eigenvalues, dtype=float)
    active = lam[lam > 0.0]
    return float(active.max() / active.min()) if active.size else 1.0


def rsnso_complexity(d: float, lipschitz: float, distance: float, epsilon: float) -> float:
    """RSNSO (Nesterov and Spokoiny 2017): d^2 L^2 s_0^2 / epsilon^2.

    Examples
    --------
    >>> rsnso_complexity(d=10, lipschitz=1.0, distance=2.0, epsilon=0.5)
    1600.0
    """
    return d**2 * (lipschitz * distance / epsilon) ** 2


def tpge_complexity(d: float, lipschitz: float, diameter: float, epsilon: float) -> float:
    """TPGE (Duchi et al. 2015): d L^2 D^2 / epsilon^2, up to logarithms.

    Examples
    --------
    >>> tpge_complexity(d=10, lipschitz=1.0, diameter=2.0, epsilon=0.5)
    160.0
    """
    return lower_bound(d, lipschitz, diameter, epsilon)


def tpbco_complexity(d: float, lipschitz: float, diameter: float, epsilon: float) -> float:
    """TPBCO (Shamir 2017): d L^2 D^2 / epsilon^2.

    Examples
    --------
    >>> tpbco_complexity(d=10, lipschitz=1.0, diameter=2.0, epsilon=0.5)
    160.0
    """
    return lower_bound(d, lipschitz, diameter, epsilon)


def poem_complexity(d: float, lipschitz: float, diameter: float, epsilon: float) -> float:
    """POEM (Ren and Luo 2025): d L^2 D^2 / epsilon^2, up to logarithms.

    Examples
    --------
    >>> poem_complexity(d=10, lipschitz=1.0, diameter=2.0, epsilon=0.5)
    160.0
    """
    return lower_bound(d, lipschitz, diameter, epsilon)


def poem_cma_complexity(d_star: float, kappa: float, lipschitz: float, diameter: float, epsilon: float) -> float:
    """POEM-CMA: d* kappa L^2 D^2 / epsilon^2, up to logarithms and without the 2M preliminary calls.

    Examples
    --------
    The paper's mushrooms: d* kappa = 25 * 4 = 100 against d = 112.

    >>> cma = poem_cma_complexity(25, 4, lipschitz=1.0, diameter=2.0, epsilon=0.1)
    >>> round(cma / poem_complexity(112, lipschitz=1.0, diameter=2.0, epsilon=0.1), 3)
    0.893
    """
    return lower_bound(d_star * kappa, lipschitz, diameter, epsilon)


def lower_bound(d: float, lipschitz: float, diameter: float, epsilon: float) -> float:
    """What no method can beat in the worst case (Duchi et al. 2015): d L^2 D^2 / epsilon^2.

    Examples
    --------
    >>> lower_bound(d=100, lipschitz=1.0, diameter=2.0, epsilon=0.1)
    40000.0
    """
    return d * (lipschitz * diameter / epsilon) ** 2


def log_plus(x: float) -> float:
    """log_+(x) = 1 + log(x), the logarithm of the parameter-free bounds (Ivgi et al. 2023).

    Examples
    --------
    >>> log_plus(1.0)
    1.0
    """
    return 1.0 + math.log(x)


def theta(t: float, delta: float) -> float:
    """theta_{t,delta} = log(60 log(6 t / delta)), the price of a bound that holds at all times at once.

    Examples
    --------
    >>> round(theta(1000, 0.05), 3)
    6.554
    """
    return math.log(60.0 * math.log(6.0 * t / delta))


def convergence_rate(
    steps: float,
    d_star: float,
    kappa: float,
    lipschitz: float,
    diameter: float,
    initial_distance: float,
    delta: float = 0.05,
) -> float:
    """Theorem 1's bound on f(x_bar) - f(x*), up to the constant that the theorem does not give.

    (d* kappa / T + sqrt(d* kappa / T)) theta_{T,delta} L D log_+(D / r_eps)

    Examples
    --------
    Four times the steps halve it in the long run, but for the slowly growing theta:

    >>> far = convergence_rate(10**8, 25, 4, lipschitz=1, diameter=2, initial_distance=0.1)
    >>> farther = convergence_rate(4 * 10**8, 25, 4, lipschitz=1, diameter=2, initial_distance=0.1)
    >>> round(farther / far, 2)
    0.5
    """
    share = d_star * kappa / steps
    spread = theta(steps, delta) * log_plus(diameter / initial_distance)
    return (share + math.sqrt(share)) * spread * lipschitz * diameter


def sample_size(d: int) -> int:
    """Theorem 2's number of preliminary pairs, M = floor(d log d), and at least one.

    The theorem leaves its constant open; the paper's experiments take it to be one.

    Examples
    --------
    >>> sample_size(112), sample_size(300), sample_size(1)
    (528, 1711, 1)
    """
    return max(1, math.floor(d * math.log(d)))
