"""Is a file an undamaged store of ours? Nothing in it is run, and nothing is changed."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from poem_cma.store.documents import check_documents, read_documents
from poem_cma.store.errors import StoreError
from poem_cma.store.layout import APPLICATION, RECORD, TABLES, VERSION, connect, crc, unpack

__all__ = ["check"]

#: Python's type of each kind of column.
_TYPES = {"INTEGER": int, "TEXT": str, "BLOB": bytes}

#: What keeps SQLite from opening a file, whatever is in it: permissions, locks, limits of the system.
_CANNOT_OPEN = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_BUSY)


def check(path: Path) -> None:
    """Raise a StoreError unless the file is an undamaged store of ours, of a version that is read here."""
    _check_header(path)
    try:
        db = connect(path, write=False)
        try:
            _check_content(path, db)
        finally:
            db.close()
    except StoreError:
        raise
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _CANNOT_OPEN:
            raise StoreError(
                f"{path} cannot be opened ({error}): where its folder cannot be written, copy it, and {path.name}-wal "
                f"with it, to another one"
            ) from None
        raise _damaged(path, str(error)) from None
    except Exception as error:  # whatever a file made by somebody else may lead to
        raise _damaged(path, str(error) or type(error).__name__) from None


def _damaged(path: Path, how: str) -> StoreError:
    return StoreError(f"{path} is damaged ({how}): restore a copy, or give another store")


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
        raise _damaged(path, found.splitlines()[0])
    schema = {str(name): sql for name, sql in db.execute("SELECT name, sql FROM sqlite_schema")}
    if schema != TABLES:
        raise StoreError(f"{path} has other tables than a store of poem-cma: give another name")
    rows = {table: _check_rows(path, db, table) for table in TABLES}
    documents = read_documents(db)
    check_documents(documents)
    if not rows["snapshot"] and (rows["call"] or rows["block"] or documents.get("result")):
        raise ValueError("its snapshot is missing")
    (packed,) = db.execute("SELECT coalesce(sum(length(records)), 0) FROM block").fetchone()
    (told,) = db.execute("SELECT coalesce(sum(calls), 0) FROM snapshot").fetchone()
    if packed != told * RECORD.itemsize:
        raise ValueError(f"its snapshot was told {told} calls, and {packed // RECORD.itemsize} are there")


def _check_rows(path: Path, db: sqlite3.Connection, table: str) -> int:
    """How many rows a table has, each of which has its checksum, and values of the right types."""
    types = [_TYPES[kind] for _, _, kind, *_ in db.execute(f"PRAGMA table_info({table})")]
    rows = 0
    for *row, checksum in db.execute(f"SELECT * FROM {table}"):
        rows += 1
        if crc(*row) != checksum:
            raise _damaged(path, f"a checksum in {table} is wrong")
        if not all(map(isinstance, row, types)) or not _fits(table, row):
            raise _damaged(path, f"a row of {table} makes no sense")
    return rows


def _fits(table: str, row: list[Any]) -> bool:
    """Whether what is packed in a row can be unpacked."""
    if table == "block":
        return len(row[1]) % RECORD.itemsize == 0
    if table == "call":
        return len(row[2]) == RECORD.itemsize and unpack(row[2])[:2] == tuple(row[:2])
    return True
