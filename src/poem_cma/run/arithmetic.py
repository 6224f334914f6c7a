"""What a formula needs beside + - * /, for one run and for many that are advanced together.

In one run the numbers of a step (mu, G, eta, ...) are Python's, and vectors have shape (d,). In many together they are
columns (n, 1) and rows (n, d), a row for each run. The same formulas serve both, and give the same bits in each row.
"""

from __future__ import annotations

from collections.abc import Callable
from math import frexp, isfinite, ldexp, nan, sqrt
from typing import Any, NamedTuple

import numpy as np

from poem_cma._types import Array

__all__ = [
    "FARTHEST", "LONG", "MANY", "ONE", "Kit", "distance", "equal", "inner", "larger", "largest", "length",
    "mean_and_error", "plus", "power_of_two", "products", "quotient", "root", "square", "summed",
]  # fmt: skip

#: Longer vectors are worked on in parts of this length. They stay in the processor's cache; in float32 one long sum
#: would lose digits; and BLAS does not start threads for so little, which on a busy machine take longer than the work.
LONG = 2**13

#: A step this long is not taken: a few thousand of them still leave a distance whose square is a number.
FARTHEST = 1e150


def _products(A: Array, B: Array) -> Array:
    dots: Array = (A[:, None, :] @ B[:, :, None])[:, 0, 0]
    return dots


#: The inner product of each row of A with that of B, the same bits as `dot` gives for two vectors.
products: Callable[[Array, Array], Array] = getattr(np, "vecdot", _products)  # since NumPy 2.0


def square(h: Array) -> Any:
    """|h|^2, of each row where there are many."""
    if h.ndim == 1:
        if h.size <= LONG:
            return float(h.dot(h))
        return sum(float(np.vdot(part, part)) for part in np.split(h, range(LONG, h.size, LONG)))
    if h.shape[1] <= LONG:
        return products(h, h)[:, None]
    return np.array([[square(row)] for row in h])


def inner(a: Array, b: Array) -> Any:
    """<a, b>, row by row where there are many."""
    return float(a.dot(b)) if a.ndim == 1 else products(a, b)[:, None]


def largest(h: Array) -> Any:
    """The largest size of a vector's numbers, of each row where there are many."""
    return float(np.abs(h).max()) if h.ndim == 1 else np.abs(h).max(axis=1, keepdims=True)


def summed(h: Array) -> Any:
    """The sum of a vector's numbers, of each row where there are many."""
    return float(np.add.reduce(h, dtype=float)) if h.ndim == 1 else np.add.reduce(h, axis=1, dtype=float, keepdims=True)


def length(h: Array) -> Any:
    """|h|, of each row where there are many."""
    return sqrt(h.dot(h)) if h.ndim == 1 and h.size <= LONG else root(square(h))


def distance(a: Array, b: Array) -> Any:
    """|a - b|, row by row where there are many; of long vectors without another one for the difference."""
    if a.ndim > 1:
        return length(a - b)
    if a.size > LONG:
        return sqrt(sum(square(a[i : i + LONG] - b[i : i + LONG]) for i in range(0, a.size, LONG)))
    h = a - b
    return sqrt(h.dot(h))


def equal(a: Array, b: Array) -> bool:
    """Whether two vectors are the same; a projection returns its argument itself where that is in the set."""
    return a is b or np.array_equal(a, b)


def plus(y: Array, c: Any, x: Array) -> Array:
    """y + c x, a fresh vector, c a number or a vector; long ones a part at a time, which is read from memory once."""
    if y.ndim > 1 or y.size <= LONG:
        z: Array = c * x
        z += y
        return z
    z = np.empty_like(y)
    for i in range(0, y.size, LONG):
        part = np.multiply(x[i : i + LONG], c[i : i + LONG] if isinstance(c, np.ndarray) else c, z[i : i + LONG])
        part += y[i : i + LONG]
    return z


def mean_and_error(values: Array) -> tuple[float, float]:
    """The mean of some numbers and its standard error (NaN of a single one), whatever their size."""
    n, unit = len(values), power_of_two(float(np.abs(values).max()))
    values = values / unit  # sums and squares stay finite
    mean = float(values.mean())
    if n == 1:
        return unit * mean, nan
    off = values - mean
    size = float(np.abs(off).max()) or 1.0
    return unit * mean, unit * (size * float(np.std(off / size, ddof=1)) / sqrt(n))


def power_of_two(a: float) -> float:
    """The largest power of two that is not above a positive number; to divide by it changes no digit."""
    return ldexp(1.0, frexp(a)[1] - 1)


def larger(a: Any, b: Any) -> Any:
    """The larger of two numbers, row by row where the second has rows; the first itself where none is larger."""
    if isinstance(b, np.ndarray):
        return np.maximum(a, b) if np.count_nonzero(b > a) else a
    return max(a, b)


def quotient(a: Any, b: Any) -> Any:
    """a / b, and zero where that is no finite number, row by row where there are many."""
    if isinstance(b, np.ndarray):
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            q = a / b
        return np.where(np.isfinite(q), q, 0.0)
    return c if b != 0.0 and isfinite(c := a / b) else 0.0


def root(a: Any) -> Any:
    """The square root; a power of a half may differ from it in the last bit."""
    return np.sqrt(a) if isinstance(a, np.ndarray) else sqrt(a)


class Kit(NamedTuple):
    """Functions of numbers, for one run or for many; where there are several in a formula, they are chosen once."""

    root: Callable[[Any], Any]
    larger: Callable[[Any, Any], Any]
    smaller: Callable[[Any, Any], Any]
    all: Callable[[Any], Any]


ONE = Kit(sqrt, max, min, bool)
MANY = Kit(np.sqrt, np.maximum, np.minimum, np.all)
