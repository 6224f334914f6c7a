"""Stores that somebody has changed, by a bit or with all checksums right: they are refused, or mean the same."""

from __future__ import annotations

import json
import pathlib
import shutil
import sqlite3
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from runs import bits, finished_store, flaky, run
from typer.testing import CliRunner

from poem_cma.command_line.cli import app
from poem_cma.store import StoreError, View
from poem_cma.store.layout import crc

SETTINGS: dict[str, Any] = {"budget": 200, "name": "a run"}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A store with something in every table."""
    return finished_store(tmp_path_factory.mktemp("finished"), flaky, **SETTINGS)


def opened(path: pathlib.Path) -> tuple[Any, ...]:
    """All that a store says, by every way to look at it; a StoreError, or the exit code 1, where it is refused."""
    with View(path) as view:
        opt = view.optimizer()
        said = (
            view.calls().tobytes(), view.failures(), view.settings, view.plan, view.result, view.launch, view.status,
            None if opt is None else opt.result().x.tobytes(),
        )  # fmt: skip
    for command in (["show"], ["export", "--out", "-"], ["export", "--format", "json", "--out", "-"]):
        result = CliRunner().invoke(app, [command[0], str(path), *command[1:]])
        assert result.exit_code == 0, result.exception
    return (*said, bits(run(flaky, store=path, **SETTINGS)))


def refused(path: pathlib.Path) -> None:
    """By the library and by every command, in one line."""
    for look in (lambda: View(path), lambda: run(flaky, store=path, **SETTINGS)):
        with pytest.raises(StoreError) as caught:
            look()
        assert "damaged" in str(caught.value)
    for command in ("show", "export", "resume"):
        result = CliRunner().invoke(app, [command, str(path)])
        assert result.exit_code == 1
        assert isinstance(result.exception, SystemExit)
        assert len(result.stderr.splitlines()) == 1
        assert result.stderr.startswith("poem-cma: ")


def positions(path: pathlib.Path) -> list[int]:
    """Bytes of all names, texts and numbers in the tables, wherever they are in the file."""
    whole = path.read_bytes()
    with sqlite3.connect(path) as db:
        tables = ("document", "failure", "snapshot", "block", "call")
        rows = [row for table in tables for row in db.execute(f"SELECT * FROM {table}").fetchall()]
    db.close()
    parts = {v.encode() if isinstance(v, str) else v for row in rows for v in row if isinstance(v, str | bytes)}
    found = []
    for part in parts:
        start = whole.find(part) if part else -1
        if start >= 0:
            step = max(1, len(part) // 4)
            found += list(range(start, start + len(part), step))
    return sorted(set(found))


def test_a_flipped_bit_in_any_value_is_noticed(tmp_path: pathlib.Path, finished: pathlib.Path) -> None:
    whole = finished.read_bytes()
    places = positions(finished)
    assert len(places) > 100
    path = tmp_path / "run.db"
    for n, position in enumerate(places):
        flipped = bytearray(whole)
        flipped[position] ^= 1 << n % 8
        path.write_bytes(flipped)
        with pytest.raises(StoreError, match="damaged"):
            View(path).close()


def test_a_flipped_bit_anywhere_is_noticed_or_changes_nothing(tmp_path: pathlib.Path, finished: pathlib.Path) -> None:
    expected = opened(shutil.copy(finished, tmp_path / "whole.db"))
    whole = finished.read_bytes()
    path = tmp_path / "run.db"
    rng = np.random.default_rng(3)
    for position in rng.integers(len(whole), size=60).tolist():
        flipped = bytearray(whole)
        flipped[position] ^= 1 << int(rng.integers(8))
        path.write_bytes(flipped)
        try:
            found = opened(path)
        except StoreError:
            continue
        assert found == expected, position


Change = Callable[[sqlite3.Connection], object]


def document(name: str, **changes: Any) -> Change:
    """Another document, with the right checksum; None removes a part of it."""

    def change(db: sqlite3.Connection) -> None:
        (text,) = db.execute("SELECT content FROM document WHERE name = ?", (name,)).fetchone()
        content = (json.loads(text) or {}) | changes
        text = json.dumps({k: v for k, v in content.items() if v is not REMOVED})
        db.execute("UPDATE document SET content = ?, crc = ? WHERE name = ?", (text, crc(name, text), name))

    return change


REMOVED = object()


def content(name: str, text: str) -> Change:
    """A document that is this text."""
    return lambda db: db.execute("INSERT OR REPLACE INTO document VALUES (?, ?, ?)", (name, text, crc(name, text)))


def row(table: str, *values: Any) -> Change:
    """One row more, or another in the place of one, with the right checksum."""
    places = ", ".join("?" * (len(values) + 1))
    return lambda db: db.execute(f"INSERT OR REPLACE INTO {table} VALUES ({places})", (*values, crc(*values)))


def without(table: str) -> Change:
    return lambda db: db.execute(f"DELETE FROM {table}")


CRAFTED = {
    "no snapshot": without("snapshot"),
    "no older calls": without("block"),
    "calls that were not told": row("block", 900, bytes(44)),
    "no documents": without("document"),
    "no settings": lambda db: db.execute("DELETE FROM document WHERE name = 'settings'"),
    "no plan": lambda db: db.execute("DELETE FROM document WHERE name = 'plan'"),
    "deep": content("settings", "[" * 100_000 + "]" * 100_000),
    "deep status": content("status", '{"a":' * 100_000 + "1" + "}" * 100_000),
    "no JSON": content("plan", "{budget}"),
    "a long number": content("plan", '{"budget": ' + "9" * 5000 + "}"),
    "settings are a list": content("settings", "[]"),
    "settings are empty": content("settings", "{}"),
    "plan is a number": content("plan", "3"),
    "budget is text": document("plan", budget="many"),
    "budget is NaN": document("plan", budget=float("nan")),
    "budget is infinite": document("plan", budget=float("inf")),
    "budget is too long": document("plan", budget=10**400),
    "budget is zero": document("plan", budget=0),
    "measured is missing": document("plan", measured=REMOVED),
    "no versions": lambda db: db.execute("DELETE FROM document WHERE name = 'versions'"),
    "versions are empty": content("versions", "[]"),
    "versions are numbers": content("versions", "[1, 2]"),
    "seed is text": document("settings", seed="three"),
    "method is missing": document("settings", method=REMOVED),
    "result is a text": content("result", '"fine"'),
    "result has no message": document("result", message=REMOVED),
    "result has a value of text": document("result", fun="low"),
    "result has a point of text": document("result", x=["a"]),
    "result has a long value": document("result", fun=10**400),
    "status has no time": document("status", time=REMOVED, nfev=3),
    "status is text": document("status", step_size="small"),
    "launch has no folder": content("launch", '{"target": "a:b"}'),
    "a short call": row("call", 7, 0, b"short"),
    "a long call": row("call", 7, 0, bytes(100)),
    "a call of another place": row("call", 7, 0, bytes(44)),
    "a call of text": row("call", 7, 0, "text"),
    "a call by name": row("call", "seven", 0, bytes(44)),
    "a short block": row("block", 900, b"short"),
    "a block of text": row("block", 900, "x" * 44),
    "a failure of bytes": row("failure", 1, 0, 1, b"\xff"),
    "a failure by name": row("failure", "one", 0, 1, "text"),
    "a snapshot of text": row("snapshot", 1, 3, "", "text"),
    "remarks of bytes": row("snapshot", 1, 3, b"\xff\xff", b"state"),
    "text that is no text": lambda db: db.execute("UPDATE failure SET text = CAST(x'ff00fe' AS TEXT)"),
}  # fmt: skip


@pytest.mark.parametrize("change", CRAFTED.values(), ids=CRAFTED)
def test_a_store_that_makes_no_sense_is_refused_whatever_its_checksums_say(
    tmp_path: pathlib.Path, finished: pathlib.Path, change: Change
) -> None:
    path = pathlib.Path(shutil.copy(finished, tmp_path / "run.db"))
    db = sqlite3.connect(path)
    change(db)
    db.commit()
    db.close()
    before = path.read_bytes()
    refused(path)
    assert path.read_bytes() == before


def test_a_snapshot_that_is_none_is_refused_when_the_run_goes_on(
    tmp_path: pathlib.Path, finished: pathlib.Path
) -> None:
    path = pathlib.Path(shutil.copy(finished, tmp_path / "run.db"))
    db = sqlite3.connect(path)
    (calls,) = db.execute("SELECT calls FROM snapshot").fetchone()
    row("snapshot", 1, calls, "", b"poem-cma optimizer, format 1, sha256 0000")(db)
    db.commit()
    db.close()
    with pytest.raises(StoreError, match="not a usable poem-cma optimizer file"):
        run(flaky, store=path, **SETTINGS)


def test_numbers_of_calls_that_make_no_sense_are_shown_all_the_same(
    tmp_path: pathlib.Path, finished: pathlib.Path
) -> None:
    """Of an unfinished run, whose calls ended at no time."""
    path = pathlib.Path(shutil.copy(finished, tmp_path / "run.db"))
    db = sqlite3.connect(path)
    content("result", "null")(db)
    calls = np.frombuffer(b"".join(r for (r,) in db.execute("SELECT records FROM block").fetchall()), dtype=_record())
    for finish in (np.nan, np.inf, 1e308):
        changed = calls.copy()
        changed["finished"][-50:] = finish
        db.execute("DELETE FROM block")
        row("block", 1, changed.tobytes())(db)
        db.commit()
        assert CliRunner().invoke(app, ["show", str(path)]).exit_code == 0
    db.close()


def _record() -> np.dtype[Any]:
    from poem_cma.store.layout import RECORD

    return RECORD
