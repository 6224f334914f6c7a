"""The command itself: plan, compute what is missing, then draw and write everything from the files."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NotRequired, TypedDict, Unpack

from poem_cma.experiments.campaign.cells import Cell
from poem_cma.experiments.campaign.watch import BadInput, Stopped, compute, console

if TYPE_CHECKING:
    from poem_cma.experiments.bench.plan import Request
    from poem_cma.experiments.campaign.execute import Group

__all__ = ["How", "Stopped", "bench", "check_packages"]

#: Packages of the report.
NEEDED = ("rich", "matplotlib", "plotly")


class How(TypedDict):
    """How suites are run, whichever they are."""

    full: bool
    jobs: int | None
    out: Path
    report_only: NotRequired[bool]


def check_packages() -> None:
    """Stop unless the packages of the report are installed."""
    if absent := [package for package in NEEDED if find_spec(package) is None]:
        raise Stopped(f'{", ".join(absent)} not installed: pip install "poem-cma[bench]"')


def bench(problems: list[str] | None, methods: list[str] | None, **how: Unpack[How]) -> Path:
    """Do all of it, and return the report's path."""
    check_packages()
    from poem_cma.experiments.bench.output import write

    started = time.monotonic()
    out, report_only = how["out"], how.get("report_only", False)
    request = make_request(full=how["full"], problems=problems, methods=methods)
    if report_only:
        request = _with_what_is_missing(request, out)
    for note in request.notes:
        console().print(note, style="yellow", markup=False, soft_wrap=True)
    if not report_only:
        run(request, how["jobs"], out)
    with console().status(f"figures, tables and report into {out}"):
        report, headline = write(out, request)
    console().print(headline, markup=False, highlight=False, soft_wrap=True)
    seconds = time.monotonic() - started
    console().print(f"done in {seconds:.0f} s; open {report}", markup=False, highlight=False, soft_wrap=True)
    return report


def make_request(*, full: bool, problems: list[str] | None, methods: list[str] | None) -> Request:
    """What can be run of what is asked for, with a note for everything that cannot."""
    from poem_cma import problems as library
    from poem_cma.datasets import DatasetError
    from poem_cma.experiments.bench.plan import Request
    from poem_cma.experiments.bench.players import choose
    from poem_cma.experiments.bench.provenance import trouble
    from poem_cma.experiments.bench.scale import FULL, QUICK

    scale = FULL if full else QUICK
    notes, found, players = [], [], []
    try:
        chosen = choose(methods)
        for name in problems or scale.problems:
            try:
                library.load(name, suite="losses")
                found.append(name)
            except DatasetError as error:
                notes.append(f"{name} is left out: {error}")
    except ValueError as error:
        raise BadInput(str(error)) from None
    for player in chosen:
        if why := trouble(player.missing(), player.packages):
            notes.append(f"{player.title}: {why}")
        else:
            players.append(player.name)
    if not found or not players:
        raise Stopped("; ".join(notes))
    return Request(scale, tuple(found), tuple(players), tuple(notes))


def _with_what_is_missing(request: Request, out: Path) -> Request:
    from poem_cma.experiments.bench.plan import what_is_missing

    missing = what_is_missing(out, request)
    if not (number := len(missing.todo) + missing.later_cells):
        return request
    note = f"{number} of {missing.of} cells are not there yet: a method whose runs are not complete is left out"
    return replace(request, notes=(*request.notes, note))


def run(request: Request, jobs: int | None, out: Path) -> None:
    """Compute the cells that are missing; the runs of a tuned setting follow its tuning."""
    from poem_cma.experiments.bench.plan import groups, tuned_cells, what_is_missing, work
    from poem_cma.experiments.campaign import records

    missing = what_is_missing(out, request)

    def then(cell: Cell) -> Iterable[Group]:
        tuned = records.load(out, cell) if cell.kind == "tune" else None
        runs = [] if tuned is None else tuned_cells(missing.to_tune[cell.name], tuned)
        return groups([c for c in runs if not records.finished(out, c)])

    compute(
        out, groups(missing.todo), missing.of, title=request.scale.name, jobs=jobs, work=work, then=then,
        later=missing.later_seconds, later_cells=missing.later_cells,
    )  # fmt: skip
