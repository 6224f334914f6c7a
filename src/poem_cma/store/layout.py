"""What a store looks like inside, and how to tell ours from anything else without running or changing anything.

An SQLite file (application_id "POEM", user_version = VERSION) with five tables:

    document   settings, plan, status, result, launch: JSON by name
    call       recent calls, a row each, as they are answered
    block      older calls, packed a few thousand to a row when a snapshot makes them history
    snapshot   the optimiser as `Optimizer.save` writes it; the calls since then are told to it again
    failure    why calls failed, attempt by attempt

Everything that a run depends on carries a checksum.
"""

from __future__ import annotations

import json
import os
import sqlite3
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from poem_cma.store.errors import StoreError

__all__ = ["RECORD", "VERSION", "Call", "check", "connect", "crc", "create", "documents", "pack", "recent", "unpack"]

APPLICATION = int.from_bytes(b"POEM", "big")
VERSION = 1

_TABLES = {
    "document": "CREATE TABLE document (name TEXT PRIMARY KEY, content TEXT, crc INTEGER) WITHOUT ROWID",
    "call": (
        "CREATE TABLE call (probe INTEGER, point INTEGER, record BLOB, crc INTEGER, PRIMARY KEY (probe, point)) "
        "WITHOUT ROWID"
    ),
    "block": "CREATE TABLE block (id INTEGER PRIMARY KEY, records BLOB, crc INTEGER)",
    "snapshot": "CREATE TABLE snapshot (id INTEGER PRIMARY KEY, calls INTEGER, remarks TEXT, state BLOB, crc INTEGER)",
    "failure": (
        "CREATE TABLE failure (probe INTEGER, point INTEGER, attempt INTEGER, text TEXT, "
        "PRIMARY KEY (probe, point, attempt)) WITHOUT ROWID"
    ),
}


class Call(NamedTuple):
    """One value that was told, or failed (NaN).

    `probe` and `point` say which; the fresh calls that measure the result have probe -1, -2, and so on.
    """

    probe: int
    point: int
    value: float
    seconds: float
    finished: float  # seconds since 1970
    attempts: int
    place: int  # checksum of the point and the number of its sample


_RECORD = struct.Struct("<qidddiI")
RECORD = np.dtype(
    [("probe", "<i8"), ("point", "<i4"), ("value", "<f8"), ("seconds", "<f8"), ("finished", "<f8"),
     ("attempts", "<i4"), ("place", "<u4")]
)  # fmt: skip


def pack(call: Call) -> bytes:
    """A call as a record; many records in a row are an array of dtype RECORD."""
    return _RECORD.pack(*call)


def unpack(record: bytes) -> Call:
    """The call in a record."""
    return Call(*_RECORD.unpack(record))


def crc(content: bytes | str) -> int:
    """The checksum that is kept beside everything."""
    return zlib.crc32(content.encode() if isinstance(content, str) else content)


def create(path: Path, content: dict[str, Any]) -> None:
    """A new store: made under another name, then moved to its place, so that there is never half a store."""
    part = path.with_name(path.name + "-new")
    part.unlink(missing_ok=True)
    try:
        db = sqlite3.connect(part, isolation_level=None)
        try:
            db.execute("PRAGMA journal_mode=WAL")  # from the first moment: no other journal ever lies beside the file
            db.execute(f"PRAGMA application_id={APPLICATION}")
            db.execute(f"PRAGMA user_version={VERSION}")
            db.execute("BEGIN")
            for sql in _TABLES.values():
                db.execute(sql)
            db.executemany("INSERT INTO document VALUES (?, ?, ?)", _rows(content))
            db.execute("COMMIT")
        finally:
            db.close()
        os.replace(part, path)
    except (sqlite3.Error, OSError) as error:
        part.unlink(missing_ok=True)
        raise StoreError(f"{path} cannot be made: {error}") from None


def _rows(content: dict[str, Any]) -> Iterable[tuple[str, str, int]]:
    for name, value in content.items():
        text = json.dumps(value)
        yield name, text, crc(text)


def connect(path: Path, *, write: bool) -> sqlite3.Connection:
    """A connection that runs nothing that the file may bring along."""
    mode = "rw" if write else "ro"
    db = sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None, timeout=10.0)
    db.execute("PRAGMA trusted_schema=OFF")
    db.execute("PRAGMA cell_size_check=ON")
    return db


def check(path: Path) -> None:
    """Raise a StoreError unless the file is an undamaged store of ours, of a version that is read here."""
    _check_header(path)
    try:
        db = connect(path, write=False)
        try:
            _check_content(path, db)
        finally:
            db.close()
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise StoreError(f"{path} is damaged ({error}): restore a copy, or give another store") from None


def _check_header(path: Path) -> None:
    try:
        with open(path, "rb") as file:
            head = file.read(100)
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}") from None
    if not head:
        raise StoreError(f"{path} is empty, not a store: remove it, or give another name")
    if len(head) < 100 or not head.startswith(b"SQLite format 3\x00"):
        raise StoreError(f"{path} is not a store of poem-cma: give another name")
    version, application = (int.from_bytes(head[at : at + 4], "big") for at in (60, 68))
    if application != APPLICATION:
        raise StoreError(f"{path} is a database of another program, not a store of poem-cma: give another name")
    if version != VERSION:
        raise StoreError(
            f"{path} has format version {version}, this library reads version {VERSION}: use the version of "
            f"poem-cma that wrote it"
        )


def _check_content(path: Path, db: sqlite3.Connection) -> None:
    db.execute("BEGIN")  # one view of the file, whatever its writer does meanwhile
    found = db.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise StoreError(f"{path} is damaged ({found.splitlines()[0]}): restore a copy, or give another store")
    schema = {str(name): sql for name, sql in db.execute("SELECT name, sql FROM sqlite_schema")}
    if schema != _TABLES:
        raise StoreError(f"{path} has other tables than a store of poem-cma: give another name")
    for table, column in (("document", "content"), ("call", "record"), ("block", "records"), ("snapshot", "state")):
        for content, checksum in db.execute(f"SELECT {column}, crc FROM {table}"):
            if not isinstance(content, bytes | str) or crc(content) != checksum:
                raise StoreError(f"{path} is damaged (a checksum in {table} is wrong): restore a copy")
    for (length,) in db.execute("SELECT length(records) FROM block"):
        if length % RECORD.itemsize:
            raise StoreError(f"{path} is damaged (a block of calls is cut short): restore a copy")


def documents(db: sqlite3.Connection) -> dict[str, Any]:
    """Settings, plan and what else is kept as JSON."""
    return {name: json.loads(content) for name, content in db.execute("SELECT name, content FROM document")}


def recent(db: sqlite3.Connection) -> dict[tuple[int, int], Call]:
    """The calls since the snapshot."""
    calls = (unpack(record) for (record,) in db.execute("SELECT record FROM call"))
    return {(c.probe, c.point): c for c in calls}
