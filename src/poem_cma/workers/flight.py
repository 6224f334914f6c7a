"""Probes in flight: cut into tasks, and put together again from what is answered."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from itertools import groupby
from math import isfinite, nan

import numpy as np

from poem_cma._types import Array
from poem_cma.run.algorithm import Probe
from poem_cma.workers.task import Objective, Task

__all__ = ["Pending", "place_of", "tasks_of"]

#: Those of a number in single precision.
PLACE_BITS = 24


class Pending:
    """A probe that was asked, and what is known of its values."""

    def __init__(self, probe: Probe) -> None:
        self.probe = probe
        self.values = [nan] * len(probe.points)
        self.left = len(probe.points)
        self.failure: str | None = None  # of the first point that failed
        self.failed_at = len(self.values)

    def put(self, point: int, values: list[float], failure: str | None) -> None:
        """The values of a task, which begins at `point`; and why the first that failed did."""
        self.values[point : point + len(values)] = values
        self.left -= len(values)
        first = next((point + j for j, v in enumerate(values) if not isfinite(v)), len(self.values))
        if first < self.failed_at:
            self.failed_at, self.failure = first, failure


def tasks_of(probe: Probe, objective: Objective) -> Iterator[Task]:
    """A probe cut into calls of the user's function."""
    points, numbers = probe.points, probe.numbers
    if objective.vectorized == "rows" or (objective.vectorized and objective.sample is None):
        yield Task(probe.id, 0, points, numbers)
    elif objective.vectorized:
        at = 0
        for number, same in groupby(numbers):
            size = len(list(same))
            yield Task(probe.id, at, points[at : at + size], [number] * size)
            at += size
    else:
        for j, number in enumerate(numbers):
            yield Task(probe.id, j, points[j : j + 1], [number])


def place_of(x: Array, number: int) -> int:
    """Which call it is, whatever its number in the run: the sample and the point, which is rounded.

    The largest number of a point keeps PLACE_BITS bits, and the others end where it does.
    Products of matrices have other last bits on another kind of processor. A run that is moved there in the middle asks
    for points that differ by so little from those whose values its store holds.
    """
    _, exponent = np.frexp(np.abs(x).max(initial=0.0))
    rounded = np.rint(np.ldexp(x.astype(float), PLACE_BITS - exponent)) + 0.0  # no -0.0
    return zlib.crc32(rounded.tobytes(), number & 0xFFFFFFFF)
