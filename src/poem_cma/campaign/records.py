"""Cells whose result is a few numbers and lists: one JSON file each, which people can read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from poem_cma.campaign.cells import Cell, header, matches, write_text

__all__ = ["finished", "load", "save"]


def save(folder: Path, cell: Cell, result: Mapping[str, Any]) -> None:
    """Write a finished cell; NaN and infinity have no place in JSON."""
    about = header(cell) | {"result": dict(result)}
    write_text(cell.files(folder)[1], json.dumps(about, sort_keys=True, allow_nan=False) + "\n")


def finished(folder: Path, cell: Cell) -> bool:
    """Whether the cell's file is there, whole, and made with these settings by these versions."""
    return load(folder, cell) is not None


def load(folder: Path, cell: Cell) -> dict[str, Any] | None:
    """The result of a finished cell, or None."""
    try:
        found = json.loads(cell.files(folder)[1].read_bytes())
        if matches(cell, found) and isinstance(found["result"], dict):
            return found["result"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    return None
