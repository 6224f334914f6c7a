"""Which cells a request needs, and what computes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from poem_cma.campaign import cells
from poem_cma.campaign.cells import Cell, Compute
from poem_cma.reproduce import data, fig1, fig2, lemmas, table1
from poem_cma.reproduce.data import PaperSet
from poem_cma.reproduce.scale import Scale

__all__ = ["COMPUTE", "PARTS", "Request", "cells_of", "missing", "resolve_sets", "work"]

PARTS = ("fig1", "fig2", "table1")

COMPUTE: dict[str, Compute] = {
    "fig1": fig1.compute,
    "optimum": fig2.compute_optimum,
    "spectrum": fig2.compute_spectrum,
    "restricted": fig2.compute_restricted,
    "run": fig2.compute_run,
    "table1": table1.compute,
    "lemmas": lemmas.compute,
}


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


def work(folder: Path, cell: Cell) -> None:
    """Compute one cell and write it; this is what a process does."""
    cells.save(folder, cell, COMPUTE[cell.kind](cell.settings))


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
