"""Step sizes, smoothing radii and averaging weights: one function for each cell of the paper's Table 1.

A rule reads the symbols of step t and returns a number. Plain arithmetic only (and `arithmetic.root`): the same formula
serves one run and many. Steps are counted from t = 0. Whatever is measured in units of F is divided by `s.unit` (see
`state.Gradients`).
"""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING

from poem_cma.run.arithmetic import root

if TYPE_CHECKING:
    from poem_cma.run.algorithm import Symbols

__all__ = [
    "distance_over_gradients",
    "distance_weight",
    "poem_smoothing",
    "rsnso_smoothing",
    "rsnso_step",
    "tpbco_smoothing",
    "tpbco_step",
    "tpge_inner_smoothing",
    "tpge_smoothing",
    "tpge_step",
    "uniform_weight",
]


# POEM and POEM-CMA: nothing to set


def distance_over_gradients(s: Symbols) -> float:
    """eta_t = r_bar_t / sqrt(G_t)."""
    return s.r_bar / root(s.G)


def poem_smoothing(s: Symbols) -> float:
    """mu_t = r_bar_t sqrt(d* / (t+1)); POEM's d* is d."""
    return s.r_bar * root(s.d / (s.t + 1))


def distance_weight(s: Symbols) -> float:
    """The weight of x_t in the average is r_bar_t."""
    return s.r_bar


# TPBCO (Shamir 2017)


def tpbco_step(s: Symbols) -> float:
    """eta = D / (L sqrt(d T))."""
    run = s.run
    return run.diameter / (run.lipschitz / s.unit * root(s.d * run.steps))


def tpbco_smoothing(s: Symbols) -> float:
    """mu = D sqrt(d / T)."""
    return s.run.diameter * root(s.d / s.run.steps)


# TPGE (Duchi et al. 2015)


def tpge_step(s: Symbols) -> float:
    """eta_t = D / (L sqrt(d log(2d) (t+1)))."""
    run, d = s.run, s.d
    return run.diameter / (run.lipschitz / s.unit * root(d * log(2.0 * d) * (s.t + 1)))


def tpge_smoothing(s: Symbols) -> float:
    """u1_t = D / (t+1)."""
    return s.run.diameter / (s.t + 1)


def tpge_inner_smoothing(s: Symbols) -> float:
    """u2_t = D / (d^2 (t+1)^2) as a part of u1_t, but not below 1e-12 D: there differences are rounding errors."""
    t1 = s.t + 1
    return s.mu * t1 * max(1.0 / (s.d * t1) ** 2, 1e-12)


# RSNSO (Nesterov and Spokoiny 2017)


def rsnso_step(s: Symbols) -> float:
    """eta = s_0 / (d L sqrt(T))."""
    run = s.run
    return run.distance / (s.d * (run.lipschitz / s.unit) * root(run.steps))


def rsnso_smoothing(s: Symbols) -> float:
    """mu = s_0 sqrt(d / T)."""
    return s.run.distance * root(s.d / s.run.steps)


def uniform_weight(s: Symbols) -> float:  # noqa: ARG001
    """Every iterate counts the same."""
    return 1.0
