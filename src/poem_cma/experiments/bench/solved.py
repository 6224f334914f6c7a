"""Who solves what within how many calls, ready for the profiles."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from poem_cma.experiments.bench import profiles
from poem_cma.experiments.bench.ratios import calls_to_reach
from poem_cma.experiments.bench.results import Results

__all__ = ["ACCURACIES", "Profiles", "make_profiles"]

ACCURACIES = (0.1, 0.01)
FACTORS = np.geomspace(1.0, 100.0, 201)


@dataclass(frozen=True, eq=False)
class Profiles:
    """Both profiles of every player to one accuracy, the best player first."""

    accuracy: float
    labels: tuple[str, ...]
    names: tuple[str, ...]
    performance: Any  # (players, factors)
    data: Any  # (players, gradients)
    gradients: Any
    solved: Any  # the share of problems solved within the budget
    area: Any  # under the performance profile


def make_profiles(results: Results, accuracy: float) -> Profiles | None:
    """Our methods and the peers at their best (tuned where they can be) over the noisy problems.

    A player that did not take part in a problem has not solved it.
    """
    chosen = [p for p in results.problems if p.noisy]
    names: dict[str, str] = {}  # the players and their titles, in the order of the request
    for p in chosen:
        names |= {c.player.name: c.player.title for c in p.curves if c.player.role in ("ours", "peer")}
    if not names:
        return None
    calls = np.full((len(names), len(chosen)), inf)
    for j, p in enumerate(chosen):
        for i, name in enumerate(names):
            curve = p.curve(name, "tuned") or p.curve(name)
            if curve is not None and (reached := calls_to_reach(curve.calls, curve.median, accuracy)) is not None:
                calls[i, j] = reached
    dimensions = [p.d for p in chosen]
    gradients = np.geomspace(0.1, results.request.scale.budget / (min(dimensions) + 1.0), 201)
    performance = profiles.performance_profile(calls, FACTORS)
    area = profiles.area(performance, FACTORS)
    order = np.argsort(-area, kind="stable")
    titles, keys = list(names.values()), list(names)
    return Profiles(
        accuracy,
        tuple(titles[i] for i in order),
        tuple(keys[i] for i in order),
        performance[order],
        profiles.data_profile(calls, dimensions, gradients)[order],
        gradients,
        np.isfinite(calls).mean(axis=1)[order],
        area[order],
    )
