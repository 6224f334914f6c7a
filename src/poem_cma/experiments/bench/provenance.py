"""What a result depends on: versions of packages, and checksums of our own source files."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import poem_cma

__all__ = ["installed", "source_digest"]


@cache
def installed(distribution: str) -> str | None:
    """The version of a distribution, or None if it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


@cache
def source_digest(parts: tuple[str, ...]) -> str:
    """The checksum of files and folders of this package."""
    root = Path(poem_cma.__file__).parent
    files = sorted(f for part in parts for f in [root / part, *(root / part).rglob("*.py")] if f.is_file())
    return hashlib.sha256(b"".join(f.read_bytes() for f in files)).hexdigest()[:12]
