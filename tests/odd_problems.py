"""Random small problems of all kinds: losses, scales, offsets, domains, sparse or few samples, noise of their own.

Nobody would choose them, and that is the point: a method that is tuned to the usual ones fails here first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import poem_cma as pc

__all__ = ["Odd", "odd_problem"]

#: Of a margin u, and a target y.
LOSSES: dict[str, Callable[[Any, Any], Any]] = {
    "absolute": lambda u, y: np.abs(u - y),
    "squared": lambda u, y: 0.5 * (u - y) ** 2,
    "hinge": lambda u, y: np.maximum(0.0, 1.0 - np.sign(y) * u),
    "logistic": lambda u, y: np.logaddexp(0.0, -np.sign(y) * u),
    "huber": lambda u, y: np.where(np.abs(u - y) < 1.0, 0.5 * (u - y) ** 2, np.abs(u - y) - 0.5),
    "quantile": lambda u, y: np.maximum(0.8 * (u - y), 0.2 * (y - u)),
}


@dataclass
class Odd:
    """F(x; i) = unit (loss(a_i x / size, y_i) + ridge / 2 |x / size|^2 + offset), and noise of each call's own."""

    number: int
    loss: str
    A: np.ndarray
    y: np.ndarray
    size: float
    unit: float
    offset: float
    ridge: float
    own: float
    shape: str

    def __post_init__(self) -> None:
        self._noise = np.random.default_rng(self.number)

    def losses(self, x: np.ndarray, i: Any) -> Any:
        z = x / self.size
        return LOSSES[self.loss](self.A[i] @ z, self.y[i]) + 0.5 * self.ridge * (z @ z)

    def fun(self, x: np.ndarray, i: int) -> float:
        own = self.own * self._noise.normal() if self.own else 0.0
        return float(self.unit * (self.losses(x, i) + self.offset + own))

    def mean(self, x: np.ndarray) -> float:
        """Without the offset, and in its own unit."""
        return float(np.mean(self.losses(x, slice(None))))

    def sample(self, rng: np.random.Generator) -> int:
        return int(rng.integers(len(self.A)))

    @property
    def x0(self) -> np.ndarray:
        d = self.A.shape[1]
        return np.full(d, 1.0 / d) if self.shape == "simplex" else np.zeros(d)

    @property
    def domain(self) -> Any:
        return {
            "space": None,
            "ball": pc.Ball(self.size * np.sqrt(self.A.shape[1])),
            "box": pc.Box(-3.0 * self.size, 3.0 * self.size),
            "tight box": pc.Box(-0.3 * self.size, 0.5 * self.size),
            "simplex": pc.Simplex(),
            "l1 ball": pc.L1Ball(0.5 * self.size * self.A.shape[1]),
        }[self.shape]

    def solve(self, method: Any = "auto", budget: int = 2000, run: int = 0, **options: Any) -> pc.Result:
        """One of several runs."""
        return pc.minimize(
            self.fun, self.x0, sample=self.sample, domain=self.domain, method=method, budget=budget,
            seed=self.number + run, evaluate=0, **options,
        )  # fmt: skip

    def __str__(self) -> str:
        n, d = self.A.shape
        filled = np.count_nonzero(self.A) / self.A.size
        return (
            f"{self.number}: {self.loss}, {n} samples, {d} variables, {filled:.0%} filled, ridge {self.ridge:g}, "
            f"{self.shape}, size {self.size:g}, unit {self.unit:g}, offset {self.offset:g}, own noise {self.own:g}"
        )


def odd_problem(number: int) -> Odd:
    """The problem of a number."""
    rng = np.random.default_rng(number)
    n, d = int(rng.choice([3, 20, 200])), int(rng.choice([2, 3, 5, 8, 20, 50]))
    A = rng.normal(size=(n, d)) * (rng.random((n, d)) < rng.choice([1.0, 1.0, 0.2, 0.05]))
    if rng.random() < 0.25:
        A *= 10.0 ** rng.uniform(-2.0, 2.0, size=d)
    shape = str(rng.choice(["space", "ball", "box", "tight box", "simplex", "l1 ball"]))
    solution = rng.dirichlet(np.ones(d)) if shape == "simplex" else rng.normal(size=d)
    return Odd(
        number=number,
        loss=str(rng.choice(list(LOSSES))),
        A=A,
        y=A @ solution + float(rng.choice([0.0, 0.3])) * rng.normal(size=n),
        size=1.0 if shape == "simplex" else float(10.0 ** rng.choice([-4, -1, 0, 0, 0, 2, 5])),
        unit=float(10.0 ** rng.choice([-6, -2, 0, 0, 0, 3, 8])),
        offset=float(rng.choice([0.0, 0.0, 0.0, 1e3])),
        ridge=float(rng.choice([0.0, 0.0, 0.01, 0.1])),
        own=float(rng.choice([0.0] * 8 + [1e-7, 1e-3])),
        shape=shape,
    )
