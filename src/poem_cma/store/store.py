"""The writer of a store: every call as it is answered, every step one transaction, now and then a snapshot."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from poem_cma.optimizer import Optimizer
from poem_cma.run import checkpoint
from poem_cma.run.algorithm import Method
from poem_cma.run.failures import shortened
from poem_cma.store import layout
from poem_cma.store.check import check
from poem_cma.store.documents import read_documents
from poem_cma.store.errors import StoreError
from poem_cma.store.layout import Call
from poem_cma.store.lock import Lock

__all__ = ["NoStore", "Store"]

#: So many calls are told again at most when a run is opened: a second's work.
CALLS_BETWEEN_SNAPSHOTS = 5000

#: A commit that comes later than this after the last one that waited for the disk, waits for it: a power cut costs at
#: most a second of calls. (A killed process costs nothing: what is committed is with the system.)
SECONDS_BETWEEN_SYNCS = 0.9

#: Where the run is, for those who look at it, is written at most so often.
SECONDS_BETWEEN_STATUSES = 0.1


class Store:
    """A store open for writing; the caller has the lock until `close`."""

    def __init__(self, path: Any) -> None:
        self._lock = Lock(Path(path))
        self.path = self._lock.store
        try:
            self.exists = self.path.exists()
            if self.exists:
                check(self.path)
                self._open()
                self.exists = self._begun()
        except BaseException:
            self._lock.close()
            raise

    def _open(self) -> None:
        try:
            self._db = layout.connect(self.path, write=True)
            self._db.execute("PRAGMA synchronous=NORMAL")
        except sqlite3.Error as error:
            raise StoreError(f"{self.path} cannot be opened for writing: {error}") from None
        documents = read_documents(self._db)
        self.settings: dict[str, Any] = documents["settings"]
        self.plan: dict[str, Any] = documents["plan"]
        self.result: dict[str, Any] | None = documents.get("result")
        self.versions: list[str] = documents["versions"]  # of the library that have written it, the last one last
        calls = layout.recent(self._db)
        self.measured = {-1 - c.probe: c for c in calls.values() if c.probe < 0}  # by the number of the sample
        self._known = {key: c for key, c in calls.items() if c.probe >= 0}  # not told, or not since the snapshot
        self._since_snapshot = len(self._known)
        self._calls: list[Call] = []
        self._failures: list[tuple[int, int, int, str]] = []
        self._synced = time.monotonic()
        self._mode = "NORMAL"
        self._status_written = 0.0

    def _begun(self) -> bool:
        """Whether there is a first state. Without it the run that made the file has ended before it began."""
        begun = self._db.execute("SELECT count(*) FROM snapshot").fetchone() != (0,)
        if not begun:
            self._db.close()
        return bool(begun)

    def create(self, settings: dict[str, Any], plan: dict[str, Any], launch: dict[str, Any] | None = None) -> None:
        """Make the file."""
        about = {"settings": settings, "plan": plan, "launch": launch, "versions": [checkpoint.this_version()]}
        layout.create(self.path, about | {"result": None})
        self._open()
        self.exists = True

    # Going on where the run was.

    def load(self, method: Method, domain: Any) -> tuple[Optimizer | None, str | None]:
        """The optimiser of the last snapshot, if there is one, and the first failure before it."""
        row = self._db.execute("SELECT state, remarks, calls FROM snapshot").fetchone()
        if row is None:
            return None, None
        try:
            opt = checkpoint.from_bytes(Optimizer, row[0], str(self.path), method=method, domain=domain)
        except ValueError as error:
            raise StoreError(str(error)) from None
        if opt.nfev != row[2]:
            raise StoreError(f"{self.path} is damaged (its state was told {opt.nfev} calls, and {row[2]} are there)")
        return opt, row[1] or None

    @property
    def replaying(self) -> bool:
        """Whether there are stored calls that the optimiser has not asked for again yet."""
        return bool(self._known)

    def recall(self, probe: int, point: int, place: int) -> Call | None:
        """The stored call, if it was made at this place; it is asked for once."""
        call = self._known.pop((probe, point), None)
        return call if call is not None and call.place == place else None

    def why(self, probe: int, point: int) -> str | None:
        """Why a stored call failed."""
        row = self._db.execute(
            "SELECT text FROM failure WHERE probe = ? AND point = ? ORDER BY attempt DESC LIMIT 1", (probe, point)
        ).fetchone()
        return None if row is None else str(row[0])

    # Writing: `add` and `failed` collect, `commit` writes all of it or nothing.

    def add(self, call: Call) -> None:
        """A call that was answered, or given up."""
        self._calls.append(call)

    def failed(self, probe: int, point: int, attempt: int, why: str) -> None:
        """An attempt that failed."""
        self._failures.append((probe, point, attempt, shortened(why)))

    def commit(self, status: Callable[[], dict[str, Any]]) -> None:
        """Write what was collected: one transaction."""
        self._since_snapshot += len(self._calls)
        now = time.monotonic()
        told = now - self._status_written < SECONDS_BETWEEN_STATUSES
        with _Transaction(self) as db:
            self._write(db, {} if told else {"status": status()})
        self._status_written = self._status_written if told else now

    def note(self, **documents: Any) -> None:
        """Keep documents."""
        with _Transaction(self, sync=True) as db:
            self._write(db, documents)
        for name, value in documents.items():
            setattr(self, name, value)

    def snapshot_due(self) -> bool:
        """Whether telling the calls since the last snapshot again would take long."""
        return self._since_snapshot >= CALLS_BETWEEN_SNAPSHOTS and not self.replaying

    def snapshot(
        self,
        opt: Optimizer,
        first_failure: str | None,
        untold: Collection[int],
        status: dict[str, Any],
        **documents: Any,
    ) -> None:
        """Keep the state; the calls that it has been told of become history. `untold` are the probes in flight."""
        state = checkpoint.to_bytes(opt)
        if self.versions[-1] != (version := checkpoint.this_version()):
            documents["versions"] = [*self.versions, version]
        with _Transaction(self, sync=True) as db:
            self._write(db, {"status": status, **documents})
            rows = db.execute("SELECT probe, point, record, crc FROM call ORDER BY probe, point").fetchall()
            open_still = {row[0] for row in rows if row[0] in untold or row[0] < 0}  # what measured a result stays
            records = b"".join(row[2] for row in rows if row[0] not in open_still)
            db.execute("DELETE FROM call")
            db.executemany("INSERT INTO call VALUES (?, ?, ?, ?)", (row for row in rows if row[0] in open_still))
            if records:
                (last,) = db.execute("SELECT coalesce(max(id), 0) FROM block").fetchone()
                layout.put(db, "block", [(last + 1, records)])
            layout.put(db, "snapshot", [(1, opt.nfev, first_failure or "", state)])
        self._since_snapshot = len(untold)
        for name, value in documents.items():
            setattr(self, name, value)

    def _write(self, db: sqlite3.Connection, documents: dict[str, Any]) -> None:
        layout.put(db, "call", ((c.probe, c.point, layout.pack(c)) for c in self._calls))
        layout.put(db, "failure", self._failures)
        layout.put(db, "document", ((name, json.dumps(value)) for name, value in documents.items()))
        self._calls.clear()
        self._failures.clear()

    def close(self) -> None:
        """Write everything into the one file, and let the next writer in."""
        if self.exists:
            self._db.close()
        self._lock.close()


class _Transaction:
    """All or nothing; waits for the disk now and then, or where `sync` says so."""

    def __init__(self, store: Store, sync: bool = False) -> None:
        self._store = store
        now = time.monotonic()
        self._sync = sync or now - store._synced >= SECONDS_BETWEEN_SYNCS
        if self._sync:
            store._synced = now

    def __enter__(self) -> sqlite3.Connection:
        db = self._store._db
        try:
            mode = "FULL" if self._sync else "NORMAL"
            if mode != self._store._mode:
                db.execute(f"PRAGMA synchronous={mode}")
                self._store._mode = mode
            db.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            raise self._failed(error) from None
        return db

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        db = self._store._db
        try:
            if error is None:
                db.execute("COMMIT")
                return
        except sqlite3.Error as at_commit:
            error = at_commit
        try:
            if db.in_transaction:
                db.execute("ROLLBACK")
        except sqlite3.Error:
            db.close()  # the file takes back by itself what was not committed
        if isinstance(error, sqlite3.Error):
            raise self._failed(error) from None

    def _failed(self, error: sqlite3.Error) -> StoreError:
        return StoreError(
            f"{self._store.path} could not be written ({error}); everything that was written before is kept: "
            f"make room, and the same call goes on from there"
        )


class NoStore:
    """What a run without a store writes to: nothing is kept, nothing is known."""

    exists = False
    replaying = False
    settings: dict[str, Any]

    def __init__(self) -> None:
        self.measured: dict[int, Call] = {}

    def recall(self, probe: int, point: int, place: int) -> Call | None:
        """Nothing."""
        return None

    def why(self, probe: int, point: int) -> str | None:
        """Nothing."""
        return None

    def add(self, call: Call) -> None:
        """Nothing."""

    def failed(self, probe: int, point: int, attempt: int, why: str) -> None:
        """Nothing."""

    def commit(self, status: Callable[[], dict[str, Any]]) -> None:
        """Nothing."""

    def snapshot_due(self) -> bool:
        """Never."""
        return False

    def snapshot(self, *_: Any, **documents: Any) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""
