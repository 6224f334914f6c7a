"""The hinge problems of the paper's section 6 on real sets, and what stands in where a set cannot be had."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from poem_cma import datasets
from poem_cma.run.arithmetic import products

__all__ = ["PAPER_SETS", "Hinge", "PaperSet", "hinge", "resolve"]


@dataclass(frozen=True)
class PaperSet:
    """A set of the paper's Figure 2 with the numbers that its caption reports."""

    name: str
    tol: float  # the spectral filter: kappa is its reciprocal
    d_star: float
    kappa: float
    stand_in: str


PAPER_SETS = (
    PaperSet("mushrooms", tol=0.25, d_star=25, kappa=4, stand_in="breast_cancer"),
    PaperSet("w8a", tol=0.2, d_star=33, kappa=5, stand_in="digits"),
)


@dataclass(frozen=True, eq=False)
class Hinge:
    """F(x; i) = max(0, 1 - b_i'x) on the unit ball, b_i = y_i a_i."""

    rows: Any  # (n, d), dense: one row a call
    sparse: Any  # the same, for the full objective
    lipschitz: float  # the longest row

    @property
    def shape(self) -> tuple[int, int]:
        """n and d."""
        n, d = self.rows.shape
        return n, d

    def full(self, x: Any) -> float:
        """f(x), which the methods never see."""
        return float(np.maximum(0.0, 1.0 - self.sparse @ x).mean())

    def value(self, x: Any, i: int) -> float:
        """F(x; i)."""
        return max(0.0, 1.0 - float(self.rows[i] @ x))

    def values(self, X: Any, i: Any) -> Any:
        """F of each row on an example of its own, the same bits as `value`."""
        return np.maximum(0.0, 1.0 - products(self.rows[i], X))

    def moment(self) -> Any:
        """A = E[g g'] at x0 = 0, where every example is active."""
        return (self.sparse.T @ self.sparse).toarray() / self.shape[0]


@lru_cache(maxsize=1)  # a process works on one set at a time, and w8a takes 120 MB
def hinge(name: str) -> Hinge:
    """The problem of one set, raw features; scikit-learn's have their columns divided by their largest entry."""
    from scipy.sparse import csr_array

    A, y = datasets.load(name)
    if name in ("breast_cancer", "digits"):
        A /= np.maximum(np.abs(A).max(axis=0), 1e-300)
    A *= y[:, None]
    sparse = csr_array(A)
    lipschitz = float(np.sqrt(sparse.multiply(sparse).sum(axis=1).max()))
    return Hinge(A, sparse, lipschitz)


def resolve(paper_set: PaperSet) -> tuple[str, str]:
    """The name of the set to use, and if it is not the paper's the reason."""
    try:
        datasets.load(paper_set.name)
    except datasets.DatasetError as error:
        datasets.load(paper_set.stand_in)  # if this fails too, its message says what to install
        return paper_set.stand_in, str(error)
    return paper_set.name, ""
