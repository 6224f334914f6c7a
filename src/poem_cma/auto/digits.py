"""A walk along many axes with one call, for samples whose slopes are small multiples of one number.

Features that are there or not, counts, paths through a network: the gradient of such a sample is c times whole numbers
m, with c its own. Steps along the axes of a block that are the powers of a base then change F by c times a number whose
digits are the m of these axes: one call tells some fourteen of them, where halving a walk takes several for each.

c is found from one call more, with a random whole number of steps along every axis: of all the c for which that makes a
whole number, one makes whole numbers of all blocks, too, whose digits add up to it. Where none does, or more than one,
the sample is walked along as any other. All of it happens within so short a distance that F is linear, and only double
precision resolves it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from math import isfinite, isnan, log
from typing import Any, NamedTuple

import numpy as np

from poem_cma._types import Array, IntArray
from poem_cma.auto.estimators import ROUNDING
from poem_cma.auto.staircase import Staircase

__all__ = ["Alphabet", "Digits", "calls_of", "draw_digits", "multiples"]

_RANGE = 2.0**14  # of the numbers that one call tells
_MOST = 3  # the largest multiple
_SAME = 1e-3  # of a slope: as far as short differences can tell
_NEAR = 0.02  # to a whole number
_MARKS = 256  # the most steps along an axis in the call that c is found from, or more where there are few axes
_LEAST = 2.0**-39  # step, in the size of the numbers that it changes: sixteen thousand of it change no slope by as much
_ROUNDED = 2.0**-42  # the same, in the distance over which F would vanish: its rounding is less than a hundredth
_EPS = float(np.finfo(float).eps)


@cache
def _powers(base: int) -> IntArray:
    """Of the base, falling, as many as one call tells."""
    powers: IntArray = base ** np.arange(int(log(_RANGE) / log(base) + 1e-9))[::-1]
    powers.flags.writeable = False
    return powers


_FEW = np.arange(1.0, 2.0**16)  # it takes longer to write them down than to use them


def _whole_numbers(n: int) -> Array:
    """From 1 to n."""
    return _FEW[:n] if n <= len(_FEW) else np.arange(1.0, n + 1.0)


class Alphabet(NamedTuple):
    """The whole numbers from `low` to `high`, which has 0 among them."""

    low: int
    high: int

    @property
    def base(self) -> int:
        return self.high - self.low + 1

    def weights(self, n: int) -> IntArray:
        """The steps along the axes of a block, in the least: there are two blocks at least, lest chance speaks."""
        return _powers(self.base)[: (n + 1) // 2]

    def __or__(self, other: Alphabet) -> Alphabet:
        return Alphabet(min(self.low, other.low), max(self.high, other.high))


def multiples(slopes: Array) -> Alphabet | None:
    """Which small multiples of one number the slopes of a sample are, if they are.

    Where both signs occur, the negative of every multiple is one, too: c may be negative.
    """
    seen = slopes[slopes != 0.0]
    m = seen / np.abs(seen).min()
    whole = np.round(m)
    if np.abs(whole).max() > _MOST or (np.abs(m - whole) > _SAME * np.abs(whole)).any():
        return None
    high = int(np.abs(whole).max())
    return Alphabet(-high if whole.min() < 0.0 < whole.max() else 0, high)


def calls_of(n: int, alphabet: Alphabet) -> int:
    """How many calls tell the slopes along n axes: at the base, one for each block, and one more."""
    return 2 - (-n // len(alphabet.weights(n)))


class Digits:
    """The values are those at the base, one for each block, the one with random steps, and those of the walk."""

    def __init__(self, walk: Staircase, alphabet: Alphabet, marks: IntArray, least: float) -> None:
        self.walk = walk
        self.alphabet = alphabet
        self.marks = marks  # whole numbers of steps, for every axis
        self.least = least  # step
        self._weights = alphabet.weights(len(walk.axes))
        self._check = calls_of(len(walk.axes), alphabet) - 1  # the place with random steps, after those of the blocks
        self._read: tuple[bytes, Array | None] = b"", None  # the last values, and what they said

    @property
    def axes(self) -> IntArray:
        return self.walk.axes

    @property
    def size(self) -> int:
        return self._check + self.walk.size

    def points(self, places: list[int]) -> Iterable[Array]:
        check, b = self._check, len(self._weights)
        if places[0] > check:
            return self.walk.points([place - check for place in places])
        rows = np.empty((len(places), len(self.walk.base)), self.walk.base.dtype)
        rows[:] = self.walk.base
        for row, place in zip(rows, places, strict=True):
            if place == check:
                row[self.axes] += self.least * self.marks
            elif place > 0:
                block = self.axes[(place - 1) * b : place * b]
                row[block] += self.least * self._weights[: len(block)]
        return rows

    def needed(self, v: Array, eps: float) -> list[int]:
        check = self._check
        if isnan(v[0]):
            return [0, check]
        walked = self._walked(v)
        if isnan(v[1]) and isnan(walked[-1]) and isfinite(v[0]) and isfinite(v[check]) and self._changes(v):
            return list(range(1, check))
        if not isfinite(v[0]) or self._slopes(v) is not None:
            return []
        return [check + place for place in ([len(self.axes)] if isnan(walked[-1]) else self.walk.needed(walked, eps))]

    def differences(self, v: Array, eps: float) -> tuple[Array, Any]:
        """F's change over each axis, as if steps had the length 1 where it was told by digits."""
        slopes = self._slopes(v)
        return self.walk.differences(self._walked(v), eps) if slopes is None else (slopes, 1.0)

    def gradient(self, slopes: Array, d: int) -> Array:
        return self.walk.gradient(slopes, d)

    def usable(self, v: Array) -> bool:
        return isfinite(v[0]) and (self._slopes(v) is not None or self.walk.usable(self._walked(v)))

    def told(self, v: Array) -> bool:
        """Whether the slopes could be read off."""
        return self._slopes(v) is not None

    def _walked(self, v: Array) -> Array:
        return np.concatenate((v[:1], v[self._check + 1 :]))

    def _changes(self, v: Array) -> bool:
        """Whether steps along all axes make a difference; if not, the sample is flat, or coarse, or they cancel."""
        return bool(abs(v[self._check] - v[0]) > ROUNDING * _EPS * abs(v[0]))

    def _slopes(self, v: Array) -> Array | None:
        asked = v[: self._check + 1].tobytes()
        if self._read[0] != asked:
            self._read = asked, self._read_off(v)
        return self._read[1]

    @np.errstate(all="ignore")
    def _read_off(self, v: Array) -> Array | None:
        """The slopes along the axes; None where they cannot be told."""
        n, last = len(self.axes), self._check
        change = v[1 : last + 1] - v[0]
        check, ratio = change[-1], change[:-1] / change[-1]
        if not np.isfinite(ratio).all() or not ratio.any():
            return None
        # Where the steps along all axes make s, those of a block make s * ratio: which s make whole numbers?
        ratios = sorted(ratio.tolist(), key=abs, reverse=True)
        s = _whole_numbers(int(min(self.alphabet.high * int(self.marks.sum()), _RANGE / abs(ratios[0]))))
        for r in ratios:
            number = s * r
            number -= np.rint(number)
            s = s[np.abs(number, out=number) < _NEAR]
        # And of which are the digits those that make s?
        low, base, weights = self.alphabet.low, self.alphabet.base, self._weights
        numbers = np.round(s[:, None] * ratio).astype(np.int64) - low * weights.sum()
        m = (numbers[:, :, None] // weights % base + low).reshape(len(s), len(ratio) * len(weights))
        right = ((numbers >= 0) & (numbers < base * weights[0]) & (numbers % weights[-1] == 0)).all(axis=1)
        right &= (m[:, :n] @ self.marks == s) & ~m[:, n:].any(axis=1)
        if right.sum() != 1:
            return None
        i = int(right.argmax())
        slopes: Array = check / (s[i] * self.least) * m[i, :n]
        return slopes


def draw_digits(
    rng: np.random.Generator, walk: Staircase, alphabet: Alphabet, size: float, vanishing: float, longest: float
) -> Digits:
    """Steps by the size of x and of the scale, and by the distance over which F would vanish; none beyond `longest`."""
    n = len(walk.axes)
    marks = rng.integers(1, max(_MARKS, int(2.0 * _RANGE / n)) + 1, n)
    least = min(max(_LEAST * size, _ROUNDED * vanishing), longest / _RANGE)
    return Digits(walk, alphabet, marks, least)
