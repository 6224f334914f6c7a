"""What the JSON documents of a store must hold for a run to go on, and to be shown."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from typing import Any

__all__ = ["check_documents", "read_documents"]

_LARGEST = 1e300  # a longer integer may be none that a float can hold


def read_documents(db: sqlite3.Connection) -> dict[str, Any]:
    """Settings, plan and what else is kept as JSON."""
    return {name: json.loads(content) for name, content in db.execute("SELECT name, content FROM document")}


def check_documents(documents: dict[str, Any]) -> None:
    """Raise a ValueError that names the first part of a document that is missing, or makes no sense."""
    versions = documents.get("versions")
    if not versions or not isinstance(versions, list) or not all(map(_text, versions)):
        raise ValueError("its versions are missing or make no sense")
    for name, parts in _PARTS.items():
        document = documents.get(name)
        if not document and name in _MAY_BE_EMPTY:
            continue
        if not isinstance(document, dict):
            raise ValueError(f"its {name} are missing" if name not in documents else f"its {name} make no sense")
        for part, fits in parts.items():
            if part not in document or not fits(document[part]):
                raise ValueError(f"{part} in its {name} is missing or makes no sense")


def _count(value: Any) -> bool:
    return _number(value) and 0 <= value < _LARGEST and value == int(value)


def _number(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, int) and abs(value) < _LARGEST)


def _anything(_: Any) -> bool:
    return True


def _integer(value: Any) -> bool:
    return isinstance(value, int)


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _numbers(value: Any) -> bool:
    return isinstance(value, list) and all(map(_number, value))


def _or_none(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or fits(value)


_MAY_BE_EMPTY = ("launch", "status", "result")

_PARTS: dict[str, dict[str, Callable[[Any], bool]]] = {
    "settings": {
        "name": _anything, "dimension": _count, "method": _text, "batch": _count, "ahead": _count, "seed": _integer,
    },
    "plan": {"budget": lambda value: _count(value) and value > 0, "final": _count, "measured": _count},
    "launch": {"folder": _text},
    "status": {
        "nfev": _count, "value": _number, "stderr": _number, "distance": _number, "step_size": _number,
        "failures": _count, "busy": _count, "workers": _count, "time": _number,
    },
    "result": {
        "status": _count, "message": _text, "fun": _number, "fun_stderr": _number, "nfev": _count, "failures": _count,
        "target": _or_none(_number), "x": _or_none(_numbers),
    },
}  # fmt: skip
