"""Looking at a store, also while a run writes it: nothing is changed, nothing is run."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np

from poem_cma.optimizer import Optimizer
from poem_cma.run import checkpoint
from poem_cma.store import layout
from poem_cma.store.check import check
from poem_cma.store.documents import read_documents
from poem_cma.store.errors import StoreError
from poem_cma.store.files import forget_logs, replacing
from poem_cma.store.lock import Lock

__all__ = ["View"]


class View:
    """What a store holds at one moment."""

    def __init__(self, path: Any, *, verify: bool = True) -> None:
        self.path = Path(path)
        if verify:
            check(self.path)
        try:
            self._db = layout.connect(self.path, write=False)
            self._db.execute("BEGIN")
            documents = read_documents(self._db)
        except sqlite3.Error as error:
            raise StoreError(f"{self.path} cannot be read: {error}") from None
        self.settings: dict[str, Any] = documents["settings"]
        self.plan: dict[str, Any] = documents["plan"]
        self.launch: dict[str, Any] | None = documents.get("launch")
        self.status: dict[str, Any] = documents.get("status") or {}
        self.result: dict[str, Any] | None = documents.get("result")
        self.versions: list[str] = documents["versions"]

    @property
    def measured(self) -> int:
        """How many calls have measured a result."""
        return int(self._db.execute("SELECT count(*) FROM call WHERE probe < 0").fetchone()[0])

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    def __enter__(self) -> View:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def calls(self) -> Any:
        """All calls as an array of dtype `layout.RECORD`, in the order of their numbers; NaN for the failed ones."""
        parts = [row[0] for row in self._db.execute("SELECT records FROM block ORDER BY id")]
        parts += [row[0] for row in self._db.execute("SELECT record FROM call ORDER BY probe, point")]
        calls = np.frombuffer(b"".join(parts), dtype=layout.RECORD)
        return calls[np.lexsort((calls["point"], calls["probe"]))]

    def failures(self) -> list[tuple[int, int, int, str]]:
        """Probe, point, attempt and reason of every attempt that failed."""
        return self._db.execute(
            "SELECT probe, point, attempt, text FROM failure ORDER BY probe, point, attempt"
        ).fetchall()

    def copy(self, target: Path) -> None:
        """A copy of the whole store as it is at this moment, in one file; not in the place of one that is written."""
        self._db.execute("COMMIT")
        with contextlib.closing(Lock(target)), replacing(target) as part:
            copy = sqlite3.connect(part)
            try:
                self._db.backup(copy)
            except sqlite3.Error as error:
                raise StoreError(f"{target} could not be written: {error}") from None
            finally:
                copy.close()
            forget_logs(target)

    def optimizer(self) -> Optimizer | None:
        """The optimiser, told everything up to now; None before the first step, or if only its maker can load it."""
        row = self._db.execute("SELECT state FROM snapshot").fetchone()
        if row is None:
            return None
        try:
            opt = checkpoint.from_bytes(Optimizer, row[0], str(self.path))
        except ValueError:
            return None
        known = layout.recent(self._db)
        while (probe := opt.ask()) is not None:
            values = [known.get((probe.id, j)) for j in range(len(probe.points))]
            told = [c.value for c in values if c is not None]
            if len(told) < len(values):
                break
            opt.tell(probe, told)
        return opt
