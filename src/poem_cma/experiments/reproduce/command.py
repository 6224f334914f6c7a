"""The command itself: plan, compute what is missing, then draw and write everything from the files."""

from __future__ import annotations

import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from poem_cma.experiments.campaign.watch import Stopped, compute, console

__all__ = ["Stopped", "reproduce"]

_NEEDED = {"rich": "rich", "matplotlib": "matplotlib", "plotly": "plotly", "sklearn": "scikit-learn"}


def reproduce(
    part: str, *, full: bool, seeds: int | None, jobs: int | None, out: Path, iterations: int | None = None
) -> Path:
    """Do all of it, and return the report's path."""
    if absent := [package for module, package in _NEEDED.items() if find_spec(module) is None]:
        raise Stopped(f'{", ".join(absent)} not installed: pip install "poem-cma[experiments]"')
    from poem_cma.datasets import DatasetError
    from poem_cma.experiments.reproduce.output import write
    from poem_cma.experiments.reproduce.plan import PARTS, Request, resolve_sets
    from poem_cma.experiments.reproduce.scale import FULL, QUICK

    started = time.monotonic()
    parts = PARTS if part == "all" else (part,)
    scale = (FULL if full else QUICK).with_seeds(seeds).with_iterations(iterations)
    try:
        sets = resolve_sets(parts, lambda line: console().print(line, style="yellow", markup=False, soft_wrap=True))
    except DatasetError as error:
        raise Stopped(str(error)) from None
    request = Request(parts, scale, sets)
    _compute(request, jobs, out)
    with console().status(f"figures, claims and report into {out}"):
        report, verdicts = write(out, request)
    _tell_the_end(report, verdicts, time.monotonic() - started)
    return report


def _compute(request: Any, jobs: int | None, out: Path) -> None:
    from poem_cma.experiments.reproduce.plan import cells_of, groups, missing, work

    wanted = cells_of(request)
    todo = groups(missing(out, wanted))
    compute(out, todo, len(wanted), title=request.scale.name, jobs=jobs, work=work)


def _tell_the_end(report: Path, verdicts: dict[str, int], seconds: float) -> None:
    counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
    console().print(f"claims: {counts}", markup=False, highlight=False)
    console().print(f"done in {seconds:.0f} s; open {report}", markup=False, highlight=False, soft_wrap=True)
