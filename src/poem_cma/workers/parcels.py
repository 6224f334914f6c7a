"""How many calls travel to a worker together.

A call on its own costs a worker the way there and back. Several in one parcel share it, but those in a parcel wait for
each other: if they take unequally long, one worker is late while others are idle. Between the two, Kruskal and Weiss
(Allocating independent subtasks on parallel processors, 1985) take parcels of

    k = (sqrt(2) N h / (sigma P sqrt(log P)))^(2/3)

calls, where there are N calls for P workers, h is the cost of a parcel and sigma the spread of a call's time. Both are
measured as the run goes. Calls that take equally long are shared out evenly. What a run returns does not depend on it.
"""

from __future__ import annotations

from math import ceil, inf, log, sqrt

__all__ = ["Parcels"]

#: A parcel is about so many seconds of work at most, so that little is lost with a worker and a stop is soon heard;
SECONDS = 0.25

#: and so many calls,
CALLS = 64

#: and its points have so many coordinates (a megabyte).
NUMBERS = 2**17

#: Calls take equally long if their times are within this share of their mean, on average: less is the machine's doing.
EQUAL = 0.1

#: Where each answer leads to new calls, and workers have the next parcel before they need it, few are enough.
_IN_A_STREAM = 4

#: The means remember about so many calls.
MEMORY = 30

#: So many calls travel alone after a parcel was lost: the function may be one that hangs or kills.
ALONE_AFTER_A_LOSS = 100


class Parcels:
    """What was measured, and the size that follows from it."""

    def __init__(self, timeout: float | None, together: bool, steady: bool = False) -> None:
        self._together = together
        self._steady = steady  # whether each answer leads to new calls, or all of a step are awaited first
        self._seconds = min(SECONDS, inf if timeout is None else 0.25 * timeout)
        self._calls = 0  # measured so far
        self._mean = self._spread = 0.0  # of a call's time: mean, and mean distance from it (few outliers count little)
        self._cost = 0.0  # of a parcel: seconds between start and answer in which no call was made
        self._alone = MEMORY  # so many calls to go until parcels can be made
        self.numbers = 1  # coordinates of a call's points

    def note(self, seconds: list[float], elapsed: float) -> None:
        """A parcel was answered: how long each of its calls took, and how long the whole."""
        for each in seconds:
            self._calls += 1
            share = 1.0 / min(self._calls, MEMORY)
            off = each - self._mean if self._calls > 1 else 0.0
            self._mean += share * (each - self._mean)
            self._spread += share * (abs(off) - self._spread)
        share = min(1.0, len(seconds) / min(self._calls, MEMORY))
        self._cost += share * (max(0.0, elapsed - sum(seconds)) - self._cost)
        self._alone = max(0, self._alone - len(seconds))

    def lost(self) -> None:
        """A parcel of several calls was not answered."""
        self._alone = ALONE_AFTER_A_LOSS

    @property
    def moment(self) -> float:
        """A while that is short beside a call, in seconds."""
        return min(0.25 * self._mean, 0.01)

    @property
    def most(self) -> int:
        """Calls that a parcel may hold."""
        if not self._together or self._alone:
            return 1
        usual = self._mean + self._spread
        return max(1, min(CALLS, NUMBERS // self.numbers, int(self._seconds / usual) if usual else CALLS))

    def size(self, waiting: int, away: int, idle: int, workers: int) -> int:
        """Of the next parcel, where so many calls wait and so many are away, and so many of all workers are idle."""
        share = min(ceil(waiting / idle), ceil((waiting + away) / workers))  # those that are not idle will be soon
        if self._steady:
            return min(ceil((waiting + away) / workers), _IN_A_STREAM, self.most)
        if share == 1 or (most := self.most) == 1:
            return 1
        if self._spread <= EQUAL * self._mean:
            return min(share, most)
        unequal = self._spread * workers * sqrt(log(max(2, workers)))
        best: float = (sqrt(2.0) * (waiting + away) * self._cost / unequal) ** (2.0 / 3.0)
        return max(1, min(share, most, round(min(best, CALLS))))
