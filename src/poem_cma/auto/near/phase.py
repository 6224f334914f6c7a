"""What a near step asks for, and what follows from the values: a walk in stages, or a sample evaluated again."""

from __future__ import annotations

import numpy as np

from poem_cma._types import Array
from poem_cma.auto.near import replay
from poem_cma.auto.near.state import AGAIN, LEARN, NO_WALK, OFF, TEST, Near, Walk
from poem_cma.auto.near.step import step
from poem_cma.auto.near.walk import axes_of, places, request, slopes
from poem_cma.auto.request import Draws, Request
from poem_cma.run.algorithm import Run

__all__ = ["advance", "opened", "requests"]


def opened(near: Near, run: Run, draws: Draws, address: int, samples: int, last: bool) -> Near:
    """The search with its next step begun; `last` says that the last quarter of the evaluations has begun."""
    if near.walk.address >= 0:
        return near
    memory = near.memory
    if last and memory.mode == LEARN:
        memory = memory._replace(mode=TEST if len(memory.numbers) >= replay.ENOUGH else OFF)
    near = near._replace(memory=memory)
    if memory.mode == AGAIN:
        return near
    if memory.mode == TEST:
        place = replay.chosen(memory, draws)
        q, sample = len(near.x), memory.numbers[place]
    else:
        q, sample, place = axes_of(near, run), samples, -1
    return near._replace(walk=Walk(address, q, sample, place, np.full(q + 1, np.nan)))


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
    g = slopes(near, run, draws)
    near = near._replace(active=near.active + (g != 0.0))
    if near.walk.axes == len(g):
        cost = near.cost + np.array([(~np.isnan(known)).sum(), 1.0])
        near = near._replace(cost=cost, memory=replay.kept(memory, g, near.walk))
    return step(near, g, run, fresh=near.walk.place < 0)._replace(walk=NO_WALK), True
