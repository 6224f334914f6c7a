"""Samples evaluated again: where a sample's gradient keeps its direction, two evaluations give it anew.

A sample of a linear model depends on x along one direction only. Once a full walk has shown it, the slope along this
direction is the whole gradient, at any x. Four samples are walked once more to see whether that is so.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

import numpy as np

from poem_cma._types import Array
from poem_cma.auto.near.state import AGAIN, OFF, PASSES, TEST, Memory, Near, Walk
from poem_cma.auto.request import Draws, Request, in_ball, room
from poem_cma.run.algorithm import Run

__all__ = ["chosen", "cost", "enough", "gradient", "kept", "request"]

#: Largest share of the budget. With a quarter fewer samples the error of a mean of gradients grows by a sixth.
SHARE = 0.25
#: Number of samples that must be known.
ENOUGH = 8
#: Number of samples walked again, and least median cosine of old and new directions.
TRIED, SAME = 4, 0.9
#: Distance of differences as a fraction of the radius.
BASE = 0.1
#: First random address of the order of samples.
LAPS = 1 << 40
#: Most numbers stored for known directions (memory).
MOST_NUMBERS = 20_000_000


def kept(memory: Memory, g: Array, walk: Walk) -> Memory:
    """The memory after a full walk: a new sample is remembered, a known one is compared.

    The direction of a flat sample is not known, and is zero. It must be remembered all the same: F may not be flat
    there at another x, and without the flat samples the others would weigh too much.
    """
    length = float(np.sqrt(g @ g))
    u = g / length if length else np.zeros_like(g)
    if walk.place < 0:
        if (len(memory.numbers) + 1) * len(g) > MOST_NUMBERS:
            return memory
        return memory._replace(directions=(*memory.directions, u), numbers=(*memory.numbers, walk.sample))
    known = memory.directions[walk.place]
    if memory.mode == TEST and known.any():
        cosines = (*memory.cosines, abs(float(known @ u)) if length else 1.0)
        mode = memory.mode if len(cosines) < TRIED else AGAIN if np.median(cosines) >= SAME else OFF
        memory = memory._replace(cosines=cosines, mode=mode)
    if not length:
        return memory
    directions = (*memory.directions[: walk.place], u, *memory.directions[walk.place + 1 :])
    return memory._replace(directions=directions)


def cost(memory: Memory, run: Run) -> float:
    """What the passes over the known samples cost, and a part of the budget at most."""
    return min(2.0 * PASSES * len(memory.numbers), SHARE * run.budget)


def enough(memory: Memory) -> bool:
    """Whether the directions of enough samples are known."""
    return sum(bool(u.any()) for u in memory.directions) >= ENOUGH


def chosen(memory: Memory, draws: Draws) -> int:
    """Which sample is next: all in a random order, then all in another one."""
    n = len(memory.numbers)
    lap, place = divmod(memory.turn, n)
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
