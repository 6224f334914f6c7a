"""Everything the tables, the profiles and the report are made from, read from the cells' files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from poem_cma.experiments.bench.plan import Request, default_cells, entries, tuned_cells, tuning_cell
from poem_cma.experiments.bench.player import Player, Setting
from poem_cma.experiments.campaign import records

__all__ = ["FLOOR", "Curve", "ProblemResults", "Results", "read"]

#: A gap below this is as good as nought: rounding and the certificate's slack.
FLOOR = 1e-9


@dataclass(frozen=True, eq=False)
class Curve:
    """A method with one setting on one problem: gaps (seeds, calls) of what it recommended."""

    player: Player
    variant: Literal["default", "tuned"]
    setting: Setting
    calls: Any
    gaps: Any
    overhead: float  # seconds a call beside F, the median over the runs
    notes: tuple[str, ...]

    @property
    def median(self) -> Any:
        """The median over the seeds, at each number of calls."""
        return np.median(self.gaps, axis=0)

    @property
    def final(self) -> float:
        """The median gap at the end."""
        return float(self.median[-1])

    @property
    def label(self) -> str:
        """What people call it."""
        return f"{self.player.title}, tuned" if self.variant == "tuned" else self.player.title


@dataclass(frozen=True, eq=False)
class ProblemResults:
    """All that was run on a problem."""

    name: str
    d: int
    noisy: bool
    shareable: bool
    curves: tuple[Curve, ...]
    tunings: Mapping[str, Mapping[str, Any]]  # by method: what was tried

    def curve(self, name: str, variant: str = "default") -> Curve | None:
        """The curve of a method, where there is one."""
        return next((c for c in self.curves if c.player.name == name and c.variant == variant), None)

    @property
    def peers(self) -> list[Curve]:
        """The curves of those we are measured against, the best first."""
        peers = [c for c in self.curves if c.player.role in ("peer", "deterministic")]
        return sorted(peers, key=lambda c: c.final)


@dataclass(frozen=True, eq=False)
class Results:
    """What there is."""

    request: Request
    problems: tuple[ProblemResults, ...]


def read(folder: Path, request: Request) -> Results:
    """Read what is finished; a method whose runs are not all there is left out."""
    curves: dict[str, list[Curve]] = {}
    tunings: dict[str, dict[str, Any]] = {}
    about: dict[str, tuple[int, bool, bool]] = {}
    for entry in entries(request):
        problem = entry.problem
        about[problem.name] = (problem.d, problem.noisy, problem.shareable)
        own = curves.setdefault(problem.name, [])
        tried = tunings.setdefault(problem.name, {})
        own += filter(None, [_curve(folder, entry.player, "default", entry.player.default, default_cells(entry))])
        if entry.tunable and (tuned := records.load(folder, tuning_cell(entry))) is not None:
            tried[entry.player.name] = tuned
            own += filter(None, [_curve(folder, entry.player, "tuned", tuned["best"], tuned_cells(entry, tuned))])
    found = (ProblemResults(name, *about[name], tuple(own), tunings[name]) for name, own in curves.items())
    return Results(request, tuple(found))


def _curve(folder: Path, player: Player, variant: Any, setting: Setting, cells: Any) -> Curve | None:
    runs = [records.load(folder, cell) for cell in cells]
    if not runs or any(run is None for run in runs):
        return None
    there = [run for run in runs if run is not None]
    gaps = np.maximum(FLOOR, [run["gaps"] for run in there])
    overheads = [(run["seconds"] - run["oracle_seconds"]) / max(run["nfev"], 1) for run in there]
    notes = tuple(sorted({run["note"] for run in there if run["note"]}))
    return Curve(player, variant, setting, np.array(there[0]["calls"]), gaps, float(np.median(overheads)), notes)
