"""Bounds as text or TOML: a range for each variable, with its name and its kind if they are told."""

from __future__ import annotations

from typing import Any

import numpy as np

from poem_cma.domains.named import Integer, Real
from poem_cma.domains.sets import Box

__all__ = ["EXPECTED", "as_box", "as_nest", "middles", "names_of", "read_bounds"]

EXPECTED = (
    "lower:upper for all variables, or one for each, separated by commas; each may have a name before it and kinds "
    "after it, as in rate=1e-4:1:log,servers=1:20:int"
)

#: What may stand after a range, and the argument of a Box that it sets.
_KINDS = {"int": "integer", "log": "log"}

#: The ranges of some variables as JSON has them: dictionaries with the keys name, lower, upper, integer, log.
Bounds = list[dict[str, Any]]


def read_bounds(value: Any) -> Bounds:
    """From text, from a TOML table of names, or from ``[lower, upper]``, two numbers or two lists."""
    if isinstance(value, dict):
        items = [(name, part.split(":") if isinstance(part, str) else part) for name, part in value.items()]
        bounds = [_range(name, parts) for name, parts in items]
    elif isinstance(value, str):
        pairs = [item.rpartition("=") for item in value.replace(",", " ").split()]
        bounds = [_range(name if sign else None, text.split(":")) for name, sign, text in pairs]
    else:
        sides = [np.atleast_1d(np.array(side, dtype=float)) for side in value]
        lower, upper = np.broadcast_arrays(*sides)
        bounds = [_range(None, pair) for pair in zip(lower.tolist(), upper.tolist(), strict=True)]
    names = {bound["name"] for bound in bounds}
    if not bounds or (names != {None} and (None in names or "" in names or len(names) < len(bounds))):
        raise ValueError
    return bounds


def _range(name: str | None, parts: Any) -> dict[str, Any]:
    lower, upper, *kinds = parts
    if set(kinds) - set(_KINDS) or isinstance(lower, bool) or isinstance(upper, bool):
        raise ValueError
    told = {argument: kind in kinds for kind, argument in _KINDS.items()}
    return {"name": name, "lower": float(lower), "upper": float(upper), **told}


def names_of(bounds: Bounds) -> list[str]:
    """The names of the variables; none if they have none."""
    return [bound["name"] for bound in bounds if bound["name"] is not None]


def middles(bounds: Bounds) -> list[float]:
    """Where a run starts that is told nothing else."""
    kinds = [Integer if bound["integer"] else Real for bound in bounds]
    return [kind(b["lower"], b["upper"], log=b["log"]).start for kind, b in zip(kinds, bounds, strict=True)]


def as_nest(bounds: Bounds, outside: bool) -> dict[str, Box]:
    """Variables with names, as a nest of domains."""
    return {bound["name"]: as_box([bound], outside) for bound in bounds}


def as_box(bounds: Bounds, outside: bool) -> Box:
    """Variables one after another; a single range is that of all."""
    told = {name: [bound[name] for bound in bounds] for name in ("lower", "upper", "integer", "log")}
    if len(bounds) == 1:
        return Box(**{name: values[0] for name, values in told.items()}, outside=outside)
    return Box(**told, outside=outside)
