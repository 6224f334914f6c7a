"""The share of errors that a linear classifier makes on a batch: a function that is constant almost everywhere.

The value depends on the direction of the weights alone, F(c x) = F(x) for c > 0. The data comes from scikit-learn.
In both data sets hyperplanes separate the classes: the least value of the judge is 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from poem_cma._types import Array, IntArray
from poem_cma.problems.black_box import BlackBox
from poem_cma.problems.packages import package

__all__ = ["BLACK_BOXES", "zero_one_cancer", "zero_one_digits"]

_BATCH = 100


def zero_one_cancer() -> BlackBox:
    """A linear classifier with 31 weights: the second class is predicted where a'x > 0, a ends with a 1."""
    A, labels = _data("breast_cancer")
    A[:, :-1] = (A[:, :-1] - A[:, :-1].mean(axis=0)) / A[:, :-1].std(axis=0)
    truth = labels == 1

    def errors(x: Any, rows: Any) -> float:
        return float(np.mean((A[rows] @ x > 0.0) != truth[rows]))

    return _classifier(
        "zero-one-cancer",
        "the errors of a linear classifier on batches of 100 of scikit-learn's breast cancer data, standardised",
        errors,
        len(A),
        A.shape[1],
        (300, 1000),
    )


def zero_one_digits() -> BlackBox:
    """A linear classifier with 10 x 65 weights: the class with the largest of ten values a'w is predicted."""
    A, labels = _data("digits")
    A[:, :-1] /= 16.0

    def errors(x: Any, rows: Any) -> float:
        return float(np.mean((A[rows] @ np.reshape(x, (10, -1)).T).argmax(axis=1) != labels[rows]))

    return _classifier(
        "zero-one-digits",
        "the errors of a linear classifier of ten classes on batches of 100 of scikit-learn's digits",
        errors,
        len(A),
        10 * A.shape[1],
        (1000, 5000),
    )


def _classifier(
    name: str, source: str, errors: Callable[[Any, Any], float], rows: int, d: int, budgets: tuple[int, int]
) -> BlackBox:
    return BlackBox(
        name=name,
        suite="rough",
        source=source,
        x0=np.zeros(d),
        domain=None,
        fun=errors,
        sample=lambda rng: rng.choice(rows, _BATCH, replace=False),
        judge=lambda x: errors(np.asarray(x, dtype=float), slice(None)),
        budgets=budgets,
    )


def _data(name: str) -> tuple[Array, IntArray]:
    """The features with a column of ones at the end, and the labels."""
    datasets = package("sklearn.datasets", f"{name} needs scikit-learn")
    features, labels = getattr(datasets, f"load_{name}")(return_X_y=True)
    return np.column_stack([features, np.ones(len(features))]), labels


BLACK_BOXES: dict[str, Callable[[], BlackBox]] = {
    "zero-one-cancer": zero_one_cancer,
    "zero-one-digits": zero_one_digits,
}
