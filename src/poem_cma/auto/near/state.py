"""What a search by near differences has come to."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from poem_cma._types import Array, Mark, Partial, Points, Series, Size, Value

__all__ = ["AGAIN", "LEARN", "NO_WALK", "OFF", "TEST", "Evidence", "Memory", "Near", "Walk", "again", "begin"]


#: Repeated evaluations of each known sample; more would fit the samples instead of f. The first passes are worth
#: almost as much as fresh samples and cost a fraction of a walk.
PASSES = 8


class Walk(NamedTuple):
    """A walk along some axes that is under way."""

    address: Mark  # of its random numbers; negative: there is none
    axes: int  # how many it takes
    sample: int  # the number of its xi
    place: Mark  # of the sample in the memory; negative if it is new
    spanned: bool  # along the basis of a subspace and one direction out of it, not along coordinates
    known: Partial  # (axes + 1,) values at its places; NaN where they are not known


class Evidence(NamedTuple):
    """Whether the scale R should be changed: the slopes towards the start, since R was changed last."""

    total: Value  # sum of <g, x - x0>
    squares: Value
    terms: int


class Memory(NamedTuple):
    """Samples whose gradient is known from a full walk, and whether they are evaluated again."""

    directions: tuple[Array, ...]  # of their gradients
    numbers: tuple[int, ...]  # of their xi's
    cosines: tuple[float, ...]  # between the direction known and that of another walk
    mode: str  # of LEARN, TEST, AGAIN and OFF
    turn: int  # samples evaluated again
    basis: Points  # (rank, d) of the subspace in which all gradients lie; zero if there is none that is known
    inside: int  # gradients in a row that were in the span of those before


#: Walks are remembered; some samples are walked once more; samples are evaluated again; they are not.
LEARN, TEST, AGAIN, OFF = "learn", "test", "again", "off"


class Near(NamedTuple):
    """Dual averaging from x0 with the scale R."""

    x0: Array  # where this search began
    x: Array
    s: Array  # sum of the gradients
    G: Size  # sum of their squared lengths
    R: Size
    t: int  # steps
    evidence: Evidence
    active: Array  # (d,) how often the slope along an axis was not zero
    cost: Series  # (2,) evaluations of the full walks so far, and how many they are
    walk: Walk
    memory: Memory
    noise: float  # differences of values below this are noise of the evaluation
    slope: float  # a typical slope along a direction, where the search began


NO_WALK = Walk(-1, 0, 0, -1, False, np.zeros(0))


def again(near: Near, x: Array, R: float) -> Near:
    """A search from x with another scale, which keeps what is known of the samples."""
    fresh = begin(x, R, near.noise, near.slope)
    return fresh._replace(active=near.active, cost=near.cost, memory=near.memory)


def begin(x: Array, R: float, noise: float, slope: float) -> Near:
    """At x, with a first scale."""
    zero = np.zeros(len(x))
    memory = Memory((), (), (), LEARN, 0, np.zeros((0, len(x))), 0)
    return Near(x, x, zero, 0.0, R, 0, Evidence(0.0, 0.0, 0), zero, np.zeros(2), NO_WALK, memory, noise, slope)
