"""Which cells a request needs, in which order, and what computes them.

For every problem and peer there is a tuning cell; when it is finished, the runs of the setting it found can begin.
"""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from poem_cma import problems
from poem_cma.experiments.bench.player import Player, Setting
from poem_cma.experiments.bench.players import PLAYERS, takes_part
from poem_cma.experiments.bench.scale import FIRST_TUNING_SEED, Scale
from poem_cma.experiments.bench.task import Spent, Task
from poem_cma.experiments.bench.tuning import axes_for, tune
from poem_cma.experiments.campaign import records
from poem_cma.experiments.campaign.cells import Cell
from poem_cma.experiments.campaign.execute import Group
from poem_cma.problems import Problem

__all__ = [
    "Entry",
    "Request",
    "default_cells",
    "entries",
    "groups",
    "run_cells",
    "tuned_cells",
    "tuning_cell",
    "what_is_missing",
    "work",
]


@dataclass(frozen=True)
class Request:
    """What is to be run: the size, the problems that can be had, and the players that are installed."""

    scale: Scale
    problems: tuple[str, ...]
    players: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Entry:
    """A player on a problem."""

    problem: Problem
    player: Player
    scale: Scale

    @property
    def tunable(self) -> bool:
        """Whether there is something to tune."""
        return bool(self.player.axes)


@lru_cache(maxsize=1)  # w8a takes 120 MB
def _load(name: str) -> Problem:
    return problems.load(name, suite="losses")


def entries(request: Request) -> Iterator[Entry]:
    """Who plays what, a problem at a time, for a worker keeps one in memory."""
    for name in request.problems:
        problem = _load(name)
        for who in request.players:
            if takes_part(PLAYERS[who], problem):
                yield Entry(problem, PLAYERS[who], request.scale)


def tuning_cell(entry: Entry) -> Cell:
    """All the settings that are tried, one after the other."""
    player, scale, problem = entry.player, entry.scale, entry.problem
    axes = axes_for(player, problem, scale.axes)
    count = sum(len(axis.values) for axis in axes)
    settings = {
        "problem": problem.name, "method": player.name, "budget": scale.budget,
        "seeds": [FIRST_TUNING_SEED + j for j in range(scale.tuning_seeds)], "start": dict(player.start),
        "axes": [[axis.name, list(axis.values), axis.factors] for axis in axes],
    }  # fmt: skip
    seconds = count * scale.tuning_seeds * player.seconds(problem.d, scale.budget, player.start)
    return Cell("tune", settings, seconds, player.made_by())


def run_cells(entry: Entry, setting: Setting) -> list[Cell]:
    """The runs of a setting, fewer where they are slow."""
    player, scale = entry.player, entry.scale
    seconds = player.seconds(entry.problem.d, scale.budget, setting)
    seeds = max(1, min(scale.seeds, int(scale.patience / seconds)))
    settings = {
        "problem": entry.problem.name, "method": player.name, "budget": scale.budget, "setting": dict(setting),
    }  # fmt: skip
    return [Cell("run", settings | {"seed": seed}, seconds, player.made_by()) for seed in range(seeds)]


def default_cells(entry: Entry) -> list[Cell]:
    """The runs with the defaults; of our methods, and of those without any parameter, the only ones."""
    cells = run_cells(entry, entry.player.default)
    return cells[:1] if entry.player.role == "deterministic" else cells  # another seed would change nothing


def tuned_cells(entry: Entry, tuned: Mapping[str, Any]) -> list[Cell]:
    """The runs of the setting that a finished tuning cell found."""
    return run_cells(entry, tuned["best"])


@dataclass(frozen=True)
class Missing:
    """What is left to do: cells that can be computed now, and those that wait for their tuning."""

    todo: list[Cell]
    to_tune: dict[str, Entry]  # by the name of the tuning cell
    of: int  # cells altogether
    later_cells: int
    later_seconds: float


