"""The synthetic sets that Figure 1 may have been made with.

The paper says: a classification task with d_true = 5 and 5000 samples, hinge loss, batch 1. It gives neither the law of
the features nor the starting point, so each plausible reading is one entry here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

__all__ = ["CANDIDATES", "Candidate", "make"]

TRUE_DIMENSION = 5
SAMPLES = 5000


@dataclass(frozen=True)
class Candidate:
    """Features, starting point, and whether the two calls of a pair share their example."""

    features: str
    start: str = "zero"
    paired: bool = True

    @property
    def label(self) -> str:
        """In words."""
        start = {"zero": "x0 = 0", "sphere": "x0 on the unit sphere", "normal": "x0 standard normal"}[self.start]
        return f"{FEATURES[self.features]}; {start}{'' if self.paired else '; independent xi'}"


FEATURES = {
    "low-rank": "five normal factors, orthonormal loadings",
    "mixed": "five normal factors, normal loadings",
    "decaying": "five normal factors of size 1/j, orthonormal loadings",
    "noisy": "five normal factors, orthonormal loadings, noise 0.1",
    "isotropic": "isotropic normal features, five count",
    "classification": "make_classification, five informative, no redundant",
    "redundant": "make_classification, five informative, the rest redundant",
}

CANDIDATES = (
    Candidate("low-rank"),
    Candidate("low-rank", "normal"),
    Candidate("mixed"),
    Candidate("mixed", "sphere"),
    Candidate("decaying"),
    Candidate("noisy"),
    Candidate("isotropic"),
    Candidate("classification"),
    Candidate("redundant"),
    Candidate("redundant", "sphere"),
    Candidate("low-rank", paired=False),
)


@lru_cache(maxsize=1)
def make(features: str, start: str, d: int, seed: int) -> tuple[Any, Any]:
    """The rows y_i a_i (n, d), and x0."""
    rng = np.random.default_rng([seed, d, 1])
    B = _signed_rows(features, d, seed, rng)
    x0 = np.zeros(d) if start == "zero" else np.random.default_rng([seed, d, 2]).standard_normal(d)
    if start == "sphere":
        x0 /= np.linalg.norm(x0)
    return B, x0


def _signed_rows(features: str, d: int, seed: int, rng: np.random.Generator) -> Any:
    k, n = TRUE_DIMENSION, SAMPLES
    if features in ("classification", "redundant"):
        return _from_sklearn(features, d, seed)
    w = rng.standard_normal(k)
    if features == "isotropic":
        A = rng.standard_normal((n, d))
        return A * np.sign(A[:, :k] @ w)[:, None]
    Z = rng.standard_normal((n, k))
    if features == "decaying":
        Z /= np.arange(1, k + 1)
    loadings = rng.standard_normal((d, k))
    if features != "mixed":
        loadings = np.linalg.qr(loadings)[0]
    A = Z @ loadings.T
    if features == "noisy":
        A += 0.1 * rng.standard_normal((n, d))
    return A * np.sign(Z @ w)[:, None]


def _from_sklearn(features: str, d: int, seed: int) -> Any:
    from sklearn.datasets import make_classification

    redundant = d - TRUE_DIMENSION if features == "redundant" else 0
    A, y = make_classification(
        n_samples=SAMPLES, n_features=d, n_informative=TRUE_DIMENSION, n_redundant=redundant, random_state=seed
    )
    return A * (2.0 * y - 1.0)[:, None]
