"""Runs of a method, looked at while they go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import poem_cma as pc
from poem_cma._types import Array, IntArray
from poem_cma.run.joint import JointRuns, in_step, joint

__all__ = ["Followed", "Rows", "call_grid", "follow", "make_method"]


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


class Followed(NamedTuple):
    """A run that is looked at while it goes."""

    opt: pc.Optimizer
    value: Callable[[Any, int], float]  # F at a point, on the xi of a number
    look: Callable[[pc.Optimizer], bool]  # True ends the run

    def answer(self) -> bool:
        """Ask, evaluate and tell; False at the end."""
        return self.opt.answer(self._values)

    def _values(self, points: Iterable[Array], numbers: list[int]) -> list[float]:
        return [self.value(x, n) for x, n in zip(points, numbers, strict=True)]


#: F at the rows of a matrix: of which run each is, and the number of its xi; the same bits as `value` gives for one.
Rows = Callable[[Array, IntArray, IntArray], Array]


#: For fewer steps than these runs are not put together.
_WORTH_JOINING_FOR = 8


def follow(runs: Sequence[Followed], rows: Rows, moments: Sequence[int]) -> None:
    """Run, and look at a run whenever it has made one more of the numbers of calls in `moments`.

    Runs that are in step are advanced together, and are the same as if each were alone.
    """
    for run in runs:
        run.opt.history.most = 64  # it is not needed here, and `result` copies it
    going = list(range(len(runs)))
    together: list[JointRuns] = []
    for due in moments:
        behind = [i for i in going if runs[i].opt.nfev < due]
        together, ended = _advance(runs, behind, rows, due, together)
        going = [i for i in going if i not in ended]
        for i in behind:
            if i in going and runs[i].look(runs[i].opt):
                going.remove(i)


def _advance(
    runs: Sequence[Followed], behind: list[int], rows: Rows, due: int, before: list[JointRuns]
) -> tuple[list[JointRuns], list[int]]:
    """Go on until every run has made so many calls; which groups there are now, and the runs that ended before."""
    ended: list[int] = []
    groups: list[JointRuns] = []
    while behind := [i for i in behind if i not in ended and runs[i].opt.nfev < due]:
        alone = set(behind)
        for places in in_step([runs[i].opt for i in behind]):
            group = [behind[j] for j in places]
            opts = [runs[i].opt for i in group]
            if due - opts[0].nfev < 2 * _WORTH_JOINING_FOR:
                continue
            together = joint(opts, before)
            together.advance(partial(_values, rows, np.array(group)), due)
            groups.append(together)
            alone -= set(group)
        ended += [i for i in alone if not runs[i].answer()]
    return groups, ended


def _values(rows: Rows, which: IntArray, points: list[Array], numbers: list[int]) -> Array:
    """As `JointRuns` wants them: (m, n, 1)."""
    m, n = len(points), len(which)
    F = rows(np.concatenate(points), np.concatenate([which] * m), np.repeat(numbers, n))
    return F.reshape(m, n, 1)
