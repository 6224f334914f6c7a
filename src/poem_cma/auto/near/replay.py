"""Samples evaluated again: where a sample's gradient keeps its direction, two evaluations give it anew.

A sample of a linear model depends on x along one direction only. Once a full walk has shown it, the slope along this
direction is the whole gradient, at any x. Four samples are walked once more to see whether that is so.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

import numpy as np

from poem_cma._types import Array
from poem_cma.auto.near.state import AGAIN, OFF, Memory, Near, Walk
from poem_cma.auto.request import Draws, Request, in_ball, room
from poem_cma.run.algorithm import Run

__all__ = ["ENOUGH", "SHARE", "chosen", "gradient", "kept", "request"]

#: The last share of the evaluations, and the number of known samples that it takes.
SHARE, ENOUGH = 0.15, 8
#: So many samples are walked once more; the median cosine of old and new directions must be at least this.
TRIED, SAME = 4, 0.9
#: Differences are taken over this part of the radius.
BASE = 0.1
#: The random orders have addresses from here on.
LAPS = 1 << 40
#: The known directions may take so many numbers.
MOST_NUMBERS = 20_000_000


def kept(memory: Memory, g: Array, walk: Walk) -> Memory:
    """The memory after a full walk: a new sample is remembered, a known one is compared."""
    length = float(np.sqrt(g @ g))
    if walk.place >= 0:
        cosine = abs(float(memory.directions[walk.place] @ g)) / length if length else 1.0
        cosines = (*memory.cosines, cosine)
        if len(cosines) < TRIED:
            return memory._replace(cosines=cosines)
        return memory._replace(cosines=cosines, mode=AGAIN if np.median(cosines) >= SAME else OFF)
    if not length or (len(memory.numbers) + 1) * len(g) > MOST_NUMBERS:
        return memory
    return memory._replace(directions=(*memory.directions, g / length), numbers=(*memory.numbers, walk.sample))


def chosen(memory: Memory, draws: Draws) -> int:
    """Which sample is next: all in a random order, then all in another one."""
    n = len(memory.numbers)
    lap, place = divmod(memory.turn + len(memory.cosines), n)
    return int(draws.rng(LAPS + lap).permutation(n)[place])


def request(near: Near, run: Run, draws: Draws, address: int, sample: int) -> Request:
    """Two points along the known direction of a sample, around a random point near x."""
    u, number = near.memory.directions[sample], near.memory.numbers[sample]
    base, reach = _base(near, run, draws, address)

    def points() -> Iterator[Array]:
        yield run.domain.project(base).astype(run.x0.dtype, copy=False)
        yield run.domain.project(base + reach * u).astype(run.x0.dtype, copy=False)

    return Request(points, 2, -1 - number)


def gradient(near: Near, run: Run, draws: Draws, address: int, sample: int, F: Array) -> Array:
    """The gradient from the two values."""
    slope = (F[1] - F[0]) / _base(near, run, draws, address)[1]
    g: Array = near.memory.directions[sample] * (slope if np.isfinite(slope) else 0.0)
    return g


def _base(near: Near, run: Run, draws: Draws, address: int) -> tuple[Array, float]:
    """A random point near x with room for the difference, and its length."""
    mu = near.R / sqrt(near.t + 1.0)
    return room(near.x + mu * in_ball(draws.rng(address), run), BASE * mu, run)
