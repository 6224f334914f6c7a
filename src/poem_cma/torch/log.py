"""The record of a run: its seed and the losses of every step. From the first weights it leads to the last ones."""

from __future__ import annotations

import pathlib
import struct
from dataclasses import dataclass, field

__all__ = ["Log"]

_MAGIC = b"POEM-LOG"
_HEAD = struct.Struct("<8sHQQ")  # magic, version, seed, dimension


@dataclass
class Log:
    """The losses of each step, in the order in which they were asked for.

    Examples
    --------
    >>> log = Log(seed=7, dimension=3, steps=[[1.0, 0.5], [0.25]])
    >>> Log.from_bytes(log.to_bytes()) == log
    True
    >>> len(log.to_bytes())
    54
    """

    seed: int
    dimension: int
    steps: list[list[float]] = field(default_factory=list)

    def to_bytes(self) -> bytes:
        """Eight bytes a forward pass, two a step."""
        parts = [_HEAD.pack(_MAGIC, 1, self.seed, self.dimension)]
        parts += [struct.pack(f"<H{len(v)}d", len(v), *v) for v in self.steps]
        return b"".join(parts)

    @staticmethod
    def from_bytes(data: bytes) -> Log:
        """Read what `to_bytes` wrote; a last step that is cut short (a crash) is dropped."""
        if len(data) < _HEAD.size or data[:8] != _MAGIC:
            raise ValueError("this is not a log of poem_cma.torch")
        _, version, seed, dimension = _HEAD.unpack_from(data)
        if version != 1:
            raise ValueError(f"the log has version {version}; this poem_cma reads version 1: update poem_cma")
        log, at = Log(seed, dimension), _HEAD.size
        while at + 2 <= len(data):
            (count,) = struct.unpack_from("<H", data, at)
            if at + 2 + 8 * count > len(data):
                break
            log.steps.append(list(struct.unpack_from(f"<{count}d", data, at + 2)))
            at += 2 + 8 * count
        return log

    def save(self, path: str | pathlib.Path) -> None:
        """Write to a file."""
        pathlib.Path(path).write_bytes(self.to_bytes())

    @staticmethod
    def load(path: str | pathlib.Path) -> Log:
        """Read from a file."""
        return Log.from_bytes(pathlib.Path(path).read_bytes())
