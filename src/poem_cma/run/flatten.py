"""Nested records (named tuples) as flat tables of numbers, strings and arrays under dotted names, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["flatten", "restore"]

#: Under these names stand the kind of a nested record, and the length of a tuple.
_KIND, _LENGTH = "kind", "length"


def flatten(record: Any, leave_out: tuple[str, ...] = ()) -> dict[str, Any]:
    """The leaves of a record by dotted names, but for some of its fields.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> class Point(NamedTuple):
    ...     x: float
    ...     y: float
    >>> class Segment(NamedTuple):
    ...     a: Point
    ...     marks: tuple[int, ...]
    >>> flatten(Segment(Point(1.0, 2.0), (3,)))
    {'a.kind': 'Point', 'a.x': 1.0, 'a.y': 2.0, 'marks.length': 1, 'marks.0': 3}
    """
    leaves: dict[str, Any] = {}
    for name, value in record._asdict().items():
        if name not in leave_out:
            leaves |= _leaves(name, value)
    return leaves


def _leaves(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, tuple):
        return {name: value}
    if hasattr(value, "_fields"):
        inner = {_KIND: type(value).__name__, **flatten(value)}
    else:
        inner = {_LENGTH: len(value)}
        for i, one in enumerate(value):
            inner |= _leaves(str(i), one)
    return {f"{name}.{k}": v for k, v in inner.items()}


def restore(leaves: Mapping[str, Any], kinds: Mapping[str, type]) -> dict[str, Any]:
    """The fields of a record from what `flatten` made of it; `kinds` are the nested records that may occur, by name.

    A field that is not there takes its default.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> class Point(NamedTuple):
    ...     x: float
    ...     y: float = 0.0
    >>> restore({"a.kind": "Point", "a.x": 1.0, "marks.length": 1, "marks.0": 3}, {"Point": Point})
    {'a': Point(x=1.0, y=0.0), 'marks': (3,)}
    """
    fields: dict[str, Any] = {}
    nested: dict[str, dict[str, Any]] = {}
    for name, value in leaves.items():
        first, dot, rest = name.partition(".")
        if dot:
            nested.setdefault(first, {})[rest] = value
        else:
            fields[first] = value
    for name, inner in nested.items():
        if _KIND in inner:
            kind = inner.pop(_KIND)
            if kind not in kinds:
                raise ValueError(f"it holds a record of an unknown kind, {kind!r}")
            fields[name] = kinds[kind](**restore(inner, kinds))
        else:
            length = inner.pop(_LENGTH)
            parts = restore(inner, kinds)
            fields[name] = tuple(parts[str(i)] for i in range(length))
    return fields
