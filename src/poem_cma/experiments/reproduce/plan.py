"""Which cells a request needs, and what computes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from poem_cma.experiments.campaign import cells
from poem_cma.experiments.campaign.cells import Cell, Compute, Together
from poem_cma.experiments.campaign.execute import Group
from poem_cma.experiments.reproduce import data, fig1, fig2, lemmas, table1
from poem_cma.experiments.reproduce.data import PaperSet
from poem_cma.experiments.reproduce.scale import Scale

__all__ = ["COMPUTE", "PARTS", "TOGETHER", "Request", "cells_of", "groups", "missing", "resolve_sets", "work"]

PARTS = ("fig1", "fig2", "table1")

COMPUTE: dict[str, Compute] = {
    "fig1": fig1.compute,
    "optimum": fig2.compute_optimum,
    "spectrum": fig2.compute_spectrum,
    "restricted": fig2.compute_restricted,
    "lemmas": lemmas.compute,
}

#: Runs that differ in their seed alone are advanced together.
TOGETHER: dict[str, Together] = {"run": fig2.compute_runs, "table1": table1.compute}


@dataclass(frozen=True)
class Request:
    """What is to be reproduced: the parts, their size, and for each of the paper's sets the one that is used."""

    parts: tuple[str, ...]
    scale: Scale
    sets: tuple[tuple[PaperSet, str], ...]

    @property
    def notes(self) -> list[str]:
        """A line for each set that is not the paper's."""
        return [
            f"{paper.name} could not be had: {name} stands in for it, and the paper's numbers do not apply to it."
            for paper, name in self.sets
            if paper.name != name
        ]


def missing(folder: Path, wanted: Iterable[Cell]) -> list[Cell]:
    """The cells that are not finished."""
    return [cell for cell in wanted if not cells.finished(folder, cell)]


def groups(todo: Iterable[Cell]) -> list[Group]:
    """The cells in the order given, but those that are computed together in one place."""
    found: dict[Any, list[Cell]] = {}
    for cell in todo:
        found.setdefault(cell.family if cell.kind in TOGETHER else (cell.kind, cell.name), []).append(cell)
    return list(found.values())


def work(folder: Path, group: Group) -> None:
    """Compute a group of cells and write each; this is what a process does."""
    kind, settings = group[0].kind, [cell.settings for cell in group]
    arrays = TOGETHER[kind](settings) if kind in TOGETHER else map(COMPUTE[kind], settings)
    for cell, own in zip(group, arrays, strict=True):
        cells.save(folder, cell, own)


def resolve_sets(parts: Iterable[str], say: Callable[[str], None]) -> tuple[tuple[PaperSet, str], ...]:
    """Each of the paper's sets with the one to use; `say` is told of those that cannot be had, and why."""
    found = []
    for paper in data.PAPER_SETS if "fig2" in parts else ():
        name, reason = data.resolve(paper)
        if reason:
            say(f"{paper.name}: {name} stands in for it, because it cannot be had: {reason}")
        found.append((paper, name))
    return tuple(found)


def cells_of(request: Request) -> list[Cell]:
    """Everything to compute: a set at a time, for a worker keeps one in memory, and the long cells first."""
    found: list[Cell] = []
    if "fig2" in request.parts:
        found += fig2.plan(request.scale, request.sets)
    if "fig1" in request.parts:
        found += fig1.plan(request.scale)
    if "table1" in request.parts:
        found += table1.plan(request.scale)
        found += lemmas.plan()
    order = {name: j for j, (_, name) in enumerate(reversed(request.sets))}
    return sorted(found, key=lambda c: (order.get(c.settings.get("set", ""), len(order)), -c.seconds, c.kind, c.name))
