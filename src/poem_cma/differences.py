"""Which points a probe asks for, and how their values become differences along its directions.

A failed call is NaN; it makes the difference it belongs to NaN, and every difference where it is a shared base.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from poem_cma._types import Array

__all__ = ["Central", "Difference", "Double", "Forward"]


class Difference(Protocol):
    """A way to take differences along directions."""

    @property
    def rows(self) -> int:
        """How many random vectors one probe takes."""

    @property
    def calls(self) -> int:
        """How many points one probe asks for."""

    @property
    def base(self) -> int | None:
        """The point whose value all differences share, if there is one."""

    @property
    def spread(self) -> float:
        """No point is further from x than this many smoothing radii times the longest direction."""

    def points(self, x: Array, mu: float, h: float, V: Array) -> Array:
        """The points to query (calls, d), around x, with the smoothing radius mu and the spacing h."""

    def span(self, mu: float, h: float) -> float:
        """What a difference is divided by to become a slope."""

    def along(self, V: Array) -> Array:
        """The directions that the differences are taken along."""

    def differences(self, F: list[float]) -> list[float]:
        """The differences of the values, one for each row of `along`."""


@dataclass(frozen=True)
class Central:
    """F(x + mu v) - F(x - mu v) over 2 mu: POEM, POEM-CMA, TPBCO."""

    rows: int = 1
    calls: int = 2
    base: None = None
    spread: float = 1.0

    def points(self, x: Array, mu: float, h: float, V: Array) -> Array:
        P = np.empty((2, len(x)))
        plus, minus = P[0], P[1]
        np.multiply(V[0], mu, minus)
        np.add(x, minus, plus)
        np.subtract(x, minus, minus)
        return P

    def span(self, mu: float, h: float) -> float:
        return 2.0 * mu

    def along(self, V: Array) -> Array:
        return V

    def differences(self, F: list[float]) -> list[float]:
        return [F[0] - F[1]]


@dataclass(frozen=True)
class Forward:
    """F(x + mu u) - F(x) over mu: RSNSO. The base comes first."""

    rows: int = 1
    calls: int = 2
    base: int = 0
    spread: float = 1.0

    def points(self, x: Array, mu: float, h: float, V: Array) -> Array:
        return np.stack((x, x + mu * V[0]))

    def span(self, mu: float, h: float) -> float:
        return mu

    def along(self, V: Array) -> Array:
        return V

    def differences(self, F: list[float]) -> list[float]:
        return [F[1] - F[0]]


@dataclass(frozen=True)
class Double:
    """F(x + u1 z1 + u2 z2) - F(x + u1 z1) over u2, along z2: TPGE. u1 is mu, u2 is h."""

    rows: int = 2
    calls: int = 2
    base: int = 0
    spread: float = 2.0

    def points(self, x: Array, mu: float, h: float, V: Array) -> Array:
        base = x + mu * V[0]
        return np.stack((base, base + h * V[1]))

    def span(self, mu: float, h: float) -> float:
        return h

    def along(self, V: Array) -> Array:
        return V[1:]

    def differences(self, F: list[float]) -> list[float]:
        return [F[1] - F[0]]
