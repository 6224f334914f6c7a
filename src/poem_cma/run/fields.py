"""What the fields of records may hold, by how they are declared; a file in which one holds anything else is refused.

A plain ``int`` counts something, so it is not negative. A plain ``float`` is a number, perhaps infinite, but not NaN.
An ``Array`` is a vector with a finite number for each variable. Whatever else a field may hold has a name of its own
in `poem_cma._types`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from poem_cma.run.failures import brief

__all__ = ["check"]

#: More no counter can reach.
_MOST = 2**63


def _whole(least: int) -> Callable[[Any, int], bool]:
    return lambda value, _: isinstance(value, int) and not isinstance(value, bool) and least <= value < _MOST


def _number(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, int) and abs(value) < _MOST)


def _real(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "biuf"


def _vector(value: Any, d: int) -> bool:
    return _real(value) and value.shape == (d,) and bool(np.isfinite(value).all())


def _points(value: Any, d: int) -> bool:
    many = _real(value) and (value.size == 0 or (value.ndim == 2 and value.shape[1] == d))
    return many and bool(np.isfinite(value).all())


#: Whether a value fits, with so many variables; and what it has to be.
_RULES: dict[str, tuple[Callable[[Any, int], bool], str]] = {
    "bool": (lambda value, _: isinstance(value, bool), "true or false"),
    "str": (lambda value, _: isinstance(value, str), "a text"),
    "None": (lambda value, _: value is None, "nothing"),
    "int": (_whole(0), "a whole number from 0 up"),
    "Mark": (_whole(-1), "a whole number from -1 up"),
    "float": (lambda value, _: _number(value) and value == value, "a number"),
    "Size": (lambda value, _: _number(value) and value >= 0.0, "a number from 0 up"),
    "Unknown": (lambda value, _: _number(value) and not value < 0.0, "a number from 0 up, or NaN"),
    "Value": (lambda value, _: _number(value), "a number or NaN"),
    "Array": (_vector, "a vector of {d} finite numbers"),
    "Points": (_points, "rows of {d} finite numbers"),
    "IntArray": (
        lambda value, _: _real(value) and value.dtype.kind in "iu" and value.ndim == 1 and bool((value >= 0).all()),
        "whole numbers from 0 up",
    ),
    "Series": (lambda value, _: _real(value) and bool(np.isfinite(value).all()), "finite numbers"),
    "Partial": (lambda value, _: _real(value), "numbers"),
}

_TUPLE, _END = "tuple[", ", ...]"


def check(path: str, value: Any, declaration: str, kinds: Mapping[str, type], d: int) -> Any:
    """The value, or a ValueError that names the part of it that is not as declared; `kinds` are records by name.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> Point = NamedTuple("Point", [("x", "float"), ("steps", "int")])
    >>> check("at", Point(0.5, -3), "Point", {"Point": Point}, 1)
    Traceback (most recent call last):
    ...
    ValueError: at.steps must be a whole number from 0 up, not -3
    """
    names = declaration.split(" | ")
    if not all(name in _RULES or name in kinds or name.startswith(_TUPLE) for name in names):
        return value  # it does not come from the file
    for name in names:
        if name in kinds and type(value) is kinds[name]:
            for field, text in _declared(kinds[name]):
                check(f"{path}.{field}", getattr(value, field), text, kinds, d)
            return value
        if name.startswith(_TUPLE) and type(value) is tuple:
            for i, one in enumerate(value):
                check(f"{path}.{i}", one, name[len(_TUPLE) : -len(_END)], kinds, d)
            return value
        if name in _RULES and _RULES[name][0](value, d):
            return value
    wanted = " or ".join(_RULES[name][1].format(d=d) if name in _RULES else name for name in names)
    raise ValueError(f"{path} must be {wanted}, not {brief(value)}")


def _declared(kind: Any) -> Iterator[tuple[str, str]]:
    """The fields of a record, each with what it may hold."""
    for field, annotation in kind.__annotations__.items():
        text = annotation if isinstance(annotation, str) else getattr(annotation, "__forward_arg__", "")
        yield field, text
