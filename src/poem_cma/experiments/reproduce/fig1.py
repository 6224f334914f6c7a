"""Figure 1: the estimated effective dimension against the ambient one, the paper's regimes and two more curves."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import poem_cma as pc
from poem_cma.experiments.campaign import cells
from poem_cma.experiments.campaign.cells import Arrays, Cell
from poem_cma.experiments.reproduce import synthetic
from poem_cma.experiments.reproduce.scale import Scale
from poem_cma.experiments.reproduce.synthetic import CANDIDATES, Candidate

__all__ = ["PAPER", "REGIMES", "compute", "plan", "summary"]

KIND = "fig1"
TOL = 0.25
#: The curves, in the order of the figure.
REGIMES = {
    "few": "M = d",
    "theory": "M = d ln d",
    "filtered": "M = d ln d, Tol 25%",
    "population": "population value",
    "gradients": "the gradients themselves",
}
#: What the paper reports at d = 500.
PAPER = {"theory": 72.0, "filtered": 28.0}


def plan(scale: Scale) -> list[Cell]:
    """A cell for each candidate, dimension and seed."""
    return [
        Cell(
            KIND,
            {"features": c.features, "start": c.start, "paired": c.paired, "d": d, "seed": seed},
            seconds=0.1 + d / 500,
        )
        for c in CANDIDATES
        for d in scale.dimensions
        for seed in range(scale.figure1_seeds)
    ]


def compute(settings: Mapping[str, Any]) -> Arrays:
    """d* in each regime, from one set and one seed."""
    d, seed = settings["d"], settings["seed"]
    B, x0 = synthetic.make(settings["features"], settings["start"], d, seed)
    n = len(B)

    def hinge(x: Any, i: int) -> float:
        return max(0.0, 1.0 - float(B[i] @ x))

    def sample(rng: np.random.Generator) -> int:
        return int(rng.integers(n))

    at = {"sample": sample, "seed": seed}
    few = pc.effective_dimension(hinge, x0, samples=d, tol=0.0, paired=settings["paired"], **at)
    theory = pc.effective_dimension(hinge, x0, tol=0.0, paired=settings["paired"], **at)
    top = theory.eigenvalues[theory.eigenvalues >= TOL * theory.eigenvalues[0]]
    gradients = pc.gradient_spectrum(hinge, x0, gradients=10, **at)
    active = B[B @ x0 < 1.0]
    moment = np.linalg.eigvalsh(active.T @ active / n)
    share = moment[-1] / moment.sum()
    return {
        "few": few.effective_dimension,
        "theory": theory.effective_dimension,
        "filtered": pc.theory.effective_dimension(top),
        "rank": len(top),
        "population": (d + 2.0) / (1.0 + 2.0 * share),  # of d/(d+2) (tr(A) I + 2 A)
        "gradients": gradients.effective_dimension,
        "gradients_exact": 1.0 / share,
    }


def summary(folder: Path, scale: Scale) -> dict[str, Any] | None:
    """For each candidate the values (d, seed) of each curve; and which comes nearest to the paper's two numbers."""
    table: dict[tuple[str, str, bool, int, int], Arrays] = {}
    for cell in plan(scale):
        s = cell.settings
        if (arrays := cells.load(folder, cell)) is None:
            return None
        table[s["features"], s["start"], s["paired"], s["d"], s["seed"]] = arrays
    names = (*REGIMES, "rank", "gradients_exact")

    def curves(c: Candidate) -> dict[str, Any]:
        return {
            name: np.array(
                [
                    [float(table[c.features, c.start, c.paired, d, s][name]) for s in range(scale.figure1_seeds)]
                    for d in scale.dimensions
                ]
            )
            for name in names
        }

    families = {c.label: curves(c) for c in CANDIDATES}
    distance = {label: _distance(values) for label, values in families.items()}
    return {"d": list(scale.dimensions), "families": families, "nearest": min(distance, key=lambda c: distance[c])}


def _distance(curves: Mapping[str, Any]) -> float:
    """How far the medians at the largest d are from the paper's numbers, as ratios."""
    return float(sum(abs(np.log(np.median(curves[name][-1]) / paper)) for name, paper in PAPER.items()))
