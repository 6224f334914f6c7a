"""Files that come to their place whole: under another name first, never through a link, never beside a stale log."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

__all__ = ["forget_logs", "replacing"]

#: What SQLite keeps beside a file, and takes for a part of it whatever file lies there.
_LOGS = ("-wal", "-shm", "-journal")


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """An empty file beside `path`, which takes its place at the end, or is removed where that is not reached."""
    part = path.with_name(path.name + "-part")
    _remove(part)
    try:
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))  # a link that lies there is no file
        yield part
        os.replace(part, path)
    except BaseException:
        _remove(part)
        raise


def forget_logs(path: Path) -> None:
    """Remove the logs of a database that is gone, before another file gets its name."""
    for log in _LOGS:
        path.with_name(path.name + log).unlink(missing_ok=True)


def _remove(part: Path) -> None:
    part.unlink(missing_ok=True)
    forget_logs(part)
