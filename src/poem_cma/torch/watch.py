"""Never up: if losses on fresh batches rise beyond their noise, the run goes back and takes shorter steps.

The losses at the weights of the last steps are compared, half of a window against the half before it, for windows of
several lengths: a long one sees a slow rise. The steps of the later half are taken back, which needs no copy of the
weights, because a step is known by the numbers of its directions.
"""

from __future__ import annotations

from math import isfinite, nan, sqrt
from typing import NamedTuple

__all__ = ["HELD", "Watch", "rising", "seen"]

#: Lengths of the windows, in steps.
_WINDOWS = 32, 64, 128, 256
#: Steps that can be taken back: half of the longest window.
HELD = _WINDOWS[-1] // 2
#: Steps between two comparisons.
_EVERY = 16
#: Standard errors that make a rise sure: of some hundred comparisons in a run, noise alone must pass none.
_SURE = 4.0


class Watch(NamedTuple):
    """The losses at the weights, each on a fresh batch."""

    losses: tuple[float, ...] = ()  # since the run last went back, the latest last
    number: int = 0  # of all losses so far
    value: float = nan  # smoothed
    spread: float = 0.0  # mean deviation


def seen(watch: Watch, loss: float) -> Watch:
    """After one more loss."""
    return watch._replace(losses=(*watch.losses, loss)[-_WINDOWS[-1] :], number=watch.number + 1)


def rising(watch: Watch) -> int:
    """How many steps to go back: none, unless the later half of a window is surely higher than the earlier half."""
    if watch.number % _EVERY:
        return 0
    for window in _WINDOWS:
        half = window // 2
        if len(watch.losses) >= window and _higher(watch.losses[-window:-half], watch.losses[-half:]):
            return half
    return 0


def _higher(before: tuple[float, ...], after: tuple[float, ...]) -> bool:
    """Whether the mean has risen by more than so many standard errors."""
    n = len(before)
    a, b = sum(before) / n, sum(after) / n
    squares = sum((v - a) ** 2 for v in before) + sum((v - b) ** 2 for v in after)
    return isfinite(b) and b - a > _SURE * sqrt(squares / (n - 1) / n)
