"""All probes of a stage in one call of a function of rows."""

from __future__ import annotations

import numpy as np

from poem_cma._types import Array
from poem_cma.optimizer import Optimizer
from poem_cma.run.algorithm import Probe

__all__ = ["ROWS_AT_ONCE", "ask_rows", "joined", "tell_rows"]

#: Probes that are evaluated in one call hold at most so many numbers.
ROWS_AT_ONCE = 2**22


def ask_rows(opt: Optimizer) -> list[Probe]:
    """All probes of the stage, or as many as one call of a function of rows takes."""
    probes: list[Probe] = []
    numbers = 0
    while numbers < ROWS_AT_ONCE and (probe := opt.ask()) is not None:
        probes.append(probe)
        numbers += probe.points.size
    return probes


def joined(probes: list[Probe]) -> tuple[Array, list[int]]:
    """The points of some probes, and the numbers of their xi's."""
    return np.concatenate([p.points for p in probes]), [n for p in probes for n in p.numbers]


def tell_rows(opt: Optimizer, probes: list[Probe], values: list[float]) -> None:
    """Tell each probe its values."""
    for p in probes:
        opt.tell(p, values[: len(p.points)])
        values = values[len(p.points) :]
