"""Gradient estimates on one xi, in as few calls as the sample allows.

An estimator has places on which F may be asked. `needed` says which of them are worth a call, given the values so far;
when it names none, `gradient` turns what is known into an estimate. Both estimators take their differences around a
base point drawn at random within the smoothing radius, which makes them unbiased for the smoothed function also where F
has kinks. Values are NaN where they are not asked, and infinite where the call failed; they are rounded to `eps`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import sqrt
from typing import Any

import numpy as np

from poem_cma._types import Array
from poem_cma.arithmetic import length
from poem_cma.auto.state import is_even

__all__ = ["EXACT", "ROUNDING", "Tangent", "around", "base_point", "one_by_one", "same", "step_length", "stretch_of"]

Tangent = Callable[[Array], Array]

ROUNDING = 32.0  # values closer than so many units in the last place are equal
EXACT = 1e-13  # a precision above is single, that of printed numbers, or a little noise


def same(a: Any, b: Any, eps: float) -> bool:
    """Whether values are the same, or not known; in double precision but for what the order of sums makes of them."""
    near = ROUNDING * eps if eps < EXACT else 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        alike = (np.abs(a - b) <= near * np.abs(a)) | (np.isnan(a) & np.isnan(b)) | (a == b)
    return bool(alike.all())


def step_length(eps: float) -> float:
    """The length of differences, in smoothing radii: as short as rounding allows."""
    return 0.1 if eps > EXACT else 1e-3


def around(x: Array, mu: Any, stretch: Array | float, tangent: Tangent, w: Array, size: Any) -> Array:
    """Uniform in the ellipsoid of radius mu around x: of d + 2 coordinates on a sphere, d are uniform in the ball.

    w are d + 2 normal numbers, and size is |w|. A row for each where there are many.
    """
    base = tangent(w[..., :-2] * (mu / size / stretch))
    base += x
    return base


def base_point(rng: np.random.Generator, x: Array, mu: float, metric: Array, tangent: Tangent) -> Array:
    """Around x, drawn by the generator."""
    w = rng.standard_normal(len(x) + 2, x.dtype)
    return around(x, mu, stretch_of(metric), tangent, w, length(w))


def stretch_of(metric: Array) -> Array | float:
    """The root of the metric; a number where it is even."""
    return sqrt(metric[0]) if is_even(metric) else np.sqrt(metric)


def one_by_one(rows: Callable[[list[int]], Array], places: list[int]) -> Iterator[Array]:
    """The points of the places, one after the other, where they are long."""
    return (rows([place])[0] for place in places)
