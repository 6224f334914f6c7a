"""Probes handed out a point at a time, for frameworks that ask for one point and tell one value."""

from __future__ import annotations

from collections import deque
from collections.abc import Container
from math import nan
from typing import NamedTuple

from poem_cma._types import Array
from poem_cma.optimizer import Optimizer
from poem_cma.run.algorithm import Probe
from poem_cma.run.in_flight import budget_of, change_budget

__all__ = ["Key", "Points"]


class Key(NamedTuple):
    """The name of a point: its probe, and its row there."""

    probe: int
    row: int


class Points:
    """What an optimiser asks, point by point; values may come in any order, twice, never, or before they are asked.

    A value that comes early, from another process that is ahead of this one, is kept until its point is asked. Of two
    values for a point the first counts. With `open_end` a budget that is spent is doubled.
    """

    def __init__(self, opt: Optimizer, open_end: bool = False) -> None:
        self.opt = opt
        self._open_end = open_end
        self._probes: dict[int, Probe] = {}  # those without all of their values
        self._values: dict[int, list[float]] = {}
        self._waiting: dict[Key, None] = {}  # points without a value, the one that was handed out longest ago first
        self._queue: deque[Key] = deque()  # points not handed out here
        self._early: dict[Key, float] = {}
        self._last = -1  # the largest number of a probe that was asked
        self._repeated: set[int] = set()  # probes that were asked out of turn, for a value that failed, and are told

    def fresh(self, taken: Container[Key] = ()) -> Key | None:
        """A point that was not handed out; None where all values asked for must be told first, or the run is over."""
        while True:
            while self._queue:
                key = self._queue.popleft()
                if key in self._waiting and key not in taken:
                    return self._handed_out(key)
            if not self._ask():
                return None

    def settle(self) -> None:
        """Ask for the points whose values came early, as far as that goes."""
        while self._early and self._ask():
            pass

    def again(self) -> Key | None:
        """The point that has been waiting longest; None where none is."""
        key = next(iter(self._waiting), None)
        return None if key is None else self._handed_out(key)

    def point(self, key: Key) -> Array:
        """Where it is."""
        row: Array = self._probes[key.probe].points[key.row]
        return row

    def sample(self, key: Key) -> int:
        """The number of its xi: points with equal numbers share it."""
        return self._probes[key.probe].numbers[key.row]

    def tell(self, key: Key, value: float) -> None:
        """The value of a point, NaN where it failed; ignored if it has one."""
        if key in self._waiting:
            self._take(key, value)
        elif key.probe > self._last or (key.probe & 1 and key.probe not in self._repeated):
            self._early.setdefault(key, value)

    def _ask(self) -> bool:
        """One probe more; False where all values asked for must be told first, or the run is over."""
        probe = self.opt.ask()
        if probe is None and self._open_end and self.opt.done and not self._waiting:
            change_budget(self.opt, 2 * budget_of(self.opt))
            probe = self.opt.ask()
        if probe is not None:
            self._add(probe)
        return probe is not None

    def _handed_out(self, key: Key) -> Key:
        self._waiting[key] = self._waiting.pop(key)  # to the end
        return key

    def _add(self, probe: Probe) -> None:
        self._last = max(self._last, probe.id)
        self._probes[probe.id] = probe
        self._values[probe.id] = [nan] * len(probe.points)
        keys = [Key(probe.id, row) for row in range(len(probe.points))]
        self._waiting.update(dict.fromkeys(keys))
        self._queue.extend(keys)
        for key in keys:
            if key in self._early:
                self._take(key, self._early.pop(key))

    def _take(self, key: Key, value: float) -> None:
        del self._waiting[key]
        values = self._values[key.probe]
        values[key.row] = value
        if not any((key.probe, row) in self._waiting for row in range(len(values))):
            del self._values[key.probe]
            if key.probe & 1:
                self._repeated.add(key.probe)
            self.opt.tell(self._probes.pop(key.probe), values)
