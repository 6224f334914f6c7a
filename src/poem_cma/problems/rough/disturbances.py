"""A quadratic in five variables with noise that is not normal: it vanishes at x0, or has outliers without a mean."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from poem_cma._types import Array
from poem_cma.problems.black_box import BlackBox

__all__ = ["BLACK_BOXES", "LEAST", "noise_vanishes", "outliers"]

_CENTRE = np.array([1.0, -1.5, 0.5, 2.0, -1.0])
_WEIGHTS = np.array([1.0, 2.0, 4.0, 1.0, 3.0])


def noise_vanishes() -> BlackBox:
    """f(x) + 0.5 |x - x0| e with a normal e in every evaluation: repeated evaluations of x0 are equal."""
    x0 = np.zeros(5)
    return BlackBox(
        name="noise-vanishes",
        suite="rough",
        source="a quadratic with noise proportional to the distance from x0",
        x0=x0,
        domain=None,
        fun=lambda x, xi: _quadratic(x) + 0.5 * float(np.linalg.norm(np.asarray(x) - x0)) * xi,
        sample=lambda rng: float(rng.standard_normal()),
        judge=_quadratic,
        budgets=(300, 1000),
        shared=False,
    )


def outliers(name: str = "outliers", shared: bool = True) -> BlackBox:
    """A quadratic with Cauchy outliers of scale 5 in 5% of the samples.

    Parameters
    ----------
    name : str
    shared : bool
        True disturbs the values by (0.2 + c) (u'(x - t) + e): a random slope and a random constant for each sample,
        where c is 0 or an outlier. False disturbs every evaluation by 0.2 e + c.

    Notes
    -----
    The outliers are symmetric and have no mean. The judge is the quadratic, the median of the values at a point.
    """

    def disturbed(x: Any, xi: Any) -> float:
        return _quadratic(x) + float((0.2 + xi[6]) * ((np.asarray(x) - _CENTRE) @ xi[:5] + xi[5]))

    def outlier(rng: np.random.Generator) -> float:
        cauchy = 5.0 * float(rng.standard_cauchy())
        return cauchy if rng.random() < 0.05 else 0.0

    return BlackBox(
        name=name,
        suite="rough",
        source="a quadratic with Cauchy outliers in 5% of the " + ("samples" if shared else "evaluations"),
        x0=np.zeros(5),
        domain=None,
        fun=disturbed if shared else lambda x, xi: _quadratic(x) + xi,
        sample=(lambda rng: np.append(rng.standard_normal(6), outlier(rng)))
        if shared
        else lambda rng: 0.2 * float(rng.standard_normal()) + outlier(rng),
        judge=_quadratic,
        budgets=(300, 1000),
        shared=shared,
    )


def _quadratic(x: Any) -> float:
    z = np.asarray(x) - _CENTRE
    return float(_WEIGHTS @ (z * z))


BLACK_BOXES: dict[str, Callable[[], BlackBox]] = {
    "noise-vanishes": noise_vanishes,
    "outliers": outliers,
    "outliers-own": partial(outliers, "outliers-own", shared=False),
}

LEAST: dict[str, Callable[[], tuple[Array, float]]] = dict.fromkeys(BLACK_BOXES, lambda: (_CENTRE.copy(), 0.0))
