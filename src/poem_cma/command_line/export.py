"""`poem-cma export`: every call of a store as CSV, JSON or Parquet, or the store itself as one consistent file."""

from __future__ import annotations

import csv
import json
import sys
from math import isnan
from pathlib import Path
from typing import Any

from poem_cma.command_line.target import CommandError
from poem_cma.store import StoreError, View
from poem_cma.store.files import replacing

__all__ = ["FORMATS", "export"]

FORMATS = ("csv", "json", "parquet", "db")

_BEGINNINGS_OF_FORMULAS = ("=", "+", "-", "@", "\t", "\r")

COLUMNS = ("probe", "point", "value", "seconds", "finished", "attempts", "failure")


def export(store: Path, kind: str, out: Path | None) -> Path | None:
    """Write, also while a run goes on; where to, None for standard output."""
    for path in (store, out):
        if path is not None and (path.is_dir() or not path.name):
            raise CommandError(f"{path} is a folder, not a file")
    target = out if out is not None else store.with_suffix("." + kind)
    if str(target) == "-":
        if kind not in ("csv", "json"):
            raise CommandError(f"{kind} cannot go to standard output: give --out FILE")
    elif target.exists() and target.samefile(store):
        raise CommandError(f"{target} is the store itself: give --out another file")
    try:
        with View(store) as view:
            if str(target) == "-":
                _WRITERS[kind](view, sys.stdout)
                return None
            if kind == "db":
                view.copy(target)
                return target
            with replacing(target) as part:
                if kind == "parquet":
                    _parquet(view, part)
                else:
                    with open(part, "w", newline="", encoding="utf-8") as file:
                        _WRITERS[kind](view, file)
    except StoreError as error:
        raise CommandError(str(error)) from None
    except OSError as error:
        raise CommandError(f"{target} cannot be written: {error.strerror or error}") from None
    return target


def _columns(view: View) -> dict[str, list[Any]]:
    calls = view.calls()
    why = {(probe, point): text for probe, point, _, text in view.failures()}  # the last attempt of each
    columns: dict[str, list[Any]] = {name: calls[name].tolist() for name in COLUMNS[:-1]}
    columns["value"] = [None if isnan(v) else v for v in columns["value"]]
    places = zip(columns["probe"], columns["point"], columns["value"], strict=True)
    columns["failure"] = [why.get((probe, point)) if value is None else None for probe, point, value in places]
    return columns


def _csv(view: View, file: Any) -> None:
    columns = _columns(view)
    columns["failure"] = [None if text is None else _inert(text) for text in columns["failure"]]
    writer = csv.writer(file)
    writer.writerow(COLUMNS)
    writer.writerows(zip(*columns.values(), strict=True))


def _inert(text: str) -> str:
    """A text that a spreadsheet does not take for a formula."""
    return "'" + text if text.startswith(_BEGINNINGS_OF_FORMULAS) else text


def _json(view: View, file: Any) -> None:
    columns = _columns(view)
    calls = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    about = {"settings": view.settings, "plan": view.plan, "status": view.status, "result": view.result}
    json.dump(_without_nan({**about, "calls": calls}), file)


def _without_nan(value: Any) -> Any:
    """JSON has no NaN: null instead."""
    if isinstance(value, dict):
        return {k: _without_nan(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_without_nan(v) for v in value]
    return None if isinstance(value, float) and isnan(value) else value


def _parquet(view: View, path: Path) -> None:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise CommandError('parquet needs pyarrow: pip install "poem-cma[parquet]"') from None
    pyarrow.parquet.write_table(pyarrow.table(_columns(view)), path)


_WRITERS: dict[str, Any] = {"csv": _csv, "json": _json}