def what_is_missing(folder: Path, request: Request) -> Missing:
    """Compare what is asked for with the files that are there."""
    todo: list[Cell] = []
    to_tune: dict[str, Entry] = {}
    later: list[Cell] = []
    of = 0
    for entry in entries(request):
        now = default_cells(entry)
        if entry.tunable:
            cell = tuning_cell(entry)
            tuned = records.load(folder, cell)
            if tuned is None:
                to_tune[cell.name] = entry
                later += run_cells(entry, entry.player.start)
                now = [cell, *now]
            else:
                now = [*tuned_cells(entry, tuned), *now]
                of += 1
        now = list({c.name: c for c in now}.values())  # tuning may have found the defaults
        of += len(now)
        todo += [c for c in now if not records.finished(folder, c)]
    return Missing(todo, to_tune, of + len(later), len(later), sum(c.seconds for c in later))


def groups(todo: Iterable[Cell]) -> list[Group]:
    """Runs of a method that plans with those that differ in the seed alone, all other cells by themselves."""
    together: dict[Any, list[Cell]] = {}
    for cell in todo:
        joins = cell.kind == "run" and PLAYERS[cell.settings["method"]].plans
        together.setdefault(cell.family if joins else cell.name, []).append(cell)
    return list(together.values())


def work(folder: Path, group: Group) -> None:
    """Compute cells and write each; this is what a process does."""
    if group[0].kind == "tune":
        found = [compute_tuning(cell.settings) for cell in group]
    else:
        found = compute_runs([cell.settings for cell in group])
    for cell, result in zip(group, found, strict=True):
        records.save(folder, cell, result)


def compute_runs(family: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The gaps of what was recommended at chosen numbers of calls, for settings that differ in the seed alone.

    The longest runs are made one by one: how long a run takes by itself is part of its result. The shorter ones of a
    method that plans are replicas.
    """
    longest = [_one_run(settings) for settings in family]
    first = family[0]
    if not PLAYERS[first["method"]].plans:
        return longest
    curves = [_last_gaps(family, budget) for budget in budgets(first["budget"])[:-1]]
    curves.append([run["gaps"][-1] for run in longest])
    gaps = zip(*curves, strict=True)
    return [run | {"calls": budgets(first["budget"]), "gaps": list(g)} for run, g in zip(longest, gaps, strict=True)]


def _last_gaps(family: Sequence[Mapping[str, Any]], budget: int) -> list[float]:
    """The gaps at the end of runs with so many calls."""
    player, problem = PLAYERS[family[0]["method"]], _load(family[0]["problem"])
    seeds = [settings["seed"] for settings in family]
    if player.replicas is None or (problem.noisy and not problem.shareable):  # each has noise of its own
        return [_one_run({**settings, "budget": budget})["gaps"][-1] for settings in family]
    points = player.replicas(problem, budget, seeds)
    return [Task(problem, budget, seed).gap(x) for seed, x in zip(seeds, points, strict=True)]


def budgets(most: int) -> list[int]:
    """The budgets of runs whose last gaps make the curve of a method that plans for its budget.

    Examples
    --------
    >>> budgets(1000)
    [125, 177, 250, 354, 500, 707, 1000]
    """
    halvings = int(2.0 * np.log2(most / 100.0))
    return [round(most * 2.0 ** (-j / 2.0)) for j in range(halvings, -1, -1)]


def _one_run(settings: Mapping[str, Any]) -> dict[str, Any]:
    task = Task(_load(settings["problem"]), settings["budget"], settings["seed"])
    note = ""
    with warnings.catch_warnings(), np.errstate(all="ignore"):  # tuning tries steps that are far too large
        warnings.simplefilter("ignore")
        try:
            PLAYERS[settings["method"]](task, settings["setting"])
        except Spent:
            pass
        except Exception as error:  # a peer that breaks down is left with what it had recommended
            note = f"{type(error).__name__}: {error}"[:200]
    return task.finish() | {"note": note}


def compute_tuning(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The best of the settings along the axes, by the median of the last gaps."""
    problem, player = _load(settings["problem"]), PLAYERS[settings["method"]]

    def score(setting: Setting) -> float:
        runs = [_one_run({**settings, "setting": setting, "seed": seed}) for seed in settings["seeds"]]
        return float(statistics.median(run["gaps"][-1] for run in runs))

    axes = axes_for(player, problem, len(player.axes))[: len(settings["axes"])]
    best, tried = tune(score, settings["start"], axes)
    return {"best": best, "tried": tried}
