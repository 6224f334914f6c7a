"""Everything the figures, the claims and the report are made from, read from the cells' files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from poem_cma.experiments.campaign import cells
from poem_cma.experiments.reproduce import fig1, fits, lemmas, summary2
from poem_cma.experiments.reproduce.fits import Fit, Measured
from poem_cma.experiments.reproduce.plan import Request
from poem_cma.experiments.reproduce.summary2 import SetSummary

__all__ = ["Results", "read"]


@dataclass(frozen=True, eq=False)
class Results:
    """What there is; a part that was not run is None."""

    request: Request
    fig1: dict[str, Any] | None
    sets: list[SetSummary] | None
    measured: list[Measured] | None
    fits: list[Fit] | None
    lemmas: dict[str, dict[str, Any]] | None


def read(folder: Path, request: Request) -> Results:
    """Read the parts that the request asks for."""
    scale, parts = request.scale, request.parts
    measured = fits.measured(folder, scale) if "table1" in parts else None
    return Results(
        request,
        fig1.summary(folder, scale) if "fig1" in parts else None,
        summary2.summaries(folder, scale, request.sets) if "fig2" in parts else None,
        measured,
        fits.fits(measured) if measured is not None else None,
        _lemmas(folder) if "table1" in parts else None,
    )


def _lemmas(folder: Path) -> dict[str, dict[str, Any]] | None:
    found = {cell.settings["spectrum"]: cells.load(folder, cell) for cell in lemmas.plan()}
    return None if None in found.values() else {name: arrays for name, arrays in found.items() if arrays is not None}
