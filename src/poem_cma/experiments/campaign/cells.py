"""Cells: the unit of work, its settings, and its two files.

A cell is finished when its JSON file is there: settings, versions, and the checksum of the arrays beside it. Both
files are written under another name first and moved into place, the JSON last, so a killed run leaves no half of one.
There is no time of day and no path in them: the same settings and arrays give the same bytes.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import scipy

import poem_cma

__all__ = ["Arrays", "Cell", "Compute", "Together", "finished", "header", "load", "matches", "save", "write_text"]

Arrays: TypeAlias = Mapping[str, Any]
Compute: TypeAlias = Callable[[Mapping[str, Any]], Arrays]
#: For settings that differ in their seed alone, each with the bytes that it has by itself.
Together: TypeAlias = Callable[[Sequence[Mapping[str, Any]]], list[Arrays]]

#: Cells of another layout are computed again.
LAYOUT = 1


def _this_version() -> dict[str, str]:
    return {"poem_cma": poem_cma.__version__}


@dataclass(frozen=True)
class Cell:
    """One computation: which, with which settings, about how many seconds it takes, and whose versions it rests on."""

    kind: str
    settings: Mapping[str, Any]
    seconds: float = 1.0
    made_by: Mapping[str, str] = field(default_factory=_this_version)

    @property
    def name(self) -> str:
        """A readable file name, the settings' checksum at its end."""
        words = [str(v) for v in self.settings.values() if isinstance(v, str | int | float)]
        readable = "-".join(words).replace(" ", "").replace("/", "_")[:80]
        return f"{readable}-{hashlib.sha256(_text(self.settings).encode()).hexdigest()[:8]}"

    @property
    def family(self) -> tuple[str, str]:
        """The same for cells that differ in their seed alone."""
        return self.kind, _text({name: v for name, v in self.settings.items() if name != "seed"})

    def files(self, folder: Path) -> tuple[Path, Path]:
        """Where its arrays and its JSON are, or will be."""
        base = folder / "cells" / self.kind / self.name
        return base.with_name(base.name + ".npz"), base.with_name(base.name + ".json")


def save(folder: Path, cell: Cell, arrays: Arrays) -> None:
    """Write a finished cell."""
    data, about = cell.files(folder)
    buffer = io.BytesIO()
    np.savez(buffer, **{name: _plain(name, value) for name, value in sorted(arrays.items())})
    packed = buffer.getvalue()
    _write(data, packed)
    about_it = header(cell) | {"sha256": hashlib.sha256(packed).hexdigest()}
    write_text(about, json.dumps(about_it, indent=1, sort_keys=True) + "\n")


def finished(folder: Path, cell: Cell) -> bool:
    """Whether the cell's files are there, whole, and made with these settings by this version."""
    data, about = cell.files(folder)
    try:
        found = json.loads(about.read_bytes())
        return matches(cell, found) and hashlib.sha256(data.read_bytes()).hexdigest() == found["sha256"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def load(folder: Path, cell: Cell) -> dict[str, Any] | None:
    """The arrays of a finished cell, or None."""
    if not finished(folder, cell):
        return None
    with np.load(cell.files(folder)[0], allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def matches(cell: Cell, found: Mapping[str, Any]) -> bool:
    """Whether a header that was read is this cell's, of the versions it rests on."""
    expected = header(cell)
    same = all(found.get(key) == expected[key] for key in ("layout", "kind", "settings"))
    return same and all(found["versions"].get(name) == made for name, made in cell.made_by.items())


def header(cell: Cell) -> dict[str, Any]:
    """What is written about a cell."""
    versions = {"python": platform.python_version(), "numpy": np.__version__, "scipy": scipy.__version__}
    versions |= cell.made_by
    # Through JSON, so that a tuple written compares equal to the list read.
    settings = json.loads(_text(cell.settings))
    return {"layout": LAYOUT, "kind": cell.kind, "settings": settings, "versions": versions}


def _text(settings: Mapping[str, Any]) -> str:
    return json.dumps(dict(settings), sort_keys=True)


def _plain(name: str, value: Any) -> Any:
    array = np.asarray(value)
    if array.dtype.hasobject:
        raise TypeError(f"{name} would need pickle: {array.dtype}")
    return array


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(content)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def write_text(path: Path, content: str) -> None:
    """A whole text file or none."""
    _write(path, content.encode())
