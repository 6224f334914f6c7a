"""What a result depends on: packages, which must be there, and checksums of our own source files."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import poem_cma

__all__ = ["OURS", "installed", "source_digest", "trouble"]

#: The files and folders that a run of every method of this package goes through.
OURS = ("estimate.py", "methods.py", "minimize.py", "optimizer.py", "result.py", "domains", "paper", "run")

#: The modules whose name is not that of their distribution.
_MODULES = {"Py-BOBYQA": "pybobyqa", "simoptlib": "simopt"}


@cache
def installed(distribution: str) -> str | None:
    """The version of a distribution, or None if it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def trouble(absent: Sequence[str], packages: Sequence[str]) -> str:
    """Why a method cannot play: the packages that are not installed, or one that cannot be imported; or nothing."""
    if absent:
        return f'{", ".join(absent)} not installed (pip install "poem-cma[bench]")'
    return next(filter(None, map(_broken, packages)), "")


@cache
def _broken(distribution: str) -> str:
    try:
        import_module(_MODULES.get(distribution, distribution))
    except Exception as error:
        return f"{distribution} cannot be imported ({' '.join(str(error).split())})"
    return ""


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
