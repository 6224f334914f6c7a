"""Calls made where the loop runs, one probe after the other, or all that can be asked in one call."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from poem_cma._types import Array
from poem_cma.optimizer import Optimizer
from poem_cma.run.oracle import Oracle
from poem_cma.run.randomness import Stream
from poem_cma.run.vectorized import ROWS_AT_ONCE, ask_rows, joined, tell_rows

__all__ = ["Direct"]


class Direct:
    """Evaluates where the loop runs."""

    crew = None

    def __init__(self, opt: Optimizer, oracle: Oracle) -> None:
        self.opt, self.oracle = opt, oracle
        self.measured = (0, 0)
        self.step: Callable[[], bool] = partial(opt.answer, oracle.evaluate)
        if oracle.by_row:
            self.step = self._step_in_rows

    @property
    def first_failure(self) -> str | None:
        """Why the first call that failed did."""
        return self.oracle.first_failure

    def _step_in_rows(self) -> bool:
        """Evaluate everything that can be asked now in one call of a function of rows."""
        opt, oracle = self.opt, self.oracle
        if opt.one_probe:
            return opt.answer(oracle.evaluate)
        probes = ask_rows(opt)
        if not probes:
            return False
        tell_rows(opt, probes, oracle(*joined(probes)))
        return True

    def measure(self, points: list[Array], wanted: int, most: int) -> Array:
        """Values (points, samples) on common fresh samples."""
        m = len(points)
        count = max(0, min(wanted, most // m))
        values = np.empty((count, m))
        rows = max(1, ROWS_AT_ONCE // (m * len(points[0])))
        for n in range(0, count, rows):
            numbers = range(n, min(n + rows, count))
            told = self.oracle(
                (x.copy() for _ in numbers for x in points), [k for k in numbers for _ in points], Stream.EVALUATION
            )
            values[list(numbers)] = np.reshape(told, (-1, m))
        self.measured = (values.size, values.size - int(np.isfinite(values).sum()))
        return values.T

    def pause(self) -> None:
        """Nothing is kept."""
