"""The published default weights and rates of CMA-ES, functions of the dimension and the number of samples.

Hansen, N. (2016). The CMA Evolution Strategy: A Tutorial. arXiv 1604.00772, table 1.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from poem_cma._types import Array

__all__ = ["Rates", "population", "rates", "slower"]


class Rates(NamedTuple):
    """Of a generation of `size` samples in d dimensions."""

    size: int
    positive: Array  # weights of the better half, which sum to one
    negative: Array  # weights of the others, not positive
    mu_eff: float
    c_sigma: float
    d_sigma: float
    c_c: float
    c_1: float
    c_mu: float
    chi: float  # E |N(0, I)|


def population(d: int) -> int:
    """4 + 3 ln d samples, an even number."""
    size = 4 + int(3 * np.log(d))
    return size + size % 2


@lru_cache(maxsize=64)
def rates(d: int, size: int, full: bool) -> Rates:
    """The rates. A diagonal matrix has d numbers to learn and not d^2, so it learns faster (Ros and Hansen 2008)."""
    w = np.log((size + 1) / 2) - np.log(np.arange(1, size + 1))
    positive, negative = np.maximum(w, 0.0), np.minimum(w, 0.0)
    positive /= positive.sum()
    mu_eff = 1.0 / float(positive @ positive)
    mu_minus = float(negative.sum() ** 2 / (negative @ negative))
    c_sigma = (mu_eff + 2) / (d + mu_eff + 5)
    d_sigma = 1 + 2 * max(0.0, float(np.sqrt((mu_eff - 1) / (d + 1))) - 1) + c_sigma
    c_c = (4 + mu_eff / d) / (d + 4 + 2 * mu_eff / d)
    c_1 = 2 / ((d + 1.3) ** 2 + mu_eff)
    c_mu = min(1 - c_1, 2 * (0.25 + mu_eff + 1 / mu_eff - 2) / ((d + 2) ** 2 + mu_eff))
    if not full:
        c_1, c_mu = min(0.5, c_1 * (d + 2) / 3), min(0.5, c_mu * (d + 2) / 3)
    most = min(1 + c_1 / c_mu, 1 + 2 * mu_minus / (mu_eff + 2), (1 - c_1 - c_mu) / (d * c_mu))
    negative = negative / -negative.sum() * most
    chi = float(np.sqrt(d) * (1 - 1 / (4 * d) + 1 / (21 * d * d)))
    return Rates(size, positive, negative, mu_eff, c_sigma, d_sigma, c_c, c_1, c_mu, chi)


def slower(r: Rates, share: float) -> Rates:
    """The rates of a covariance that learns from this share of what values say."""
    return r._replace(c_1=share * r.c_1, c_mu=share * r.c_mu)
