"""How much of a difference is noise, and how long are steps? Pairs of a generation are evaluated again on another xi.

If D and D' are the differences of a pair on two xi's, the mean of D D' is what both have in common, the change of f,
and the rest of the mean of D^2 is noise: of the sample, or of every evaluation. Where noise rules, all pairs are
evaluated again: the mean of two values has half the variance, so nothing is lost, and every generation measures it.

    snr = E[D D'] / (E[D^2] - E[D D']),    eta <- min(1, eta exp(gamma eta^2 clip(snr / eta - 1, -1, 1)))

The mean moves by eta times the usual step. So the steps of many generations average, and eta grows again where noise
falls. When eta falls, the step size grows by the same factor: points move apart, and the mean moves as far as before.
This is the learning rate adaptation of Nomura, Akimoto and Ono (2023) with two changes. The signal-to-noise ratio is
measured, and the exponent has eta^2: under pure noise, eta then falls like n^(-1/2), as averages of iterates need it.

Values are measured by their mean deviation from the median in the same generation.
"""

from __future__ import annotations

from math import ceil, exp
from typing import Any, NamedTuple

import numpy as np

from poem_cma._types import Array

__all__ = ["Noise", "averaged", "begin", "passed", "repeated", "rules", "seen", "share", "update"]

#: Memory of the noise measurement, and its minimum, in repetitions.
MEMORY, NEEDED = 10.0, 3.0
#: Memory of the size of values, in generations. It is short because the size follows the step size.
RECENT = 5.0
#: Noise rules above this share of the squared differences.
RULES = 0.5
#: A learning rate of one changes by at most this fraction in a measurement (published default).
GAMMA = 0.1
#: Differences, and sizes of generations, beyond this multiple of typical ones are cut as outliers.
CUT = 3.0
#: Unless noise rules, repeated evaluations take at most this share of the others.
COST = 0.2
#: Without any noise, a pair is repeated once in so many generations at the least.
SELDOM = 64


class Noise(NamedTuple):
    """What the repeated pairs say."""

    seen: float = 0.0  # decayed number of repetitions,
    both: float = 0.0  # and sums of the means of D D',
    all: float = 0.0  # and of (D^2 + D'^2) / 2
    rate: float = 1.0  # eta
    clean: int = 0  # repetitions in a row without any noise
    wait: int = 0  # generations until the next one
    size: float = 0.0  # mean deviation of values from their median, in recent generations


def begin() -> Noise:
    """Nothing is known."""
    return Noise()


def repeated(noise: Noise, pairs: int) -> int:
    """How many of the pairs of a generation are evaluated again: all where noise rules, else one now and then."""
    return pairs if rules(noise) else int(noise.wait == 0)


def share(noise: Noise) -> float:
    """The share of the squared differences that is noise."""
    if noise.seen < NEEDED or not 0.0 < noise.all < np.inf:
        return 0.0
    return float(np.clip(1.0 - noise.both / noise.all, 0.0, 1.0))


def rules(noise: Noise) -> bool:
    """Whether noise rules now."""
    return share(noise) > RULES


def deviation(F: Array) -> float:
    """The mean deviation of values from their median; NaN where none is known."""
    known = F[np.isfinite(F)]
    return float(np.mean(np.abs(known - np.median(known)))) if len(known) else np.nan


def seen(noise: Noise, F: Array) -> Noise:
    """The record with the values of another generation. A generation of outliers counts as CUT usual ones."""
    size = deviation(F)
    if not size > 0.0:
        return noise
    before = noise.size or size
    return noise._replace(size=before + (min(size, CUT * before) - before) / RECENT)


def passed(noise: Noise) -> Noise:
    """After a generation in which no pair was repeated."""
    return noise._replace(wait=noise.wait - 1)


def averaged(F: Array, G: Array) -> Array:
    """The means of values on two xi's; of the one that is known, if the other evaluation has failed."""
    return np.where(np.isfinite(F), np.where(np.isfinite(G), 0.5 * F + 0.5 * G, F), G)


def update(noise: Noise, F: Array, places: Any, again: Array) -> Noise:
    """With the values of a generation, and with those at some places, one side of pairs before the other, once more.

    Differences are measured by the size of the values: that falls as the search converges, and the first generations
    would outweigh all others.
    """
    half, size = len(again) // 2, deviation(F)
    D, E = ((G[:half] - G[half:]) / size for G in (F[places], again))
    known = np.isfinite(D + E)
    D, E = D[known], E[known]
    if not len(D):
        return noise
    clean = noise.clean + 1 if (np.abs(D - E) <= 1e-9 * np.maximum(np.abs(D), np.abs(E))).all() else 0
    if noise.all > 0.0:
        most = CUT * np.sqrt(noise.all / noise.seen)
        D, E = np.clip(D, -most, most), np.clip(E, -most, most)
    keep = 1.0 - 1.0 / MEMORY
    noise = noise._replace(
        seen=keep * noise.seen + 1.0,
        both=keep * noise.both + float(np.mean(D * E)),
        all=keep * noise.all + 0.5 * float(np.mean(D * D + E * E)),
        clean=clean,
        wait=min(2 ** max(clean - 2, 0), SELDOM) - 1,
    )
    if noise.seen >= NEEDED and not clean:
        noise = noise._replace(wait=ceil(2.0 / (COST * len(F))) - 1)
    return noise._replace(rate=_learning_rate(noise))


def _learning_rate(noise: Noise) -> float:
    """The next learning rate."""
    noisy = share(noise)
    more = min(max((1.0 - noisy) / max(noisy * noise.rate, 1e-300) - 1.0, -1.0), 1.0)
    return min(1.0, noise.rate * exp(GAMMA * noise.rate**2 * more))
