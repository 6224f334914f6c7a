"""Figure 2's cells as curves: stacked over seeds, with the preliminary calls counted and left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from poem_cma.experiments.campaign import cells
from poem_cma.experiments.campaign.cells import Cell
from poem_cma.experiments.reproduce import fig2
from poem_cma.experiments.reproduce.data import PaperSet
from poem_cma.experiments.reproduce.runs import call_grid
from poem_cma.experiments.reproduce.scale import Scale

__all__ = ["Curve", "SetSummary", "summaries"]


@dataclass(frozen=True, eq=False)
class Curve:
    """f at the output and at the last iterate, (seeds, calls), as the numbers of `calls` were reached."""

    method: str
    initial_distance: float | None
    paired: bool
    iterations: int
    calls: Any
    output: Any  # all calls counted
    last: Any
    output_uncounted: Any  # the preliminary calls left out, as the paper plots
    last_uncounted: Any
    preliminary: int
    d_star: Any
    kappa: Any

    def final(self, iterations: int, point: str = "output") -> Any:
        """Its values, one for each seed, where 2 `iterations` calls are spent."""
        return getattr(self, point)[:, int(np.searchsorted(self.calls, 2 * iterations))]


@dataclass(frozen=True, eq=False)
class SetSummary:
    """Everything that Figure 2 needs of one set."""

    paper: PaperSet
    name: str
    optimum: dict[str, Any]
    spectrum: dict[str, Any]
    spectrum_independent: dict[str, Any]
    restricted: list[dict[str, Any]]
    curves: list[Curve]

    @property
    def stands_in(self) -> bool:
        """Whether this is not the paper's set."""
        return self.paper.name != self.name

    @property
    def title(self) -> str:
        """The set's name, marked if it is not the paper's."""
        return f"{self.name} (stands in for {self.paper.name})" if self.stands_in else self.name

    @property
    def f_star(self) -> float:
        """A certified lower bound on f, so that no gap comes out negative."""
        return float(self.optimum["dual"])

    def curve(
        self, method: str, iterations: int, *, paired: bool = True, initial_distance: float | None = None
    ) -> Curve | None:
        """The curve with these settings, long enough: of several the one made for this horizon."""
        if initial_distance is None and method in ("poem", "poem-cma"):
            initial_distance = fig2.DISTANCES[0]
        fitting = [
            c
            for c in self.curves
            if (c.method, c.paired, c.initial_distance) == (method, paired, initial_distance)
            and (c.iterations == iterations or (c.iterations > iterations and method not in fig2.FIXED_HORIZON))
        ]
        return min(fitting, key=lambda c: c.iterations, default=None)


def summaries(folder: Path, scale: Scale, sets: Any) -> list[SetSummary] | None:
    """One for each set, or None if a cell is missing."""
    result = []
    for paper, name in sets:
        plan = fig2.plan(scale, [(paper, name)])
        loaded = [(cell, cells.load(folder, cell)) for cell in plan]
        if any(arrays is None for _, arrays in loaded):
            return None
        whole = [(cell, arrays) for cell, arrays in loaded if arrays is not None]
        of = {kind: [a for cell, a in whole if cell.kind == kind] for kind in ("optimum", "spectrum", "restricted")}
        runs = [(cell, arrays) for cell, arrays in whole if cell.kind == "run"]
        shared, independent = of["spectrum"]  # in the order of the plan
        curves = list(_curves(runs))
        result.append(SetSummary(paper, name, of["optimum"][0], shared, independent, of["restricted"], curves))
    return result


def _curves(runs: list[tuple[Cell, dict[str, Any]]]) -> Iterator[Curve]:
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for cell, arrays in runs:
        s = cell.settings
        groups.setdefault((s["method"], s["initial_distance"], s["paired"], s["iterations"]), []).append(arrays)
    for (method, r, paired, iterations), group in groups.items():
        grid = np.array(call_grid(2 * iterations))
        preliminary = int(group[0]["preliminary"])
        counted = np.searchsorted(group[0]["calls"], grid)
        uncounted = np.searchsorted(group[0]["calls"], grid + preliminary)

        def stack(name: str, where: Any, group: list[dict[str, Any]] = group) -> Any:
            return np.array([arrays[name][where] for arrays in group])

        yield Curve(
            method, r, paired, iterations, grid,
            stack("output", counted), stack("last", counted), stack("output", uncounted), stack("last", uncounted),
            preliminary,
            np.array([float(arrays["d_star"]) for arrays in group]),
            np.array([float(arrays["kappa"]) for arrays in group]),
        )  # fmt: skip
