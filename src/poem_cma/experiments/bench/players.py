"""Everybody who takes part, by name."""

from __future__ import annotations

from poem_cma.experiments.bench.peers import (
    baselines,
    cma_family,
    deterministic,
    evosax_peers,
    first_order,
    nevergrad_peers,
    ours,
)
from poem_cma.experiments.bench.peers import spsa as noisyopt_spsa
from poem_cma.experiments.bench.player import Player
from poem_cma.problems import Problem
from poem_cma.problems.suites import no_such

__all__ = ["PLAYERS", "choose", "takes_part"]

PLAYERS: dict[str, Player] = {
    player.name: player
    for room in (
        ours, baselines, noisyopt_spsa, evosax_peers, cma_family, nevergrad_peers, first_order, deterministic,
    )
    for player in room.PLAYERS
}  # fmt: skip


def choose(names: list[str] | None) -> list[Player]:
    """The players of these names, all by default.

    Examples
    --------
    >>> [player.title for player in choose(["auto", "pycma"])]
    ['auto', 'pycma']
    """
    for name in names or ():
        if name not in PLAYERS:
            raise ValueError(no_such("method", name, PLAYERS))
    return [player for name, player in PLAYERS.items() if names is None or name in names]


def takes_part(player: Player, problem: Problem) -> bool:
    """Whether a player is for such problems."""
    if problem.d > player.up_to:
        return False
    if player.role == "limit":
        return problem.gradient is not None
    return player.role != "deterministic" or not problem.noisy
