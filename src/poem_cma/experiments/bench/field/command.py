"""The field's command: plan, compute what is missing, then write everything from the files."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from poem_cma.experiments.bench.field.library import NotHere, load, names_of
from poem_cma.experiments.bench.field.losses import Losses
from poem_cma.experiments.bench.field.output import write
from poem_cma.experiments.bench.field.plan import FieldRequest, entries
from poem_cma.experiments.bench.field.play import work
from poem_cma.experiments.bench.field.players import PLAYERS
from poem_cma.experiments.bench.field.scale import FULL, QUICK
from poem_cma.experiments.bench.provenance import trouble
from poem_cma.experiments.campaign import records
from poem_cma.experiments.campaign.cells import Cell
from poem_cma.experiments.campaign.execute import default_jobs
from poem_cma.experiments.campaign.watch import Stopped, compute, console

__all__ = ["field", "make_request", "missing_cells"]


def field(
    request: FieldRequest, *, jobs: int | None, out: Path, report_only: bool, losses: Losses | None = None
) -> Path:
    """Do all of it, and return the report's path."""
    started = time.monotonic()
    groups, of = missing_cells(out, request)
    todo = sum(map(len, groups))
    if report_only and todo:
        note = f"{todo} of {of} cells are not there yet: a method whose runs are not complete is left out"
        request = replace(request, notes=(*request.notes, note))
    for note in request.notes:
        console().print(note, style="yellow", markup=False, soft_wrap=True)
    if not report_only:
        processes = jobs or default_jobs()
        minutes = sum(cell.seconds for group in groups for cell in group) / (60.0 * processes)
        if todo:
            line = f"{', '.join(request.suites)}: planned for {minutes:.1f} minutes with {processes} processes"
            console().print(line, markup=False, highlight=False, soft_wrap=True)
        compute(out, groups, of, title=request.scale.name, jobs=jobs, work=work)
    with console().status(f"figures, tables and report into {out}"):
        report, headline = write(out, request, losses)
    console().print(headline, markup=False, highlight=False, soft_wrap=True)
    seconds = time.monotonic() - started
    console().print(f"done in {seconds:.0f} s; open {report}", markup=False, highlight=False, soft_wrap=True)
    return report


def make_request(
    suites: Sequence[str],
    *,
    full: bool = False,
    problems: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    seeds: int | None = None,
    budgets: Sequence[int] = (),
) -> FieldRequest:
    """What can be run of what is asked for, with one line for everything that cannot; unknown names are left out."""
    scale = FULL if full else QUICK
    found: list[tuple[str, str]] = []
    notes: list[str] = []
    for suite in suites:
        wanted, reasons = [], {}
        try:
            wanted = [name for name in names_of(suite) if _asked_for(name, problems, scale.suites[suite].problems)]
        except NotHere as error:
            notes.append(f"the suite {suite} is left out: {error}")
        for name in wanted:
            try:
                load(suite, name)
                found.append((suite, name))
            except NotHere as error:
                reasons[name] = str(error)
        if reasons and len(reasons) == len(wanted) and len(set(reasons.values())) == 1:
            notes.append(f"the suite {suite} is left out: {next(iter(reasons.values()))}")
        else:
            notes += [f"{name} ({suite}) is left out: {reason}" for name, reason in reasons.items()]
    players = []
    for name, player in PLAYERS.items():
        if methods is not None and name not in methods:
            continue
        if player.suites and not set(player.suites) & set(suites):
            continue
        if why := trouble(player.missing(), player.packages):
            notes.append(f"{player.title}: {why}")
        else:
            players.append(name)
    if not found or not players:
        raise Stopped("; ".join(notes) or "none of these problems and methods belong to the suites")
    return FieldRequest(scale, tuple(found), tuple(players), seeds, tuple(budgets), methods is not None, tuple(notes))


def missing_cells(folder: Path, request: FieldRequest) -> tuple[list[list[Cell]], int]:
    """The cells that are not finished, in groups that differ in the seed alone; and how many there are altogether."""
    groups, of = [], 0
    for entry in entries(request):
        cells = entry.cells
        of += len(cells)
        if left := [cell for cell in cells if not records.finished(folder, cell)]:
            groups.append(left)
    return groups, of


def _asked_for(name: str, problems: Sequence[str] | None, usual: Sequence[str]) -> bool:
    return name in problems if problems is not None else not usual or name in usual
