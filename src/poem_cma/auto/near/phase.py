"""What a near step asks for, and what follows from the values: a walk in stages, or a sample evaluated again."""

from __future__ import annotations

import numpy as np

from poem_cma._types import Array
from poem_cma.auto.near import replay
from poem_cma.auto.near.state import AGAIN, LEARN, NO_WALK, OFF, TEST, Near, Walk
from poem_cma.auto.near.step import step, usable
from poem_cma.auto.near.subspace import given_up, outside, seen
from poem_cma.auto.near.walk import axes_of, places, request, slopes, whole
from poem_cma.auto.request import Draws, Request
from poem_cma.run.algorithm import Run

__all__ = ["advance", "opened", "requests"]


def opened(near: Near, run: Run, draws: Draws, address: int, samples: int, left: float) -> Near:
    """The search with its next step begun; `left` evaluations are left."""
    if near.walk.address >= 0:
        return near
    memory = near.memory
    if memory.mode == LEARN and left <= replay.cost(memory, run):
        memory = memory._replace(mode=TEST if replay.enough(memory) else OFF)
    near = near._replace(memory=memory)
    if memory.mode in (TEST, AGAIN):
        place = replay.chosen(memory, draws)
        if memory.mode == AGAIN and memory.directions[place].any():
            return near
        q, sample = whole(near), memory.numbers[place]
    else:
        q, sample, place = axes_of(near, run, left), samples, -1
    spanned = q == whole(near) < len(near.x)
    return near._replace(walk=Walk(address, q, sample, place, spanned, np.full(q + 1, np.nan)))


def requests(near: Near, run: Run, draws: Draws, address: int) -> list[Request]:
    """The points of the step under way that are needed now."""
    if near.walk.address >= 0:
        return [request(near, run, draws)]
    return [replay.request(near, run, draws, address, replay.chosen(near.memory, draws))]


def advance(near: Near, run: Run, draws: Draws, address: int, values: list[Array]) -> tuple[Near, bool]:
    """The search after the values, and whether a step was taken."""
    F, memory = values[0], near.memory
    if near.walk.address < 0:
        g = replay.gradient(near, run, draws, address, replay.chosen(memory, draws), F)
        return step(near, g, run, fresh=False)._replace(memory=memory._replace(turn=memory.turn + 1)), True
    wanted = places(near.walk, near)
    known = near.walk.known.copy()
    known[wanted] = np.where(np.isfinite(F), F, np.inf)
    near = near._replace(walk=near.walk._replace(known=known))
    if places(near.walk, near):
        return near, False
    g, last = slopes(near, run, draws)
    g = usable(g)
    fresh = near.walk.place < 0
    if outside(g, last, near.walk):
        near = near._replace(memory=given_up(memory))
    elif near.walk.axes == len(g) or near.walk.spanned:
        memory = replay.kept(memory, g, near.walk)
        if not near.walk.spanned:
            near = near._replace(active=near.active + (g != 0.0))
            near = near._replace(cost=near.cost + np.array([(~np.isnan(known)).sum(), 1.0]))
            memory = seen(memory, g, near.walk, run)
        near = near._replace(memory=memory._replace(turn=memory.turn + (not fresh)))
    return step(near, g, run, fresh)._replace(walk=NO_WALK), True
