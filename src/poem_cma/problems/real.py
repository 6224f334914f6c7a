"""Losses of a linear classifier on real data sets, each on a ball, so that the least loss is attained.

xi is the number of an example, b_i = y_i a_i its row of features times its label +-1. Working out the least loss takes
up to some seconds, so the two numbers that enclose it are kept here; `enclose` finds them again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from poem_cma import datasets
from poem_cma.domains.sets import Ball
from poem_cma.problems.enclose import Logistic, Pinball, least_loss
from poem_cma.problems.optimum import least_hinge_loss
from poem_cma.problems.problem import Problem

__all__ = ["REAL", "enclose"]

QUANTILE = 0.75  # about one in four of a9a is positive: the quantile is in doubt everywhere


class Known(NamedTuple):
    """A loss on a set: the ball's radius and the numbers that enclose the least value."""

    kind: str
    data: str
    radius: float
    lower: float
    upper: float


class Examples(NamedTuple):
    """A set: b_i dense for one call, sparse for the full objective, and the labels."""

    rows: Any
    sparse: Any
    y: Any


@lru_cache(maxsize=1)  # w8a takes 120 MB
def _examples(name: str) -> Examples:
    from scipy.sparse import csr_array

    A, y = datasets.load(name)
    A *= y[:, None]
    return Examples(A, csr_array(A), y)


def _loss(kind: str, y: Any) -> Callable[[Any], Any]:
    """The loss of the margins b'x, where y has the labels of those examples."""
    if kind == "hinge":
        return lambda m: np.maximum(0.0, 1.0 - m)
    if kind == "absolute":
        return lambda m: np.abs(1.0 - m)  # |y - a'x|, as y is +-1
    return Logistic() if kind == "logistic" else Pinball(QUANTILE, y)


def _slope(kind: str, m: float, y: float) -> float:
    """The derivative of the loss at the margin m, one of them at a kink."""
    if kind == "hinge":
        return -1.0 if m < 1.0 else 0.0
    if kind == "absolute":
        return -1.0 if m < 1.0 else 1.0
    if kind == "logistic":
        return -0.5 * (1.0 - float(np.tanh(0.5 * m)))
    return -y * (QUANTILE if y * (1.0 - m) > 0.0 else QUANTILE - 1.0)


def build(known: Known) -> Problem:
    """The problem of a row of `KNOWN`."""
    rows, sparse, y = _examples(known.data)
    n, d = rows.shape
    mean_of = _loss(known.kind, y)

    def fun(X: Any, i: int) -> Any:
        return _loss(known.kind, y[i])(X @ rows[i])

    def gradient(x: Any, i: int) -> Any:
        return _slope(known.kind, float(rows[i] @ x), float(y[i])) * rows[i]

    name = f"{known.kind}-{known.data}"
    return Problem(
        name=name,
        x0=np.zeros(d),
        domain=Ball(known.radius),
        fun=fun,
        sample=lambda rng: int(rng.integers(n)),
        objective=lambda x: float(mean_of(sparse @ x).mean()),
        optimum=known.lower,
        certificate=f"f* >= {known.lower}, a dual value, and f* <= {known.upper}, the loss at a point: "
        f"poem_cma.problems.certify({name!r}) finds both again",
        noisy=True,
        smooth=known.kind == "logistic",
        slack=known.upper - known.lower,
        gradient=gradient,
    )


def enclose(name: str) -> tuple[float, float]:
    """Two numbers between which the least value of a real problem lies, worked out afresh."""
    known = KNOWN[name]
    _, sparse, y = _examples(known.data)
    if known.kind == "hinge":
        best = least_hinge_loss(sparse)  # on the unit ball
    elif known.kind == "logistic":
        best = least_loss(sparse, Logistic(), known.radius)
    else:
        tau = QUANTILE if known.kind == "quantile" else 0.5
        best = least_loss(sparse, Pinball(tau, y), known.radius)
    unit = 2.0 if known.kind == "absolute" else 1.0  # |r| is twice the quantile loss at 1/2
    return unit * best.dual, unit * best.primal


KNOWN = {
    f"{known.kind}-{known.data}": known
    for known in (
        Known("hinge", "mushrooms", 1.0, 0.138388723, 0.138388726),
        Known("logistic", "mushrooms", 10.0, 0.010300452, 0.010300489),
        Known("absolute", "mushrooms", 1.0, 0.156287909, 0.156288036),
        Known("quantile", "mushrooms", 3.0, 0.003103500, 0.003103569),
        Known("hinge", "w8a", 1.0, 0.333947041, 0.333947130),
        Known("logistic", "w8a", 10.0, 0.144063344, 0.144063384),
        Known("absolute", "w8a", 1.0, 0.513463406, 0.513463597),
        Known("quantile", "w8a", 3.0, 0.152343241, 0.152343301),
        Known("hinge", "a9a", 1.0, 0.407645107, 0.407645237),
        Known("logistic", "a9a", 10.0, 0.322625446, 0.322625463),
        Known("absolute", "a9a", 1.0, 0.447774851, 0.447775035),
        Known("quantile", "a9a", 3.0, 0.178618558, 0.178618606),
    )
}


def _builder(known: Known) -> Callable[[], Problem]:
    return lambda: build(known)


REAL = {name: _builder(known) for name, known in KNOWN.items()}
