"""What `minimize(progress=True)` shows: how far the run is, its value, and the time left."""

from __future__ import annotations

import time
from math import ceil, isfinite
from typing import TYPE_CHECKING, Any

from poem_cma.optimizer import Optimizer
from poem_cma.run.displays import display_for
from poem_cma.run.standing import standing

if TYPE_CHECKING:
    from rich.console import Console

    from poem_cma.workers.crew import Crew

__all__ = ["Bar"]


class Bar:
    """Shows calls, value and its error, distance, step, d*, failures, workers and the time left."""

    def __init__(self, opt: Optimizer, budget: int, crew: Crew | None = None, console: Console | None = None) -> None:
        self._opt, self._budget, self._crew = opt, budget, crew
        self._display = display_for(opt.method.name, budget, console)
        self._started = self._shown = time.monotonic()
        self._waiting = True  # for the end of the first step
        self._nfev = opt.nfev  # of a run that goes on, the calls that were made before

    def __enter__(self) -> Bar:
        self._display.start()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._display.stop()

    def finish(self, nfev: int) -> None:
        """At the end, after the evaluations that measured the result."""
        self._display.show(nfev, self._line(), clock(0.0))

    def __call__(self) -> None:
        """After an evaluation; draws after the first step, and now and then."""
        now, stepped = time.monotonic(), self._opt.nit > 0
        if now - self._shown >= self._display.pause or (self._waiting and stepped):
            self._shown, self._waiting = now, not stepped
            self._display.show(self._opt.nfev, self._line(), self._time_left(self._opt.nfev))

    def _line(self) -> str:
        """Where the run is, in words."""
        if not self._opt.nit:
            return "the first step is under way"
        now = standing(self._opt)
        parts = [
            f"value {now.value:.4g} ± {now.stderr:.1g}", f"distance {now.distance:.3g}", f"step {now.step_size:.2g}",
            f"d* {now.dimension:.3g}",
        ]  # fmt: skip
        if now.failures:
            parts.append(f"failures {now.failures}")
        if self._crew is not None:
            parts.append(f"workers {self._crew.busy}/{self._crew.workers}")
        return "  ".join(parts)

    def _time_left(self, nfev: int) -> str:
        """At the pace of this process so far."""
        done = nfev - self._nfev
        if done <= 0:
            return "-:--:--"
        return clock((time.monotonic() - self._started) * max(self._budget - nfev, 0) / done)


def clock(seconds: float) -> str:
    """Hours, minutes and seconds.

    >>> clock(3725.2)
    '1:02:06'
    """
    if not isfinite(seconds):
        return "-:--:--"
    hours, rest = divmod(ceil(seconds), 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}"
