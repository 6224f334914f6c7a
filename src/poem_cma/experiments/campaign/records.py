"""Cells whose result is a few numbers and lists: one JSON file each, which people can read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from poem_cma.experiments.campaign.cells import Cell, header, matches, write_text

__all__ = ["finished", "load", "save"]


def save(folder: Path, cell: Cell, result: Mapping[str, Any]) -> None:
    """Write a finished cell; NaN and infinity have no place in JSON.

    What the result says under ``time`` has a file of its own, so that the cell's file is the same in every run.
    """
    path = cell.files(folder)[1]
    rest = dict(result)
    if (taken := rest.pop("time", None)) is not None:
        write_text(_times(path), json.dumps(taken, sort_keys=True, allow_nan=False) + "\n")
    write_text(path, json.dumps(header(cell) | {"result": rest}, sort_keys=True, allow_nan=False) + "\n")


def _times(path: Path) -> Path:
    return path.with_suffix(".time")


def finished(folder: Path, cell: Cell) -> bool:
    """Whether the cell's file is there, whole, and made with these settings by these versions."""
    return load(folder, cell) is not None


def load(folder: Path, cell: Cell) -> dict[str, Any] | None:
    """The result of a finished cell, or None."""
    try:
        path = cell.files(folder)[1]
        found = json.loads(path.read_bytes())
        if matches(cell, found) and isinstance(found["result"], dict):
            taken = {"time": json.loads(_times(path).read_bytes())} if _times(path).exists() else {}
            return found["result"] | taken
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    return None
