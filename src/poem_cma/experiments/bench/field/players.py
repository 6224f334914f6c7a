"""Everybody who takes part in the field, by name."""

from __future__ import annotations

from poem_cma.experiments.bench.field.peers import (
    ars,
    cma_es,
    models,
    optuna_samplers,
    ours,
    search,
    simopt_solvers,
    spsa,
    tbpsa,
)
from poem_cma.experiments.bench.field.player import FieldPlayer

__all__ = ["PLAYERS"]

PLAYERS: dict[str, FieldPlayer] = {
    player.name: player
    for room in (ours, cma_es, ars, spsa, tbpsa, search, models, optuna_samplers, simopt_solvers)
    for player in room.PLAYERS
}
