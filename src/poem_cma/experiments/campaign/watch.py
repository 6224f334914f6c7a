"""Compute what is missing while somebody watches: a bar, what was there already, and one line when it stops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from poem_cma.experiments.campaign import execute
from poem_cma.experiments.campaign.cells import Cell
from poem_cma.experiments.campaign.execute import Group, Work

__all__ = ["BadInput", "Stopped", "compute", "console"]

Then = Callable[[Cell], Iterable[Group]]


class Stopped(RuntimeError):  # noqa: N818
    """The command cannot go on; the message is one line."""


class BadInput(Stopped):
    """Something was asked for that does not exist."""


def compute(
    folder: Path,
    todo: Sequence[Group],
    of: int,
    *,
    title: str,
    jobs: int | None,
    work: Work,
    then: Then | None = None,
    later: float = 0.0,
    later_cells: int = 0,
) -> None:
    """Compute the cells in processes, with progress.

    Parameters
    ----------
    folder : Path
    todo : sequence of groups of Cell
    of : int
        How many cells there are altogether, finished ones included.
    title : str
    jobs : int or None
    work : callable
        ``work(folder, group)``, a function of a module.
    then : callable, optional
        ``then(cell)``: the groups that can be computed now that this cell is finished.
    later, later_cells : float, int
        About how many seconds, and how many cells, those will be altogether.
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    number = sum(map(len, todo)) + later_cells
    if not number:
        console().print(f"all {of} cells are there already")
        return
    if number < of:
        console().print(f"{of - number} of {of} cells are there already")
    columns = (
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[cells]} cells"),
        TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(elapsed_when_finished=False),
    )  # fmt: skip
    with Progress(*columns, console=console(), speed_estimate_period=600) as bar:
        total = sum(cell.seconds for group in todo for cell in group) + later
        task = bar.add_task(title, total=total, cells=f"0 of {number}")
        count = 0

        def done(cell: Cell) -> Iterable[Group]:
            nonlocal count
            count += 1
            bar.update(task, advance=cell.seconds, cells=f"{count} of {number}")
            return then(cell) if then is not None else ()

        try:
            execute.run(folder, todo, jobs or execute.default_jobs(), done, work)
        except RuntimeError as error:
            raise Stopped(f"{error}; what is finished is kept, the same command goes on from there") from None
        except KeyboardInterrupt:
            raise Stopped("stopped; what is finished is kept, the same command goes on from there") from None


def console() -> Any:
    """Standard error, drawn on by rich."""
    from rich.console import Console

    return Console(stderr=True)
