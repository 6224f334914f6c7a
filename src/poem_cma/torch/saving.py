"""The state of a run in numbers, lists and dictionaries, and back: what a file can hold without code to run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from poem_cma.torch.allocation import Allocation
from poem_cma.torch.log import Log
from poem_cma.torch.sight import Sight
from poem_cma.torch.state import Bend, Move, Pace, Point, State
from poem_cma.torch.watch import Watch

if TYPE_CHECKING:
    from poem_cma.torch.optimizer import Poem

__all__ = ["fitting", "packed", "put_back", "taken", "unpacked"]

_RECORDS: dict[str, Any] = {"bend": Bend, "sight": Sight, "pace": Pace, "watch": Watch}  # parts of a state


def taken(opt: Poem) -> dict[str, Any]:
    """All that a run needs to go on, beside the weights."""
    return {
        "seed": opt.seed,
        "size": opt.engine.size,
        "now": packed(opt.now),
        "log": opt.log.to_bytes(),
        "weights": 0.0 if opt.distance is None else opt.distance.weights,
        "average": None if opt.average is None else opt.average.tensors,
        "x0": None if opt.distance is None else opt.distance.x0,
    }


def fitting(opt: Poem, saved: dict[str, Any] | None) -> dict[str, Any]:
    """What was saved, if it is of an optimizer like this one."""
    if saved is None:
        raise ValueError("this state_dict was not made by Poem")
    dimension = Log.from_bytes(saved["log"]).dimension
    if dimension != opt.layout.dimension:
        raise ValueError(f"saved with {dimension} parameters, but there are {opt.layout.dimension}")
    if (saved["average"] is None) != (opt.average is None) or (saved["x0"] is None) != (opt.distance is None):
        raise ValueError("saved with other settings of average or scale; make the optimizer as it was made then")
    return saved


def put_back(opt: Poem, saved: dict[str, Any]) -> None:
    """Give an optimizer what `taken` took from one like it."""
    opt.seed, opt.log = int(saved["seed"]), Log.from_bytes(saved["log"])
    opt.engine = opt.engine.restored(float(saved["size"]))
    opt.now = unpacked(saved["now"])
    if opt.average is not None:
        opt.average.load(saved["average"])
    if opt.distance is not None:
        opt.distance.weights = float(saved["weights"])
        for mine, kept in zip(opt.distance.x0, saved["x0"], strict=True):
            mine.copy_(kept)


def packed(s: State) -> dict[str, Any]:
    """The state as a dictionary."""
    kept = s._asdict()
    kept["moves"] = [[m.point.first, list(m.point.coefficients), list(m.point.shape), m.fall] for m in s.moves]
    for name in _RECORDS:
        kept[name] = {k: list(v) if isinstance(v, tuple) else v for k, v in kept[name]._asdict().items()}
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
    records = {
        name: kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in kept[name].items()})
        for name, kind in _RECORDS.items()
    }
    return State(**{**kept, **records, "moves": moves, "allocation": allocation})
