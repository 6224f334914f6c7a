"""What `minimize(progress=True)` shows: lines in a terminal or in a notebook, drawn by rich; elsewhere nothing.

In a notebook they are an output of its own that is updated in place, so that no widgets are needed.
"""

from __future__ import annotations

import time
from html import escape
from importlib import import_module
from math import ceil, inf, isfinite
from typing import TYPE_CHECKING, Any

from poem_cma.optimizer import Optimizer

if TYPE_CHECKING:
    from rich.console import Console

    from poem_cma.workers.crew import Crew

__all__ = ["Bar"]

_SECONDS_BETWEEN_UPDATES = 0.1
_NOTEBOOK_SECONDS = 0.5  # each update travels to the browser


class Bar:
    """Shows calls, value and its error, distance, step, d*, failures, workers and the time left."""

    def __init__(self, opt: Optimizer, budget: int, crew: Crew | None = None, console: Console | None = None) -> None:
        try:
            from rich.console import Console
        except ImportError:
            raise ImportError('progress=True needs rich: pip install "poem-cma[progress]"') from None
        self._opt, self._budget, self._crew = opt, budget, crew
        console = Console(stderr=True) if console is None else console
        self._display: _Terminal | _Notebook | None = None  # nobody is looking
        if console.is_jupyter:
            self._display = _Notebook(opt.method.name, budget)
        elif console.is_terminal:
            self._display = _Terminal(opt.method.name, budget, console)
        self._pause = _NOTEBOOK_SECONDS if console.is_jupyter else _SECONDS_BETWEEN_UPDATES
        self._shown = -inf
        self._started = time.monotonic()
        self._nfev = opt.nfev  # of a run that goes on, the calls that were made before

    def __enter__(self) -> Bar:
        if self._display is not None:
            self._display.start()
        return self

    def __exit__(self, *exception: Any) -> None:
        if self._display is not None:
            self._display.stop()

    def finish(self, nfev: int) -> None:
        """At the end, after the calls that measured the result."""
        self._show(nfev)

    def __call__(self) -> None:
        """After a step; draws now and then."""
        now = time.monotonic()
        if self._display is not None and now - self._shown >= self._pause:
            self._shown = now
            self._show(self._opt.nfev)

    def _show(self, nfev: int) -> None:
        if self._display is not None:
            self._display.show(nfev, self._line(), self._time_left(nfev))

    def _line(self) -> str:
        """Where the run is, in words."""
        opt = self._opt
        s, (value, stderr) = opt._state, opt.value
        parts = [
            f"value {value:.4g} ± {stderr:.1g}", f"distance {s.r:.3g}", f"step {s.eta / (s.unit or 1.0):.2g}",
            f"d* {s.dimension:.3g}",
        ]  # fmt: skip
        if opt.failures:
            parts.append(f"failures {opt.failures}")
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


class _Terminal:
    """Two lines that are drawn over and over: how far it is, and where."""

    def __init__(self, name: str, budget: int, console: Console) -> None:
        from rich.console import Group
        from rich.live import Live
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.text import Text

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("left {task.fields[left]}"),
        )
        self._progress = Progress(*columns, console=console, auto_refresh=False)
        self._task = self._progress.add_task(name, total=budget, left="-:--:--")
        self._line = Text(no_wrap=True, overflow="ellipsis")
        self._live = Live(Group(self._progress, self._line), console=console, refresh_per_second=10)

    def start(self) -> None:
        self._live.start()

    def show(self, nfev: int, line: str, left: str) -> None:
        self._progress.update(self._task, completed=nfev, left=left)
        self._line.plain = line

    def stop(self) -> None:
        self._live.stop()


class _Notebook:
    """An output of its own, updated in place."""

    def __init__(self, name: str, budget: int) -> None:
        self._name, self._budget = name, budget
        self._ipython: Any = import_module("IPython.display")
        self._handle: Any = None

    def start(self) -> None:
        self._handle = self._ipython.display(self._ipython.HTML(self._page(0, "", "-:--:--")), display_id=True)

    def show(self, nfev: int, line: str, left: str) -> None:
        if self._handle is not None:  # outside of a kernel there is nothing to update
            self._handle.update(self._ipython.HTML(self._page(nfev, line, left)))

    def stop(self) -> None:
        self._handle = None

    def _page(self, nfev: int, line: str, left: str) -> str:
        text = f"{self._name}  {nfev}/{self._budget}  {line}  left {left}"
        return (
            f'<progress value="{nfev}" max="{self._budget}" style="width:12em;vertical-align:middle"></progress> '
            f'<code style="background:none;color:inherit">{escape(text)}</code>'
        )
