"""What every convex set can do, and the checks of their arguments.

Queries stray up to some `reach` from an iterate; `shrunk(reach)` holds the iterates whose queries stay inside.
A set without interior (a simplex, a box with fixed coordinates) is a set of its affine hull: `tangent` and
`hull_dimension` describe the directions that do not leave it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from poem_cma._types import Array, BoolArray

if TYPE_CHECKING:
    from poem_cma.domains.variables import Variables

__all__ = ["LEAST_WEIGHT", "ConvexSet", "kind", "number", "positive", "short", "vector", "weights"]

LEAST_WEIGHT = 1e-200  # beside 1, as good as 0 and safe to divide by

_SLACK = 1e-12  # a set may be shrunk down to one point, whatever rounding makes of that


class ConvexSet(ABC):
    """What the library asks of a set. Immutable; a subclass writes the underscored methods."""

    outside: bool = False  # whether points outside may be evaluated
    integer: bool | BoolArray = False  # which variables are integers,
    log: bool | BoolArray = False  # and which are searched by their logarithm
    variables: Variables | None = None  # what the points of a set that is searched stand for, where some are integers
    dimension: int | None = None  # None: fits any
    weighted: bool = True  # whether it can project in a weighted distance
    any_precision: bool = False  # whether `nearest` needs no more digits than x has

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a {type(self).__name__} cannot change: make a new one")

    def __repr__(self) -> str:
        told = {k: v for k, v in self._parts().items() if v is not getattr(type(self), k, ...)}
        return f"{type(self).__name__}({', '.join(f'{k}={short(v)}' for k, v in told.items())})"

    def for_dimension(self, d: int) -> Self:
        """The same set in R^d."""
        return self._bound(d, "x0")

    @property
    @abstractmethod
    def diameter(self) -> float:
        """The largest distance of two points of the set."""

    def project(self, x: Array, weight: Array | None = None) -> Array:
        """The point y of the set that minimises sum_i weight_i (y_i - x_i)^2; x is 1-D and finite."""
        x = np.asarray(x)
        if x.ndim != 1 or self.dimension not in (None, x.size):
            raise ValueError(f"{self!r} needs a 1-D array of its dimension, got shape {x.shape}")
        if weight is not None:
            weight = weights(weight, x.size)
        if x.dtype == np.float64:
            return self.nearest(x, weight)
        if self.any_precision and x.dtype == np.float32 and weight is None:
            return self.nearest(x).astype(x.dtype, copy=False)
        wide = x.astype(np.float64)
        y = self.nearest(wide, weight)
        if x.dtype.kind != "f":
            return y
        return x if y is wide else y.astype(x.dtype)

    def contains(self, x: ArrayLike, tol: float | None = None) -> bool:
        """Whether x is in the set, up to `tol` times its size (by default some thousand roundings)."""
        x = np.asarray(x)
        if tol is None:
            tol = float(np.finfo(x.dtype if x.dtype.kind == "f" else np.float64).eps) ** 0.75
        x = x.astype(np.float64)
        return bool(np.isfinite(x).all() and (np.abs(x - self.project(x)) <= tol * self._size(x)).all())

    @property
    def inradius(self) -> float:
        """The largest number to which `shrunk` still answers."""
        return self.fits(1.0)

    def shrunk(self, reach: float | Array) -> ConvexSet:
        """Points that stay in the set when moved along its hull by any h with sum_i (h_i / reach_i)^2 <= 1.

        Not always all of them: the answer is of the same kind. It may be thinner: take directions from here.
        """
        reach = vector("reach", reach)
        if not np.all((reach >= 0.0) & (reach < np.inf)):
            raise ValueError(f"reach must be finite and not negative, got {short(reach)}")
        if not np.any(reach):
            return self
        whole = self if isinstance(reach, float) else self._bound(reach.size, "reach")
        if whole.fits(reach) < 1.0 - _SLACK:
            raise ValueError(f"nothing is left of {self!r} after shrinking it by {short(reach)}")
        return whole._shrunk(reach)

    def relaxed(self) -> ConvexSet:
        """The convex set of the logarithms of `log` variables, with the real numbers that round to its integers."""
        return self

    def rounded(self, x: Array) -> Array:
        """The point that stands for all that are one and the same point to the user; x itself without integers."""
        return x if self.variables is None else self.variables.rounded(x)

    def steps(self, x: Array) -> float | Array:
        """How far the next integer is from x along each variable; zero for a real number."""
        return 0.0 if self.variables is None else self.variables.steps(x)

    def hull_dimension(self, d: int) -> int:
        """Dimension of the affine hull in R^d."""
        return d

    def tangent(self, V: Array, scale: float | Array = 1.0) -> Array:
        """Orthogonal projection of V (..., d) on the directions of the affine hull of {x / scale}."""
        return V

    @abstractmethod
    def nearest(self, x: Array, weight: Array | None = None) -> Array:
        """`project` without its checks: x is a vector, float64 as a rule, and the largest weight is 1."""

    @abstractmethod
    def fits(self, reach: float | Array) -> float:
        """The largest t for which shrunk(t * reach) is not empty."""

    @abstractmethod
    def _shrunk(self, reach: float | Array) -> ConvexSet:
        """`shrunk` by something positive that fits."""

    def _size(self, x: Array) -> float | Array:
        return float(np.abs(x).max(initial=0.0))

    def _bound(self, d: int, owner: str) -> Self:
        if self.dimension not in (None, d):
            raise ValueError(f"domain has dimension {self.dimension}, {owner} has {d}")
        return self if self.dimension == d else self._with(dimension=d)

    def _with(self, **changes: object) -> Self:
        other = object.__new__(type(self))
        vars(other).update(self._parts() | changes)
        return other

    def _parts(self) -> dict[str, Any]:
        """What the set is made of, without what was worked out from it (`cached_property`)."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def _known(self, wanted: str) -> int:
        if self.dimension is None:
            raise ValueError(f"{self!r} has no {wanted} without a dimension: call for_dimension(d) first")
        return self.dimension


