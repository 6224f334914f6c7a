"""The command itself: plan, compute what is missing, then draw and write everything from the files."""

from __future__ import annotations

import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

__all__ = ["Stopped", "reproduce"]

_NEEDED = {"rich": "rich", "matplotlib": "matplotlib", "plotly": "plotly", "sklearn": "scikit-learn"}


class Stopped(RuntimeError):  # noqa: N818
    """The command cannot go on; the message is one line."""


def reproduce(
    part: str, *, full: bool, seeds: int | None, jobs: int | None, out: Path, iterations: int | None = None
) -> Path:
    """Do all of it, and return the report's path."""
    if absent := [package for module, package in _NEEDED.items() if find_spec(module) is None]:
        raise Stopped(f'{", ".join(absent)} not installed: pip install "poem-cma[experiments]"')
    from poem_cma.datasets import DatasetError
    from poem_cma.reproduce.output import write
    from poem_cma.reproduce.plan import PARTS, Request, resolve_sets
    from poem_cma.reproduce.scale import FULL, QUICK

    started = time.monotonic()
    parts = PARTS if part == "all" else (part,)
    scale = (FULL if full else QUICK).with_seeds(seeds).with_iterations(iterations)
    try:
        sets = resolve_sets(parts, lambda line: _console().print(line, style="yellow", markup=False, soft_wrap=True))
    except DatasetError as error:
        raise Stopped(str(error)) from None
    request = Request(parts, scale, sets)
    _compute(request, jobs, out)
    with _console().status(f"figures, claims and report into {out}"):
        report, verdicts = write(out, request)
    _tell_the_end(report, verdicts, time.monotonic() - started)
    return report


def _compute(request: Any, jobs: int | None, out: Path) -> None:
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    from poem_cma.reproduce import execute
    from poem_cma.reproduce.plan import cells_of

    wanted = cells_of(request)
    todo = execute.missing(out, wanted)
    if not todo:
        _console().print(f"all {len(wanted)} cells are there already")
        return
    if len(todo) < len(wanted):
        _console().print(f"{len(wanted) - len(todo)} of {len(wanted)} cells are there already")
    columns = (
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[cells]} cells"),
        TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(elapsed_when_finished=False),
    )  # fmt: skip
    with Progress(*columns, console=_console(), speed_estimate_period=600) as bar:
        task = bar.add_task(request.scale.name, total=sum(c.seconds for c in todo), cells=f"0 of {len(todo)}")
        count = 0

        def done(cell: Any) -> None:
            nonlocal count
            count += 1
            bar.update(task, advance=cell.seconds, cells=f"{count} of {len(todo)}")

        try:
            execute.run(out, todo, jobs or execute.default_jobs(), done)
        except RuntimeError as error:
            raise Stopped(f"{error}; what is finished is kept, the same command goes on from there") from None
        except KeyboardInterrupt:
            raise Stopped("stopped; what is finished is kept, the same command goes on from there") from None


def _tell_the_end(report: Path, verdicts: dict[str, int], seconds: float) -> None:
    counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
    _console().print(f"claims: {counts}", markup=False, highlight=False)
    _console().print(f"done in {seconds:.0f} s; open {report}", markup=False, highlight=False, soft_wrap=True)


def _console() -> Any:
    from rich.console import Console

    return Console(stderr=True)
