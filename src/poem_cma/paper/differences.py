"""Which points a probe asks for, and how their values become a difference along its (last) direction.

A failed call is NaN, and so is its difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from poem_cma._types import Array
from poem_cma.run.arithmetic import LONG, plus

__all__ = ["Central", "Difference", "Double", "Forward"]


class Difference(Protocol):
    """A way to take a difference along a direction."""

    @property
    def rows(self) -> int:
        """How many random vectors one probe takes; the difference is along the last."""

    @property
    def calls(self) -> int:
        """How many points one probe asks for."""

    @property
    def base(self) -> int | None:
        """The point that lies on no direction and is asked again when it fails, if there is one."""

    def points(self, x: Array, mu: float, h: float, V: Array) -> Iterator[Array]:
        """The points to query around x, with the smoothing radius mu and the spacing h: fresh vectors, one by one."""

    def span(self, mu: float, h: float) -> float:
        """What the difference is divided by to become a slope."""

    def change(self, F: list[float]) -> float:
        """The difference of the values."""


@dataclass(frozen=True)
class Central:
    """F(x + mu v) - F(x - mu v) over 2 mu: POEM, POEM-CMA, TPBCO."""

    rows: int = 1
    calls: int = 2
    base: None = None

    def points(self, x: Array, mu: float, h: float, V: Array) -> Iterator[Array]:
        if x.size > LONG:  # parts of long vectors are better read again than kept
            yield plus(x, mu, V[0])
            yield plus(x, -mu, V[0])
        else:
            step = mu * V[0]
            yield x + step
            yield x - step

    def span(self, mu: float, h: float) -> float:
        return 2.0 * mu

    def change(self, F: list[float]) -> float:
        return F[0] - F[1]


@dataclass(frozen=True)
class Forward:
    """F(x + mu u) - F(x) over mu: RSNSO. The base comes first."""

    rows: int = 1
    calls: int = 2
    base: int = 0

    def points(self, x: Array, mu: float, h: float, V: Array) -> Iterator[Array]:
        yield x.copy()
        yield plus(x, mu, V[0])

    def span(self, mu: float, h: float) -> float:
        return mu

    def change(self, F: list[float]) -> float:
        return F[1] - F[0]


@dataclass(frozen=True)
class Double:
    """F(x + u1 z1 + u2 z2) - F(x + u1 z1) over u2, along z2: TPGE. u1 is mu, u2 is h."""

    rows: int = 2
    calls: int = 2
    base: int = 0

    def points(self, x: Array, mu: float, h: float, V: Array) -> Iterator[Array]:
        base = plus(x, mu, V[0])
        beside = plus(base, h, V[1])
        yield base
        yield beside

    def span(self, mu: float, h: float) -> float:
        return h

    def change(self, F: list[float]) -> float:
        return F[1] - F[0]
