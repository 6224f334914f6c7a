"""What happened, step by step, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

import numpy as np

from poem_cma._types import Array

__all__ = ["COLUMNS", "History", "stacked"]

COLUMNS = ("nfev", "fun", "step_size", "smoothing", "distance", "gradient_norm", "effective_dimension")


class History:
    """A row for every step, thinned by half whenever there are more than `most` rows.

    The last row is always the last step. Columns are `COLUMNS`: calls so far; the smoothed value of recent probes; the
    step size eta and smoothing radius mu; |x - x0|; the norm of the gradient estimate; d* (or d).
    """

    def __init__(self, most: int = 10_000) -> None:
        self.most = most
        self.stride = 1  # every stride-th step is kept
        self.earlier: Array = np.zeros((0, 0))  # the first rows, where they were put together as a table
        self.rows: list[tuple[float, ...]] = []  # those that came after
        self.seen = 0
        self.last: tuple[float, ...] | None = None  # the last step, kept or not

    def record(self, s: Any) -> None:
        """Add a step."""
        # For values of F near 1e300 these products may leave the range of floating point, and are then inf or 0.
        unit = 1.0 if s.flat else s.unit
        self.last = (s.nfev, s.value, s.eta / unit, s.mu, s.r, s.g_norm * unit, s.dimension)
        if self.seen % self.stride == 0:
            self.rows.append(self.last)
            if len(self.rows) > self.most - len(self.earlier):
                self.earlier, self.rows = self.earlier[::2].copy(), self.rows[len(self.earlier) % 2 :: 2]
                self.stride *= 2
        self.seen += 1

    def __len__(self) -> int:
        """How many rows are kept."""
        return len(self.earlier) + len(self.rows)

    def table(self, last: tuple[float, ...] | None = None) -> Array:
        """The rows kept, and a last one if it is not among them; short ones (of another method) end with zeros."""
        rows = self.rows
        newest = rows[-1][0] if rows else self.earlier[-1, 0] if len(self.earlier) else None
        if last is not None and newest != last[0]:
            rows = [*rows, last]
        return stacked([self.earlier, *(np.array(list(group), dtype=float) for _, group in groupby(rows, key=len))])

    def arrays(self, sign: float = 1.0) -> Mapping[str, Array]:
        """The rows as arrays by name; the sign is that of the values."""
        table = self.table(self.last)
        names = COLUMNS[: table.shape[1]]
        columns: dict[str, Array] = {name: table[:, j] for j, name in enumerate(names)}
        columns["nfev"] = columns["nfev"].astype(np.int64)
        columns["fun"] = sign * columns["fun"]
        return HistoryView(columns)


def stacked(tables: list[Array]) -> Array:
    """Tables one below the other, the narrower ones filled up with zeros."""
    width = max((table.shape[1] for table in tables if len(table)), default=len(COLUMNS))
    whole = np.zeros((sum(map(len, tables)), width))
    start = 0
    for table in tables:
        whole[start : start + len(table), : table.shape[1]] = table
        start += len(table)
    return whole


class HistoryView(Mapping[str, Array]):
    """Arrays by name, with a short representation."""

    def __init__(self, columns: dict[str, Array]) -> None:
        self._columns = columns

    def __getitem__(self, name: str) -> Array:
        if name not in self._columns:
            raise KeyError(f"history has no column {name!r}; it has {', '.join(self._columns)}")
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        rows = len(self._columns["nfev"])
        return f"<history: {rows} rows of {', '.join(self._columns)}>"
