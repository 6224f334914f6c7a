"""The standardised space of a Nevergrad parametrisation, with its integers as integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from poem_cma._types import Array
from poem_cma.domains.sets import Box
from poem_cma.integrations._needs import needs

with needs("Nevergrad", "nevergrad"):
    from nevergrad.parametrization import helpers

__all__ = ["Space"]


class Space:
    """Which standardised coordinates z stand for integers n, with z = origin + step n.

    Real variables are searched in the standardised space, where they are logarithms if the parametrisation says so.
    Integers behind a transformation that is not linear count as real numbers; Nevergrad rounds them.
    """

    def __init__(self, parametrization: Any) -> None:
        parts = [_affine(data) for data in helpers.list_data(parametrization)]
        origin, step, lower, upper = (np.concatenate(column, dtype=float) for column in zip(*parts, strict=True))
        self._origin, self._step = origin, np.where(step > 0.0, step, 1.0)
        integer = step > 0.0
        #: What `Optimizer` takes.
        self.settings: dict[str, Any] = {}
        self._domain = Box(lower, upper, integer=integer) if integer.any() else None
        if self._domain is not None:
            self.settings = {"domain": self._domain, "scale": 1.0 / self._step}

    def from_standardised(self, z: Array) -> Array:
        """The point that is searched."""
        x: Array = (z - self._origin) / self._step
        return x if self._domain is None else self._domain.project(x)

    def to_standardised(self, x: Array) -> Array:
        """The point that Nevergrad gets."""
        return self._origin + self._step * x


def _affine(data: Any) -> tuple[Array, Array, Array, Array]:
    """Origin, step and bounds of each coordinate; the step of a real number is zero."""
    zero, free = np.zeros(data.dimension), np.full(data.dimension, np.inf)
    real = zero, zero, -free, free
    n = np.asarray(data.value)
    if not data.integer or n.size != data.dimension:  # a choice by weights is an integer, too
        return real
    below, here, above = (_standardised(data, n + side) for side in (-1, 0, 1))
    step = above - here if np.isfinite(above).all() else here - below
    bent = np.nan_to_num(above - 2.0 * here + below)
    if not (step > 0.0).all() or not np.allclose(bent, 0.0):
        return real
    told = zip(data.bounds, (-free, free), strict=True)
    lower, upper = (other if side is None else np.broadcast_to(side, n.shape or (1,)).ravel() for side, other in told)
    return here - step * n.ravel(), step, lower, upper


def _standardised(data: Any, value: Array) -> Array:
    """The standardised coordinates of a value; NaN if it is out of bounds."""
    child = data.spawn_child()
    try:
        child.value = value if value.ndim else int(value)
    except ValueError:
        return np.full(data.dimension, np.nan)
    found: Array = child.get_standardized_data(reference=data)
    return found
