"""Where progress is shown: a terminal drawn by rich, a notebook, or plain lines on standard error."""

from __future__ import annotations

import sys
from html import escape
from importlib import import_module
from typing import IO, TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Display", "Lines", "Notebook", "Terminal", "display_for"]


class Display(Protocol):
    """Shows how far a run is."""

    pause: float  # seconds between two updates

    def start(self) -> None:
        """Before the first update."""

    def show(self, nfev: int, line: str, left: str) -> None:
        """An update: evaluations so far, the state of the run in words, the time left."""

    def stop(self) -> None:
        """After the last update."""


def display_for(name: str, budget: int, console: Console | None = None) -> Display:
    """The display that fits the place where the program runs."""
    try:
        from rich.console import Console
    except ImportError:
        return Notebook(name, budget) if _in_notebook() else Lines(name, budget, sys.stderr)
    console = Console(stderr=True) if console is None else console
    if console.is_jupyter:
        return Notebook(name, budget)
    return Terminal(name, budget, console) if console.is_terminal else Lines(name, budget, console.file)


def _in_notebook() -> bool:
    """Whether the program runs in the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and "IPKernelApp" in shell.config


class Terminal:
    """Two lines that are drawn over and over: the share of the budget, and the state of the run."""

    pause = 0.1

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
        """Begin to draw."""
        self._live.start()

    def show(self, nfev: int, line: str, left: str) -> None:
        """Draw both lines again."""
        self._progress.update(self._task, completed=nfev, left=left)
        self._line.plain = line

    def stop(self) -> None:
        """Leave the last state on the screen."""
        self._live.stop()


class Notebook:
    """One output of a cell, updated in place, so that no widgets are needed."""

    pause = 0.5  # each update travels to the browser

    def __init__(self, name: str, budget: int) -> None:
        self._name, self._budget = name, budget
        self._ipython: Any = import_module("IPython.display")
        self._handle: Any = None

    def start(self) -> None:
        """Make the output."""
        self._handle = self._ipython.display(self._ipython.HTML(self._page(0, "", "-:--:--")), display_id=True)

    def show(self, nfev: int, line: str, left: str) -> None:
        """Replace the output."""
        if self._handle is not None:  # outside of a kernel there is nothing to update
            self._handle.update(self._ipython.HTML(self._page(nfev, line, left)))

    def stop(self) -> None:
        """Leave the last output in the cell."""
        self._handle = None

    def _page(self, nfev: int, line: str, left: str) -> str:
        text = f"{self._name}  {nfev}/{self._budget}  {line}  left {left}"
        return (
            f'<progress value="{nfev}" max="{self._budget}" style="width:12em;vertical-align:middle"></progress> '
            f'<code style="background:none;color:inherit">{escape(text)}</code>'
        )


#: Seconds between two lines: in a terminal somebody is looking; a log of a long run must stay short.
TERMINAL_SECONDS, LOG_SECONDS = 5.0, 60.0


class Lines:
    """Plain lines: at the start, then one every few seconds in a terminal or one a minute in a log, and at the end."""

    def __init__(self, name: str, budget: int, file: IO[str]) -> None:
        self._name, self._budget, self._file = name, budget, file
        self.pause = TERMINAL_SECONDS if file.isatty() else LOG_SECONDS

    def start(self) -> None:
        """Nothing is prepared."""

    def show(self, nfev: int, line: str, left: str) -> None:
        """Write a line."""
        print(f"{self._name}  {nfev}/{self._budget}  {line}  left {left}", file=self._file, flush=True)

    def stop(self) -> None:
        """All lines are written."""
