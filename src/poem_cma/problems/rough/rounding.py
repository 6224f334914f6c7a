"""Rounded values and rounded variables: slopes over short distances are zero, or belong to some variables only.

A number is rounded to the nearest integer, and upwards in the middle between two integers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from poem_cma._types import Array
from poem_cma.problems.black_box import BlackBox

__all__ = ["BLACK_BOXES", "LEAST", "one_integer", "rounded_simulator", "stairs"]

#: The minimiser of `rounded_simulator`, and the real variables of that of `one_integer`.
_CENTRE = np.array([0.8, -0.6, 0.7, 0.9, -0.8, 0.6])
_HALVES = np.where(np.arange(20) % 3 == 0, -0.5, 0.5)


def rounded_simulator() -> BlackBox:
    """A smooth response whose value is rounded to 0.01.

    f(x) = sum c_i z_i^2 / 2 + k (exp(b'z) - b'z - 1) with z = x - t. In a sample z is moved by normal errors of
    standard deviation 0.2, and the value has a normal error of 0.1. Since that is ten steps of the rounding, rounding
    changes the mean by less than 1e-80, and the judge is f.
    """
    d = len(_CENTRE)
    c, b, k, s = np.geomspace(0.2, 2.0, d), np.array([0.5, -0.3, 0.4, -0.2, 0.3, -0.5]), 0.5, 0.2
    less = float(np.exp(-0.5 * s**2 * (b @ b)))  # the mean of exp(b'(z + s u)) is exp(b'z) / less

    def response(x: Any, xi: Any) -> float:
        z = np.asarray(x) - _CENTRE
        moved = z + s * xi[:d]
        square = 0.5 * float(c @ (moved * moved - s**2))
        growth = less * float(np.exp(min(b @ moved, 50.0)))  # the cap keeps values finite where |z| is above 50
        return round(square + k * (growth - float(b @ z) - 1.0) + 0.1 * float(xi[d]), 2)

    def judge(x: Any) -> float:
        z = np.asarray(x) - _CENTRE
        return 0.5 * float(c @ (z * z)) + k * float(np.expm1(min(b @ z, 50.0)) - b @ z)

    return BlackBox(
        name="rounded-simulator",
        suite="rough",
        source="a sum of a quadratic and an exponential function whose values are rounded to 0.01",
        x0=np.zeros(d),
        domain=None,
        fun=response,
        sample=lambda rng: rng.standard_normal(d + 1),
        judge=judge,
        budgets=(300, 1000),
    )


def stairs(name: str, k: int = 2, start: float = 0.0, shared: bool = True) -> BlackBox:
    """|x[:k] - 2|^2 + |round(x[k:]) - 3|^2 with k real and k rounded variables.

    Parameters
    ----------
    name : str
    k : int
    start : float
        Where the rounded variables start: 0 is the middle of a step, 0.5 the edge between two.
    shared : bool
        True moves the targets 2 and 3 by normal errors of standard deviation 0.3, the same for equal samples.
        False adds a normal error of 0.3 to every evaluation.
    """
    place = "on the edge" if start % 1.0 == 0.5 else "inside"
    return _partly_rounded(
        name,
        f"a sum of squares with {k} real and {k} rounded variables, which start {place} of a step",
        np.repeat([0.0, start], k),
        np.repeat([2.0, 3.0], k),
        k,
        shared,
    )


def one_integer(name: str = "one-integer", shared: bool = True) -> BlackBox:
    """20 real variables and a rounded one, to which 9 of the 14 units of f(x0) - f* are due."""
    return _partly_rounded(
        name,
        "a sum of squares with twenty real variables and a rounded one",
        np.zeros(21),
        np.append(_HALVES, 3.0),
        20,
        shared,
    )


def _partly_rounded(name: str, source: str, x0: Array, target: Array, real: int, shared: bool) -> BlackBox:
    d, s = len(x0), 0.3

    def off(x: Any) -> Any:
        rounded = np.array(x, dtype=float)
        rounded[real:] = np.floor(rounded[real:] + 0.5)
        return rounded - target

    def moved(x: Any, xi: Any) -> float:
        away = off(x) - s * xi
        return float(away @ away) - d * s**2

    return BlackBox(
        name=name,
        suite="rough",
        source=source,
        x0=x0,
        domain=None,
        fun=moved if shared else lambda x, xi: float(np.sum(off(x) ** 2)) + s * xi,
        sample=(lambda rng: rng.standard_normal(d)) if shared else lambda rng: float(rng.standard_normal()),
        judge=lambda x: float(np.sum(off(x) ** 2)),
        budgets=(300, 1000),
        shared=shared,
    )


BLACK_BOXES: dict[str, Callable[[], BlackBox]] = {
    "rounded-simulator": rounded_simulator,
    "stairs-on": partial(stairs, "stairs-on", start=0.5),
    "stairs-off": partial(stairs, "stairs-off"),
    "stairs-on-own": partial(stairs, "stairs-on-own", start=0.5, shared=False),
    "stairs-off-own": partial(stairs, "stairs-off-own", shared=False),
    "stairs-8": partial(stairs, "stairs-8", k=4),
    "one-integer": one_integer,
    "one-integer-own": partial(one_integer, "one-integer-own", shared=False),
}

LEAST: dict[str, Callable[[], tuple[Array, float]]] = {
    "rounded-simulator": lambda: (_CENTRE.copy(), 0.0),
    **{name: lambda: (np.array([2.0, 2.0, 3.0, 3.0]), 0.0) for name in BLACK_BOXES if name.startswith("stairs-o")},
    "stairs-8": lambda: (np.repeat([2.0, 3.0], 4), 0.0),
    **dict.fromkeys(("one-integer", "one-integer-own"), lambda: (np.append(_HALVES, 3.0), 0.0)),
}
