"""What a step reads and leaves: points by the numbers of their directions, and the few numbers that a run needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import nan, sqrt
from typing import NamedTuple

from poem_cma.torch.allocation import Allocation

__all__ = ["Evaluate", "Move", "Point", "State"]


class Point(NamedTuple):
    """x + sum_j coefficients[j] v_(first + j), the directions having unit length and the given shape."""

    first: int
    coefficients: tuple[float, ...]
    shape: tuple[float, ...] = ()  # by tensor; empty: all alike

    @property
    def length(self) -> float:
        return sqrt(sum(c * c for c in self.coefficients))

    def times(self, factor: float) -> Point:
        return self._replace(coefficients=tuple(factor * c for c in self.coefficients))


class Move(NamedTuple):
    """A step that was made."""

    point: Point
    fall: float  # how much lower the slopes said that F would be, were it linear


class State(NamedTuple):
    """All that must survive a crash, beside the weights."""

    t: int = 0  # steps
    number: int = 0  # directions so far; a multiple of four
    r_bar: float = 0.0  # the scale R, or POEM's largest distance
    G: float = 0.0
    mu: float = 0.0
    bend: float = 0.0  # F's mean curvature along a direction, a half of it,
    reach: float = 0.0  # and the radius at which it was last seen
    typical: float = 0.0  # the usual length of a gradient
    way: float = 0.0  # the sum of all squared steps: |x - x_0|², of steps that are all but orthogonal
    moves: tuple[Move, ...] = ()  # the last few, the latest last
    stiffness: float = nan  # one over the step size that looks right
    looks: int = 0  # at the scale
    fall: float = 0.0  # the usual fall of a step
    value: float = nan  # the smoothed loss
    spread: float = 0.0
    eta: float = 0.0
    skipped: int = 0  # steps without a usable loss
    undone: int = 0
    forwards: int = 0
    allocation: Allocation | None = None


Evaluate = Callable[[Sequence[Point]], list[float]]  # the losses at points, on the batch at hand
