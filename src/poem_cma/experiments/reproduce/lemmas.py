"""The paper's lemmas on the directions and the estimator, put to the test where numbers can decide."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from poem_cma.experiments.campaign.cells import Arrays, Cell
from poem_cma.paper.algorithm_2 import exact_moments

__all__ = ["SPECTRA", "compute", "plan"]

#: Spectra of Sigma: one that the filter with Tol 25% could leave, a short one, and one with a single strong direction.
SPECTRA = {
    "45 eigenvalues from 4 to 1": np.linspace(4.0, 1.0, 45),
    "4, 2, 1, 1, 1, 1/2, 1/4": np.array([4.0, 2.0, 1.0, 1.0, 1.0, 0.5, 0.25]),
    "100 and 99 ones": np.array([100.0] + [1.0] * 99),
}
DRAWS = 400_000


def plan() -> list[Cell]:
    """One cell for each spectrum."""
    return [Cell("lemmas", {"spectrum": name, "draws": DRAWS}, seconds=2.0) for name in SPECTRA]


def compute(settings: Mapping[str, Any]) -> Arrays:
    """Lemma 3's error, and what Lemma 7 bounds, for F linear with a unit gradient along the worst axis."""
    lam = SPECTRA[settings["spectrum"]]
    exact, _ = exact_moments(lam)
    trace = lam.sum()
    rng = np.random.default_rng(6)
    total = np.zeros(len(lam))
    for _ in range(20):  # E |g|^2 = E (v_i)^2 |S v|^2 with S = tr(Sigma) Sigma^+
        u = rng.standard_normal((settings["draws"] // 20, len(lam))) * np.sqrt(lam)
        v = u / np.linalg.norm(u, axis=1)[:, None]
        total += (v**2).T @ ((v * (trace / lam)) ** 2).sum(axis=1)
    return {
        "approximate": lam / trace,
        "exact": exact,
        "second_moment": total.max() / settings["draws"],  # L = 1, the worst axis
        "bound": 8.0 * trace / lam.min(),  # 8 d* kappa L^2
    }
