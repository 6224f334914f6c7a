"""One run of a method, looked at while it goes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

import poem_cma as pc
from poem_cma._types import Array

__all__ = ["call_grid", "follow", "make_method"]


def make_method(
    name: str, *, lipschitz: float, d: int, tol: float = 0.25, initial_distance: float | None = None
) -> pc.Method:
    """A method as the paper sets it: M = floor(d ln d), the theory's constants, on a ball of radius one."""
    if name == "poem":
        return pc.methods.poem(initial_distance=initial_distance)
    if name == "poem-cma":
        M = pc.theory.sample_size(d)
        return pc.methods.poem_cma(tol=tol, samples=M, initial_distance=initial_distance)
    if name == "tpbco":
        return pc.methods.tpbco(lipschitz=lipschitz)
    if name == "tpge":
        return pc.methods.tpge(lipschitz=lipschitz)
    if name == "rsnso":
        return pc.methods.rsnso(lipschitz=lipschitz, distance=1.0)
    raise ValueError(f"unknown method {name!r}")


def call_grid(most: int, per_decade: int = 12) -> list[int]:
    """Even numbers of calls, evenly spaced on a log axis; the last is `most`, and a tenth of it is one of them.

    The grids of all lengths share their points.

    Examples
    --------
    >>> call_grid(200, per_decade=3)
    [10, 20, 22, 46, 100, 200]
    """
    count = int(per_decade * np.log10(most / 10.0)) + 1
    evenly = {2 * round(5.0 * 10.0 ** (j / per_decade)) for j in range(count)}
    return sorted({c for c in evenly if c < most} | {2 * round(most / 20), most})


def follow(
    opt: pc.Optimizer,
    value: Callable[[Any, int], float],
    moments: Sequence[int],
    look: Callable[[pc.Optimizer], bool],
) -> None:
    """Run, and call `look` whenever one more of the numbers of calls in `moments` is reached; True ends the run."""
    opt.history.most = 64  # it is not needed here, and `result` copies it
    ahead = iter(moments)
    due = next(ahead, None)

    def values(points: Iterable[Array], numbers: list[int]) -> list[float]:
        return [value(x, n) for x, n in zip(points, numbers, strict=True)]

    while due is not None and opt.answer(values):
        if opt.nfev >= due:
            if look(opt):
                return
            while due is not None and due <= opt.nfev:
                due = next(ahead, None)
