"""The runs that everything must hold for: the paper's methods, and `auto` near, far and without noise.

Functions are those of a point and of the number of a sample, so that whoever calls them gets the same values.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

import poem_cma as pc

D = 6
GOAL = np.random.default_rng(0).normal(size=D)


class Case(NamedTuple):
    """A method, a function that it is for, and the phase that takes most of the run."""

    method: Any
    fun: Callable[[np.ndarray, int], float]
    phase: str


#: The same run is made many times: what its samples and evaluations draw is remembered.
remembered = lru_cache(maxsize=2**16)


@remembered
def numbers(n: int, size: int) -> np.ndarray:
    """Random numbers of sample n."""
    found = np.random.default_rng(n).normal(size=size)
    found.flags.writeable = False
    return found


def logistic(x: np.ndarray, n: int) -> float:
    """Near: samples disagree, and have slopes."""
    a = numbers(n, len(x))
    return float(np.logaddexp(0.0, -np.sign(a @ GOAL[: len(x)]) * (a @ x)))


def counting(x: np.ndarray, n: int) -> float:
    """Far: it has steps."""
    return float(np.floor(3.0 * np.abs(x - GOAL[: len(x)])).sum() + round(numbers(n, 1)[0]))


def smooth(x: np.ndarray, n: int) -> float:
    """Without noise: a curved valley."""
    y = x - GOAL[: len(x)]
    return float(((y[1:] - y[:-1] ** 2) ** 2).sum() + 0.1 * (y**2).sum())


def kinked(x: np.ndarray, n: int) -> float:
    """Without noise, and with a kink at its minimum, which makes `auto` search again."""
    return float(np.abs(x - GOAL[: len(x)]).sum() + np.abs(x[0] - x[-1]))


def shaken(x: np.ndarray, n: int) -> float:
    """Far: every evaluation has noise of its own."""
    return logistic(x, n) + 0.1 * own(x.tobytes(), n)[0]


@remembered
def own(x: bytes, n: int) -> tuple[float, float]:
    """A normal and a uniform number of this point and this sample alone."""
    address = [n, *np.frombuffer(x, dtype=np.uint32)]
    return float(np.random.default_rng(address).normal()), float(np.random.default_rng(address).random())


def failing(fun: Callable[[np.ndarray, int], float]) -> Callable[[np.ndarray, int], float]:
    """A tenth of the calls fails, as a function of the point and the sample."""

    def unreliable(x: np.ndarray, n: int) -> float:
        u = own(x.tobytes(), n)[1]
        if u < 0.05:
            raise RuntimeError("the simulator crashed")
        return np.nan if u < 0.1 else fun(x, n)

    return unreliable


def draw(rng: np.random.Generator) -> int:
    """The number of a sample."""
    return int(rng.integers(2**31))


CASES = {
    "auto near": Case("auto", logistic, "near"),
    "auto far": Case("auto", counting, "far"),
    "auto own noise": Case("auto", shaken, "far"),
    "auto noiseless": Case("auto", smooth, "exact"),
    "auto kink": Case("auto", kinked, "exact"),
    "poem": Case("poem", logistic, "step"),
    "poem-cma": Case(pc.methods.poem_cma(samples=12), logistic, "step"),
    "tpbco": Case(pc.methods.tpbco(lipschitz=3.0, diameter=4.0), logistic, "step"),
    "tpge": Case(pc.methods.tpge(lipschitz=3.0, diameter=4.0), logistic, "step"),
    "rsnso": Case(pc.methods.rsnso(lipschitz=3.0, distance=2.0), logistic, "step"),
}
