"""Which cells a request needs: (problem, player, budget, seed), each a file of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from poem_cma.experiments.bench.field.library import load, source_of
from poem_cma.experiments.bench.field.player import FieldPlayer
from poem_cma.experiments.bench.field.players import PLAYERS
from poem_cma.experiments.bench.field.scale import FieldScale, seconds_a_call
from poem_cma.experiments.campaign.cells import Cell
from poem_cma.problems.black_box import BlackBox

__all__ = ["Entry", "FieldRequest", "cells", "entries"]


@dataclass(frozen=True)
class FieldRequest:
    """What is to be run: (suite, problem) that can be had, players that are installed, and what was set by hand."""

    scale: FieldScale
    problems: tuple[tuple[str, str], ...]
    players: tuple[str, ...]
    seeds: int | None = None
    budgets: tuple[int, ...] = ()
    everybody: bool = False  # players that the scale leaves out play too, because they were named
    notes: tuple[str, ...] = ()

    @property
    def suites(self) -> list[str]:
        """The suites that have problems here, in order."""
        return list(dict.fromkeys(suite for suite, _ in self.problems))


@dataclass(frozen=True)
class Entry:
    """A player on a problem with one budget, for all seeds."""

    problem: BlackBox
    player: FieldPlayer
    budget: int
    seeds: int

    @property
    def cells(self) -> list[Cell]:
        """One for each seed."""
        problem, player = self.problem, self.player
        seconds = player.seconds(problem.d, self.budget, seconds_a_call(problem.suite, problem.name))
        made_by = player.made_by() | {"suite": source_of(problem.suite)}
        settings = {
            "suite": problem.suite, "problem": problem.name, "method": player.name, "budget": self.budget,
        }  # fmt: skip
        return [Cell("field", settings | {"seed": seed}, seconds, made_by) for seed in range(self.seeds)]


def entries(request: FieldRequest) -> Iterator[Entry]:
    """Who plays what, a problem at a time."""
    for suite, name in request.problems:
        problem, scale = load(suite, name), request.scale.suites[suite]
        for budget in request.budgets or problem.budgets[: 2 if scale.both else 1]:
            for who in request.players:
                player = PLAYERS[who]
                left_out = who in scale.without and not request.everybody
                if not left_out and player.takes_part(problem, budget):
                    yield Entry(problem, player, budget, request.seeds or scale.seeds)


def cells(request: FieldRequest) -> Sequence[Cell]:
    """All of them, in an order in which a process seldom changes its problem."""
    return [cell for entry in entries(request) for cell in entry.cells]
