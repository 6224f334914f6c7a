"""A step in flight: the probes of its present stage, and what has been told of them."""

from __future__ import annotations

from typing import Any

__all__ = ["Lane"]


class Lane:
    """Most runs have one. With `ahead` steps asked before the one under way is complete, there are as many more."""

    __slots__ = (
        "bases", "calls", "complete", "first", "next", "randoms", "repeats", "sizes", "state", "values",
        "waiting",
    )  # fmt: skip

    def __init__(self, state: Any, randoms: Any) -> None:
        self.state = state  # from which it is asked
        self.randoms = randoms
        self.calls = 0  # told of this step
        self.complete = False  # waiting for an earlier step, with all its values

    def open(self, sizes: list[int], first: int) -> None:
        """A new stage, with probes of so many points, numbered from `first` on."""
        self.sizes = sizes
        self.first = first
        self.waiting = len(sizes)  # probes without an answer
        self.values: list[list[float] | None] = [None] * self.waiting
        self.repeats = 0  # base values that were asked a second time
        self.next = 0
        self.bases: set[int] = set()  # probes whose base value failed and is asked again; none when a stage is closed

    def unasked(self) -> int | None:
        """The next probe of the stage that was not handed out."""
        while (i := self.next) < len(self.values):
            self.next = i + 1
            if self.values[i] is None:
                return i
        return None

    def waits_for(self, i: int, again: bool) -> bool:
        """Whether probe i, or its base asked again, has no values yet."""
        return 0 <= i < len(self.values) and (i in self.bases if again else self.values[i] is None)
