"""A progress bar for `minimize(progress=True)`, drawn by rich."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from poem_cma.optimizer import Optimizer

if TYPE_CHECKING:
    from poem_cma.workers.crew import Crew

__all__ = ["Bar"]

_SECONDS_BETWEEN_UPDATES = 0.1


class Bar:
    """Shows calls, value, distance, step, failures, workers and the time left, on standard error."""

    def __init__(self, opt: Optimizer, budget: int, crew: Crew | None = None) -> None:
        try:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
        except ImportError:
            raise ImportError('progress=True needs rich: pip install "poem-cma[progress]"') from None
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("value {task.fields[value]}  distance {task.fields[distance]}{task.fields[rest]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._task = self._bar.add_task(opt.method.name, total=budget, value="-", distance="-", rest="")
        self._opt = opt
        self._crew = crew
        self._shown = 0.0

    def __enter__(self) -> Bar:
        self._bar.start()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._bar.stop()

    def finish(self, nfev: int) -> None:
        """At the end, after the calls that measured the result."""
        self._show(nfev)

    def __call__(self) -> None:
        """After a step; draws now and then."""
        now = time.monotonic()
        if now - self._shown >= _SECONDS_BETWEEN_UPDATES:
            self._shown = now
            self._show(self._opt.nfev)

    def _show(self, nfev: int) -> None:
        value, stderr = self._opt.value
        self._bar.update(
            self._task,
            completed=nfev,
            value=f"{value:.4g} ± {stderr:.1g}",
            distance=f"{self._opt._state.r:.3g}",
            rest=self._rest(),
        )

    def _rest(self) -> str:
        s, failures = self._opt._state, self._opt.failures
        text = f"  step {s.eta / (s.unit or 1.0):.2g}" + (f"  failures {failures}" if failures else "")
        return text if self._crew is None else f"{text}  workers {self._crew.busy}/{self._crew.workers}"