def number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, got {value!r}") from None


def positive(name: str, value: Any) -> float:
    size = number(name, value)
    if not 0.0 < size < math.inf:
        raise ValueError(f"{name} must be positive and finite, got {size}")
    return size


def vector(name: str, value: ArrayLike) -> float | Array:
    """A float, or a 1-D array of our own that nobody can change."""
    entries = np.array(value, dtype=np.float64)
    if entries.ndim > 1 or entries.size == 0:
        raise ValueError(f"{name} must be a number or a 1-D array, got an array of shape {entries.shape}")
    if np.isnan(entries).any():
        raise ValueError(f"{name} must not contain NaN")
    if entries.ndim == 0:
        return float(entries)
    entries.flags.writeable = False
    return entries


def kind(name: str, value: ArrayLike) -> bool | BoolArray:
    """A truth value, or a 1-D array of them that nobody can change."""
    mask = np.array(value)
    if mask.ndim > 1 or mask.size == 0 or not np.isin(mask, (0, 1)).all():
        raise ValueError(f"{name} must be True, False or a 1-D array of them, got {value!r}")
    if mask.ndim == 0:
        return bool(mask)
    kinds: BoolArray = mask.astype(bool)
    kinds.flags.writeable = False
    return kinds


def weights(weight: ArrayLike, d: int) -> Array:
    """Checked, with a largest entry of 1."""
    checked: Array = np.asarray(weight, dtype=np.float64)
    if checked.shape != (d,) or not 0.0 < (least := checked.min()) <= (most := checked.max()) < np.inf:
        raise ValueError(f"weight must be an array of {d} positive finite numbers")
    relative: Array = checked / most
    return relative if least / most >= LEAST_WEIGHT else np.maximum(relative, LEAST_WEIGHT)


def short(value: object) -> str:
    if not isinstance(value, np.ndarray):
        return repr(value)
    if (value == value[0]).all():
        return repr(float(value[0]))
    return np.array2string(value, threshold=6, edgeitems=2, precision=6, separator=", ")
