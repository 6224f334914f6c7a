"""How much of a difference is noise? The difference of two points is evaluated once more, on another xi.

If D and D' are the differences on two xi's, E D D' is what both have in common, the change of f, and the rest of
E D^2 is noise: of the sample, or of every evaluation. Where noise rules, the mean moves in shorter and shorter steps,
so that it averages. Then the differences over a quarter of the distance are evaluated, too. If their noise is smaller
in proportion to the squared distance, the step size is free; otherwise shorter distances would only be noisier.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

import numpy as np

from poem_cma._types import Array, Value

__all__ = [
    "QUARTER", "Noise", "begin", "due", "lasts", "learning_rate", "passed", "rules", "seen", "share", "size", "update",
]  # fmt: skip

#: Memory of the noise measurement, and its minimum, in repeated differences.
MEMORY, NEEDED = 10.0, 3.0
#: Memory of the size of values, in generations. It is short because the size follows the step size.
RECENT = 5.0
#: Noise dominates above this share of the squared differences.
DOMINATES = 0.5
#: Steps shrink like 1 / sqrt(1 + n / SLOWLY) after n generations in which noise dominated.
SLOWLY = 5.0
#: Noise lasts if this share of it is left at this fraction of the distance. The share is 1/16 if noise is
#: proportional to the distance, 1/4 if it comes from jumps, 1 if every evaluation has noise of its own.
QUARTER, LASTS = 0.25, 1 / 8
#: Differences beyond this multiple of typical ones are cut as outliers.
CUT = 3.0
#: Once enough differences are known, repeated evaluations take at most this share of the others.
COST = 0.2


class Noise(NamedTuple):
    """What the repeated differences say; all sums are decayed."""

    seen: float  # how many there are
    both: Value  # of D D'
    all: Value  # of (D^2 + D'^2) / 2
    rest: Value  # of (D - D')^2, where the same was seen over the shorter distance,
    short: Value  # and there
    ruled: int  # generations in which noise has ruled
    clean: int  # repeated differences in a row without any noise
    wait: int  # generations until one is repeated
    generations: float = 0.0  # how many there are,
    squares: Value = 0.0  # and the sum of the mean squared deviations of their values


def begin() -> Noise:
    """Nothing is known."""
    return Noise(0.0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0)


def due(noise: Noise) -> bool:
    """Whether a difference is repeated in this generation: always, but less and less often where there is no noise."""
    return noise.wait == 0


def share(noise: Noise) -> float:
    """The share of the squared differences that is noise."""
    if noise.seen < NEEDED or not 0.0 < noise.all < np.inf:
        return 0.0
    return float(np.clip(1.0 - noise.both / noise.all, 0.0, 1.0))


def size(noise: Noise) -> float:
    """The root mean square of the deviations of values in recent generations."""
    return float(np.sqrt(noise.squares / noise.generations)) if noise.generations else 1.0


def seen(noise: Noise, V: Array) -> Noise:
    """The record with another generation, whose values deviate from their mean by V."""
    keep, known = 1.0 - 1.0 / RECENT, V[np.isfinite(V)]
    squares = float(known @ known) / max(len(known), 1)
    if not squares:
        return noise
    return noise._replace(generations=keep * noise.generations + 1.0, squares=keep * noise.squares + squares)


def rules(noise: Noise) -> bool:
    """Whether noise rules now."""
    return share(noise) > DOMINATES


def lasts(noise: Noise) -> bool:
    """Whether noise rules, and would rule even more over shorter distances."""
    return rules(noise) and noise.short > LASTS * noise.rest


def learning_rate(noise: Noise) -> float:
    """The factor of the steps of the mean."""
    return float((1.0 + noise.ruled / SLOWLY) ** -0.5)


def passed(noise: Noise) -> Noise:
    """After a generation in which no difference was repeated."""
    return noise._replace(wait=noise.wait - 1, ruled=noise.ruled + rules(noise))


def update(noise: Noise, first: Array, again: Array, size: int) -> Noise:
    """With the values on a xi and on another one, of two points and, where noise rules, of two points close by.

    A generation has so many samples.
    """
    D, E = np.diff(first)[::2], np.diff(again)[::2]
    if not np.isfinite(D + E).all():
        return noise
    keep = 1.0 - 1.0 / MEMORY
    clean = noise.clean + 1 if abs(D[0] - E[0]) <= 1e-9 * max(abs(D[0]), abs(E[0])) else 0
    if noise.all > 0.0:
        most = CUT * np.sqrt(noise.all / noise.seen)
        D, E = np.clip(D, -most, most), np.clip(E, -most, most)
    noise = noise._replace(
        seen=keep * noise.seen + 1.0,
        both=keep * noise.both + D[0] * E[0],
        all=keep * noise.all + 0.5 * (D[0] ** 2 + E[0] ** 2),
        clean=clean,
        wait=min(2 ** (clean - 2), 64) - 1 if clean > 2 else 0,
    )
    if noise.seen >= NEEDED and not clean:
        noise = noise._replace(wait=ceil((len(first) + len(again) - 2) / (COST * size)) - 1)
    if len(D) > 1:
        noise = noise._replace(
            rest=keep * noise.rest + (D[0] - E[0]) ** 2, short=keep * noise.short + (D[1] - E[1]) ** 2
        )
    return noise._replace(ruled=noise.ruled + rules(noise))
