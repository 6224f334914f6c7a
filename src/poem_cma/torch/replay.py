"""Following a run from its log of losses alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from poem_cma.torch.log import Log
from poem_cma.torch.optimizer import Poem
from poem_cma.torch.state import Point

__all__ = ["replay"]


@torch.no_grad()
def replay(opt: Poem, log: Log, progress: Callable[[int, int], None] | None = None) -> None:
    """Bring a fresh optimizer, at the first weights, to where the log ends, without a forward pass.

    Parameters
    ----------
    opt : Poem
        Made with the same arguments, over the weights that the run began with; or behind the log on the same run.
    log : Log
        `opt.log` of the run to follow.
    progress : callable, optional
        Called with the number of steps done and their total.
    """
    if log.dimension != opt.layout.dimension:
        raise ValueError(f"the log is of {log.dimension} parameters, but there are {opt.layout.dimension}")
    done = len(opt.log.steps)
    if done and opt.seed != log.seed:
        raise ValueError("the log is of another run: its seed differs")
    if done == 0:
        opt.seed = opt.log.seed = log.seed
        if opt.now.allocation is not None:
            opt.now = opt.now._replace(allocation=opt.now.allocation._replace(seed=log.seed))
    for number, values in enumerate(log.steps[done:], start=done):
        left = list(values)

        def told(points: Sequence[Point], left: list[float] = left, number: int = number) -> list[float]:
            if len(points) > len(left):
                raise ValueError(f"step {number} of the log does not fit: was the optimizer made with other arguments?")
            taken, left[:] = left[: len(points)], left[len(points) :]
            return taken

        state, move = opt.engine.step(opt.now, told)
        if left:
            raise ValueError(f"step {number} of the log does not fit: was the optimizer made with other arguments?")
        opt._make(state, move)
        opt.log.steps.append(list(values))
        if progress is not None:
            progress(number + 1, len(log.steps))
