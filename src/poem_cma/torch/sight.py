"""Over which distance can the loss be seen? By evidence, whatever hides it: rounding, low precision, a noisy kernel.

This is the first question of `auto`: do differences over a short distance predict the change over a long one? On one
batch and along one direction, a slope over mu is now and then compared with a slope over FAR mu. The regression of the
long slope on the short one is near one where short slopes tell the truth. It is lower by the share of noise in them: mu
grows. Where curvature spoils them, long slopes are longer than short ones: mu shrinks. Before the first step, eight
directions are looked at, over distances a factor of FAR apart, until short slopes are trusted.

`auto` has two regimes and asks the question by a gate over a dozen directions at once. Here the distance is continuous
and a test has one direction, so the two share the idea and no code.
"""

from __future__ import annotations

from math import isfinite
from typing import NamedTuple

__all__ = ["EVERY", "FAR", "Sight", "changed", "due", "share", "told", "wish"]

#: A long slope is taken over this multiple of the distance of the short ones.
FAR = 4.0
#: Forward passes for one that serves a test alone.
EVERY = 20
#: The share of the latest test in the means.
_NEW = 0.1
#: Short slopes are trusted if the regression of long ones on them is at least this.
_FOUND = 0.8
#: They are trusted if curvature adds no more than this share to their squares; its mean is taken off them anyway.
_BENT = 0.5
#: A share below this is none: two standard errors of eight tests of pure noise.
_NOTHING = 0.2


class Sight(NamedTuple):
    """What tests have told of slopes over mu and over FAR mu."""

    tests: int = 0
    near: float = 0.0  # mean square of short slopes
    both: float = 0.0  # mean product of a short and a long slope
    far: float = 0.0  # mean square of long slopes


def due(sight: Sight, forwards: int, cost: int) -> bool:
    """Whether a test, which costs so many passes, is affordable."""
    return forwards >= EVERY * cost * (sight.tests + 1)


def told(sight: Sight, near: list[float], far: list[float]) -> Sight:
    """After short and long slopes along the same directions."""
    pairs = [(n, f) for n, f in zip(near, far, strict=True) if isfinite(n) and isfinite(f)]
    sight = sight._replace(tests=sight.tests + 1)
    if not pairs:
        return sight
    new = _NEW if sight.tests > 1 else 1.0  # the scan holds eight pairs
    near2, both, far2 = (sum(x) / len(pairs) for x in zip(*((n * n, n * f, f * f) for n, f in pairs), strict=True))
    return sight._replace(
        near=sight.near + new * (near2 - sight.near),
        both=sight.both + new * (both - sight.both),
        far=sight.far + new * (far2 - sight.far),
    )


def wish(sight: Sight) -> int:
    """1 if slopes should be taken over a longer distance, -1 over a shorter one, 0 if they are trusted."""
    if sight.near == 0.0 or sight.both < _FOUND * sight.near:
        return 1
    bent = (sight.far - 2.0 * sight.both + sight.near) / (FAR - 1.0) ** 2
    return -1 if bent > _BENT * sight.near else 0


def share(sight: Sight) -> float:
    """How much of a squared short slope is signal: steps are shortened by it.

    Short and long slopes have the error of the base in common, which is 1 / (2 FAR) of a short one's noise. A share
    that noise alone would show now and then is none.
    """
    if sight.tests == 0 or sight.near == 0.0:
        return 1.0
    common = 0.5 / FAR
    found = min(1.0, (sight.both / sight.near - common) / (1.0 - common))
    return found if found > _NOTHING else 0.0


def changed(sight: Sight, factor: float) -> Sight:
    """What the same tests would have told, had mu been longer by a factor."""
    spread = sight.far - (FAR + 1.0) * sight.both + FAR * sight.near
    noise = max(0.0, spread / (2.0 * FAR - 1.0 - 1.0 / FAR + 2.0 / FAR**2))  # of one value, as a slope over mu
    apart = sight.far - 2.0 * sight.both + sight.near - noise * (2.0 - 2.0 / FAR + 2.0 / FAR**2)
    bent = max(0.0, apart / (FAR - 1.0) ** 2)
    signal = max(0.0, sight.both - noise / FAR - FAR * bent)
    noise, bent = noise / factor**2, bent * factor**2
    return sight._replace(
        near=signal + 2.0 * noise + bent,
        both=signal + noise / FAR + FAR * bent,
        far=signal + 2.0 * noise / FAR**2 + FAR**2 * bent,
    )
