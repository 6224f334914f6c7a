"""Everything the tables, pictures and the page are made from, read from the cells' files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from poem_cma.experiments.bench.field import scores
from poem_cma.experiments.bench.field.plan import FieldRequest, entries
from poem_cma.experiments.bench.field.players import PLAYERS
from poem_cma.experiments.campaign import records

__all__ = ["FieldResults", "Place", "Runs", "read"]


@dataclass(frozen=True, order=True)
class Place:
    """Where methods meet: a problem with a budget."""

    suite: str
    problem: str
    budget: int


@dataclass(frozen=True)
class Runs:
    """A method's runs at a place, over the seeds."""

    values: tuple[float, ...]
    said: tuple[bool, ...]
    seconds: float  # a call, beside F, the median over the runs


@dataclass(frozen=True, eq=False)
class FieldResults:
    """What there is: complete sets of runs by place and method."""

    request: FieldRequest
    runs: Mapping[Place, Mapping[str, Runs]]
    starts: Mapping[tuple[str, str], float]
    sizes: Mapping[tuple[str, str], int]

    @cached_property
    def best(self) -> dict[tuple[str, str], float]:
        """By problem, the lowest value that any run of any method ended at, with any budget."""
        found = dict(self.starts)
        for place, methods in self.runs.items():
            key = (place.suite, place.problem)
            found[key] = min(found[key], *(value for runs in methods.values() for value in runs.values))
        return found

    @cached_property
    def flat(self) -> list[tuple[str, str]]:
        """Problems on which no run ended below x0: they have no scores."""
        return [key for key, start in self.starts.items() if not self.best[key] < start]

    @cached_property
    def scores(self) -> dict[Place, dict[str, list[float]]]:
        """By place and method, one score for each seed."""
        return {
            place: {
                name: [scores.relative(v, self.starts[key], self.best[key]) for v in runs.values]
                for name, runs in methods.items()
            }
            for place, methods in self.runs.items()
            if (key := (place.suite, place.problem)) not in self.flat
        }

    @cached_property
    def medians(self) -> dict[Place, dict[str, float]]:
        """By place and method, the median over the seeds."""
        return {
            place: {name: float(np.median(found)) for name, found in methods.items()}
            for place, methods in self.scores.items()
        }

    @cached_property
    def methods(self) -> list[str]:
        """Those with runs, in the order of the players."""
        there = {name for methods in self.scores.values() for name in methods}
        return [name for name in PLAYERS if name in there]

    def of(self, suite: str) -> list[Place]:
        """The places of a suite, in the order of the request."""
        return [place for place in self.scores if place.suite == suite]


def read(folder: Path, request: FieldRequest) -> FieldResults:
    """Read what is finished; a method whose runs are not all there is left out at that place."""
    runs: dict[Place, dict[str, Runs]] = {}
    starts: dict[tuple[str, str], float] = {}
    sizes: dict[tuple[str, str], int] = {}
    for entry in entries(request):
        found = [records.load(folder, cell) for cell in entry.cells]
        there = [run for run in found if run is not None]
        if not there or len(there) < len(found):
            continue
        problem = entry.problem
        place = Place(problem.suite, problem.name, entry.budget)
        starts[problem.suite, problem.name] = float(there[0]["start"])
        sizes[problem.suite, problem.name] = problem.d
        beside = [(run["time"]["seconds"] - run["time"]["inside"]) / max(run["nfev"], 1) for run in there]
        runs.setdefault(place, {})[entry.player.name] = Runs(
            tuple(float(run["value"]) for run in there), tuple(bool(run["said"]) for run in there),
            float(np.median(beside)),
        )  # fmt: skip
    return FieldResults(request, runs, starts, sizes)
