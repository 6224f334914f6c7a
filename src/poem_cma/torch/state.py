"""What a step reads and leaves: points by the numbers of their directions, and the few numbers that a run needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from typing import NamedTuple

from poem_cma.torch.allocation import Allocation
from poem_cma.torch.sight import Sight
from poem_cma.torch.watch import Watch

__all__ = ["Bend", "Evaluate", "Move", "Pace", "Point", "State"]


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


class Bend(NamedTuple):
    """F's mean curvature along a direction, a half of it."""

    value: float = 0.0
    reach: float = 0.0  # the radius at which it was last seen


class Pace(NamedTuple):
    """What the scale is judged by; see `scale`."""

    looks: int = 0  # at the scale
    mean: float = 0.0  # the mean of the slopes that they saw, in units of the slope that was predicted,
    square: float = 0.0  # and their mean square
    fall: float = 0.0  # the usual fall of a step
    typical: float = 0.0  # the usual length of a gradient
    way: float = 0.0  # the sum of all squared steps: |x - x_0|², of steps that are all but orthogonal


class State(NamedTuple):
    """All that must survive a crash, beside the weights."""

    t: int = 0  # steps
    number: int = 0  # directions so far; a multiple of four
    forwards: int = 0
    skipped: int = 0  # steps without a usable loss
    undone: int = 0  # steps taken back
    r_bar: float = 0.0  # the scale R, or POEM's largest distance
    G: float = 0.0
    mu: float = 0.0
    eta: float = 0.0
    moves: tuple[Move, ...] = ()  # the last ones, the latest last
    bend: Bend = Bend()
    sight: Sight = Sight()
    pace: Pace = Pace()
    watch: Watch = Watch()
    allocation: Allocation | None = None


Evaluate = Callable[[Sequence[Point]], list[float]]  # the losses at points, on the batch at hand
