"""The state of a run in numbers, lists and dictionaries, and back: what a file can hold without code to run."""

from __future__ import annotations

from typing import Any

from poem_cma.torch.allocation import Allocation
from poem_cma.torch.engine import Move, Point, State

__all__ = ["packed", "unpacked"]


def packed(s: State) -> dict[str, Any]:
    """The state as a dictionary."""
    kept = s._asdict()
    kept["moves"] = [[m.point.first, list(m.point.coefficients), list(m.point.shape), m.fall] for m in s.moves]
    a = s.allocation
    kept["allocation"] = (
        None if a is None else {k: list(v) if isinstance(v, tuple) else v for k, v in a._asdict().items()}
    )
    return kept


def unpacked(kept: dict[str, Any]) -> State:
    """The state that `packed` was given."""
    moves = tuple(Move(Point(first, tuple(c), tuple(shape)), fall) for first, c, shape, fall in kept["moves"])
    a = kept["allocation"]
    known: dict[str, Any] = {} if a is None else {k: tuple(v) if isinstance(v, list) else v for k, v in a.items()}
    allocation = Allocation(**known) if known else None
    return State(**{**kept, "moves": moves, "allocation": allocation})
