"""What a store looks like inside.

An SQLite file (application_id "POEM", user_version = VERSION) with five tables:

    document   settings, plan, status, result, launch, versions: JSON by name
    call       recent calls, a row each, as they are answered; and those that measured a result
    block      older calls, packed a few thousand to a row when a snapshot makes them history
    snapshot   the optimiser as `Optimizer.save` writes it; the calls since then are told to it again
    failure    why calls failed, attempt by attempt

Every row carries a checksum of all that is in it.
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
from poem_cma.store.files import forget_logs, replacing

__all__ = ["RECORD", "TABLES", "VERSION", "Call", "connect", "crc", "create", "pack", "put", "recent", "unpack"]

APPLICATION = int.from_bytes(b"POEM", "big")
VERSION = 2

TABLES = {
    "document": "CREATE TABLE document (name TEXT PRIMARY KEY, content TEXT, crc INTEGER) WITHOUT ROWID",
    "call": (
        "CREATE TABLE call (probe INTEGER, point INTEGER, record BLOB, crc INTEGER, PRIMARY KEY (probe, point)) "
        "WITHOUT ROWID"
    ),
    "block": "CREATE TABLE block (id INTEGER PRIMARY KEY, records BLOB, crc INTEGER)",
    "snapshot": "CREATE TABLE snapshot (id INTEGER PRIMARY KEY, calls INTEGER, remarks TEXT, state BLOB, crc INTEGER)",
    "failure": (
        "CREATE TABLE failure (probe INTEGER, point INTEGER, attempt INTEGER, text TEXT, crc INTEGER, "
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
    place: int  # checksum of the point, rounded, and of the number of its sample


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


def crc(*columns: Any) -> int:
    """The checksum of a row, from all its other columns."""
    checksum = 0
    for column in columns:
        checksum = zlib.crc32(column if isinstance(column, bytes) else repr(column).encode(), checksum)
    return checksum


def create(path: Path, content: dict[str, Any]) -> None:
    """A new store, which comes to its place whole: there is never half a store."""
    try:
        with replacing(path) as part:
            db = sqlite3.connect(part, isolation_level=None)
            try:
                db.execute("PRAGMA journal_mode=WAL")  # from the first moment: no other journal ever lies beside it
                db.execute(f"PRAGMA application_id={APPLICATION}")
                db.execute(f"PRAGMA user_version={VERSION}")
                db.execute("BEGIN")
                for sql in TABLES.values():
                    db.execute(sql)
                put(db, "document", ((name, json.dumps(value)) for name, value in content.items()))
                db.execute("COMMIT")
            finally:
                db.close()
            forget_logs(path)  # of a store that was removed without them
    except (sqlite3.Error, OSError) as error:
        raise StoreError(f"{path} cannot be made: {error}") from None


def put(db: sqlite3.Connection, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
    """Write rows, each with its checksum, in the place of those with the same key."""
    sealed = [(*row, crc(*row)) for row in rows]
    if sealed:
        places = ", ".join("?" * len(sealed[0]))
        db.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({places})", sealed)


def connect(path: Path, *, write: bool) -> sqlite3.Connection:
    """A connection that runs nothing that the file may bring along."""
    mode = "mode=rw" if write else "mode=ro" if _can_have_logs(path) else "immutable=1"
    db = sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, isolation_level=None, timeout=10.0)
    db.execute("PRAGMA trusted_schema=OFF")
    db.execute("PRAGMA cell_size_check=ON")
    return db


def _can_have_logs(path: Path) -> bool:
    """Whether SQLite finds a log, or can make one; a file in a folder that cannot be written is whole without."""
    log = path.with_name(path.name + "-wal")
    return os.access(path.parent, os.W_OK) or log.exists()


def recent(db: sqlite3.Connection) -> dict[tuple[int, int], Call]:
    """The calls since the snapshot."""
    calls = (unpack(record) for (record,) in db.execute("SELECT record FROM call"))
    return {(c.probe, c.point): c for c in calls}
