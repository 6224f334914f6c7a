"""What a phase asks for: points to evaluate on one sample, and the random numbers that made them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from poem_cma._types import Array
from poem_cma.domains.sets import Whole
from poem_cma.run.algorithm import Run
from poem_cma.run.randomness import Stream, Streams

__all__ = ["HUGE", "Draws", "Request", "at", "first_unit", "in_ball", "longest", "room", "unit"]


#: Squares of numbers beyond this may overflow. No length is larger, and a value that is counts as failed.
HUGE = 1e120


class Request(NamedTuple):
    """Points that share one xi.

    Attributes
    ----------
    points : callable
        Makes the points, one at a time if there are many variables.
    size : int
        How many there are.
    sample : int
        Which xi: its number, counted from the first new one of the stage if it is not negative; otherwise
        ``-1 - sample`` is the number of one that was used before.
    """

    points: Callable[[], Iterable[Array]]
    size: int
    sample: int = 0


def at(points: Array, sample: int = 0) -> Request:
    """A request for the rows of a matrix."""
    return Request(lambda: points, len(points), sample)


class Draws:
    """The random numbers of a run by address. It keeps what was made of them last, a pure function of the state."""

    def __init__(self, seed: int, run: Run) -> None:
        self._seed, self._run = seed, run
        self._streams = Streams(seed)
        self._plan: tuple[Any, list[Request]] = (None, [])
        self._made: tuple[Any, int, Any] = (None, 0, None)

    def rng(self, address: int) -> np.random.Generator:
        """The generator at an address; valid until the next call."""
        return self._streams.block(Stream.DIRECTIONS, address)

    def plan(self, state: Any, make: Callable[[Any, Draws], list[Request]]) -> list[Request]:
        """The requests of a state; they are made once."""
        if self._plan[0] is not state:
            self._plan = (state, make(state, self))
        return self._plan[1]

    def once(self, search: Any, address: int, make: Callable[[], Any]) -> Any:
        """What `make` makes of a search and the random numbers at an address; it is kept until the next one."""
        if self._made[0] is not search or self._made[1] != address:
            self._made = (search, address, make())
        return self._made[2]

    def another(self) -> Draws:
        """The same numbers, for another step in flight."""
        return Draws(self._seed, self._run)


def unit(rng: np.random.Generator, rows: int, run: Run) -> Array:
    """Random directions of length one that do not leave the hull of the domain."""
    V = run.domain.tangent(rng.standard_normal((rows, len(run.x0))))
    directions: Array = V / np.sqrt((V * V).sum(axis=1, keepdims=True))
    return directions


def in_ball(rng: np.random.Generator, run: Run) -> Array:
    """A random point of the unit ball of the domain's hull."""
    d = run.domain.hull_dimension(len(run.x0))
    v: Array = unit(rng, 1, run)[0] * rng.random() ** (1.0 / d)
    return v


def longest(run: Run) -> float:
    """Half the diameter of the domain: no scale is larger."""
    return 0.5 * float(run.domain.diameter)


def first_unit(x: Array) -> float:
    """A first guess of the unit of x."""
    return max(1.0, float(np.abs(x).max()))


def room(x: Array, reach: float, run: Run) -> tuple[Array, float]:
    """The point nearest to x with room for steps of this length, or of a shorter one if the domain is small, and it."""
    domain = run.domain
    if not isfinite(domain.diameter) and isinstance(domain, Whole):
        return x, reach
    reach = min(reach, MOST_REACH * domain.inradius)
    try:
        inner: Array = domain.shrunk(reach).project(x)
    except ValueError:  # a domain of the user's own that cannot be shrunk
        return x, reach
    return inner, reach


#: Longest step as a fraction of the largest ball in the domain.
MOST_REACH = 0.5
