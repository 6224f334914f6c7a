"""The histories of runs that are advanced together: columns with a number for each run, split at the end."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from poem_cma._types import Array
from poem_cma.history import History, stacked

__all__ = ["JointHistory"]

#: So many steps are put together as one table: their columns, kept one by one, would scatter over the memory.
_STEPS = 64


class JointHistory:
    """What each of the runs would record by itself. Rows of before stay with their run, and stand here by number."""

    def __init__(self, each: list[History]) -> None:
        first = each[0]
        self._each = each
        self._most = first.most
        self._alike = all((own.stride, own.seen, len(own)) == (first.stride, first.seen, len(first)) for own in each)
        self._longest = max(map(len, each))
        self._before = np.arange(len(first))
        self._tables: list[Array] = []  # (steps, n, columns)
        self._rows = len(first)  # of before and in the tables
        self._recent = History(sys.maxsize)  # of columns (n, 1)
        self._recent.stride, self._recent.seen = first.stride, first.seen

    @property
    def full(self) -> bool:
        """Whether one of unequal histories has to be thinned next."""
        return not self._alike and self._longest + self._rows - len(self._before) + len(self._recent.rows) >= self._most

    def record(self, s: Any) -> None:
        """Add a step of all runs."""
        self._recent.record(s)
        steps = len(self._recent.rows)
        if steps == _STEPS or self._rows + steps > self._most:
            self._put_together()

    def split(self) -> None:
        """Give every run its rows."""
        recent = self._recent
        if recent.last is None:
            return
        self._put_together()
        steps = np.concatenate([*self._tables, self._table([recent.last])])
        taken = recent.seen - self._each[0].seen
        for i, own in enumerate(self._each):
            mine = steps[:, i]
            before = own.table()[self._before] if self._alike else own.table()
            own.earlier, own.rows = stacked([before, mine[:-1]]), []
            own.stride, own.seen = recent.stride, own.seen + taken
            own.last = (int(mine[-1, 0]), *mine[-1, 1:].tolist())

    def _put_together(self) -> None:
        """Recent steps as a table; all thinned by half where there are too many, as a history does by itself."""
        rows, self._recent.rows = self._recent.rows, []
        if rows:
            self._tables.append(self._table(rows))
        self._rows += len(rows)
        if self._rows > self._most:
            self._tables = [np.concatenate(self._tables)[len(self._before) % 2 :: 2].copy()]
            self._before = self._before[::2]
            self._rows = len(self._before) + len(self._tables[0])
            self._recent.stride *= 2

    def _table(self, rows: list[Any]) -> Array:
        """Rows whose entries are numbers or columns as a table (rows, n, columns)."""
        return np.stack([self._wide(entries) for entries in zip(*rows, strict=True)], axis=-1)

    def _wide(self, entries: tuple[Any, ...]) -> Array:
        n, kinds = len(self._each), set(map(type, entries))
        if kinds == {np.ndarray}:
            joined: Array = np.concatenate(entries)
            return joined.reshape(-1, n)
        if np.ndarray not in kinds:
            return np.repeat(np.array(entries, float), n).reshape(-1, n)
        return np.array([v[:, 0] if isinstance(v, np.ndarray) else [v] * n for v in entries])
