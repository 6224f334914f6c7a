"""What all samples have in common: a penalty on the size of x, as is often added to a loss.

A sample of a loss may depend on few variables, and be told in few calls; with a penalty, lambda / 2 |x|^2 or
lambda |x|_1, it depends on all. But then F changes along most axes by the same lambda times the change of |x|^2 / 2, or
of |x|_1, to the last digit, and on another sample with the same lambda. Once that is seen, the penalty is subtracted
from every value, and its gradient, which is known, is added to every estimate. Right or wrong, this biases nothing.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from poem_cma._types import Array, IntArray
from poem_cma.auto.estimators import ROUNDING

__all__ = ["common_gradient", "common_value", "dense", "in_common", "penalties"]

_LEAST = 8  # changes of F that must be known for a penalty to be seen
_FLAT = 0.25  # of a walk, at most, over which F may not change
_AGREE = 0.4  # of the changes, at least, must be the penalty's
_MIRRORED = 0.25  # of as many, at most, may be those of a penalty of the other sign: slopes that are alike in size
_NEAR = 0.5  # of what counts as rounding, by which they may differ from it
_SAME = 1e-6  # of the penalty: two samples agree so well
_DIGITS = 1e-4  # of a penalty: what is left of it
_PROPOSALS = 64
# Of a change, beside rounding: what agrees with a proposal, and with ever better fits to all that do.
_CLOSER = (1e-4, 1e-6, 1e-8, 0.0, 0.0)


def common_value(penalty: Array, X: Array, base: Array) -> Any:
    """By how much lambda / 2 |x|^2 + lambda' |x|_1 is higher at points than at the base."""
    return penalty @ _shapes(X) - penalty @ _shapes(base)


def common_gradient(penalty: Array, x: Array) -> Array:
    """At a point."""
    g: Array = penalty[0] * x + penalty[1] * np.sign(x)
    return g


def _shapes(X: Array) -> Array:
    """What the two penalties are multiples of."""
    return np.array([0.5 * np.einsum("...d,...d->...", X, X), np.abs(X).sum(axis=-1)])


def dense(places: list[int], F: Array, eps: float) -> bool:
    """Whether values at places of a walk change nearly everywhere, so that there may be a penalty."""
    if len(F) <= _LEAST:
        return False
    flat = np.abs(np.diff(F)) <= _rounding(F, eps)
    return float(np.diff(places)[flat].sum()) <= _FLAT * (places[-1] - places[0])


def _rounding(F: Array, eps: float) -> float:
    """The change of F that counts as none, as on a walk."""
    return ROUNDING * eps * float(np.abs(F).max())


def penalties(X: Array, F: Array, eps: float) -> Array:
    """The penalty that values of a sample along a walk (n, d) show, (2,); zeros where they show none."""
    near = _rounding(F, eps)
    change, shapes = np.diff(F), np.diff(_shapes(X))
    used = (np.abs(change) > near) & shapes.all(axis=0)
    change, shapes = change[used], shapes[:, used]
    found = np.zeros(2)
    for kinds in ([0], [1], [0, 1]):
        if len(change) >= _LEAST:
            factors, agree = _fitted(change, shapes[kinds], near)
            if agree >= _AGREE * len(change) and not _by_chance(factors, change, shapes[kinds], near, agree):
                found[kinds] = factors
                break
    return found


def _by_chance(factors: Array, change: Array, shapes: Array, near: float, agree: int) -> bool:
    """Whether it is no penalty: as many slopes, or nearly so, agree with it in size, but not in sign.

    Near zero |x|_1 has slopes of either sign. Half of them are those of any plane that is equally steep along all axes.
    """
    part, off = factors[-1] * shapes[-1], change - factors @ shapes
    near_enough = _CLOSER[0] * np.abs(change) + _NEAR * near
    mirrored = (np.abs(off + 2.0 * part) <= near_enough) & (np.abs(part) > near_enough)
    return bool(np.count_nonzero(mirrored) > _MIRRORED * agree)


def in_common(seen: Array, hinted: Array, known: Array) -> bool:
    """Whether a penalty is believed: another sample has shown the same, or it only adds digits to one that is known.

    It is never less than nothing.
    """
    again = np.abs(seen - hinted) <= _SAME * (np.abs(hinted) + np.abs(known))
    more = again | (np.abs(seen) <= _DIGITS * np.abs(known))
    return bool(more.all() and (known + seen >= 0.0).all())


def _fitted(change: Array, shapes: Array, near: float) -> tuple[Array, int]:
    """The multiples of the shapes that as many changes as possible are, and how many these are.

    Every few changes, as many as there are shapes, say what the multiples would be; the best of these proposals is then
    fitted to all changes that agree with it.
    """
    k, n = shapes.shape
    i = _spread(n)
    with np.errstate(all="ignore"):
        proposals = (change / shapes)[:, i] if k == 1 else _solved(shapes, change, i, (i + 1) % n)
        off = np.abs(change - proposals.T @ shapes)
        agree = off <= _CLOSER[0] * np.abs(change) + _NEAR * near
    best = agree[int(agree.sum(axis=1).argmax())]
    factors = np.zeros(k)
    for closer in _CLOSER[1:]:
        if best.sum() <= k:  # no others than those that it was made of
            return factors, 0
        factors = np.linalg.lstsq(shapes[:, best].T, change[best], rcond=None)[0]
        best = np.abs(change - factors @ shapes) <= closer * np.abs(change) + _NEAR * near
    return factors, int(best.sum())


@cache
def _spread(n: int) -> IntArray:
    """Of n changes those that propose something: all, or some of each part."""
    return np.unique(np.linspace(0, n - 1, _PROPOSALS).astype(int))


def _solved(shapes: Array, change: Array, i: Any, j: Any) -> Array:
    """The multiples of two shapes by which the i-th and the j-th changes come about, (2, len(i))."""
    (a, b), c = shapes, change
    det = a[i] * b[j] - a[j] * b[i]
    multiples: Array = np.stack([c[i] * b[j] - c[j] * b[i], a[i] * c[j] - a[j] * c[i]]) / det
    return multiples
