"""What a result depends on: versions of packages, and checksums of our own source files."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import poem_cma

__all__ = ["OURS", "installed", "source_digest"]

#: The files and folders that a run of every method of this package goes through.
OURS = ("estimate.py", "methods.py", "minimize.py", "optimizer.py", "result.py", "domains", "paper", "run")


@cache
def installed(distribution: str) -> str | None:
    """The version of a distribution, or None if it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


@cache
def source_digest(parts: tuple[str, ...]) -> str:
    """The checksum of files and folders of this package; one that does not exist is an error."""
    root = Path(poem_cma.__file__).parent
    files = sorted(file for part in parts for file in _files(root / part))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


def _files(place: Path) -> list[Path]:
    files = [place] if place.is_file() else list(place.rglob("*.py"))
    if not files:
        raise FileNotFoundError(f"{place} is neither a file nor a folder with Python files")
    return files
