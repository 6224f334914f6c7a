"""Optimisers as files: one line that says what it is, with a checksum, then plain arrays (npz) with a JSON header.

Reading one never runs anything. The arrays are stored as they are, so a file that claims to hold more than its own size
is refused before it is read.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import tempfile
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np

from poem_cma._types import Array
from poem_cma.run.algorithm import Method
from poem_cma.run.packing import NeededError, pack, unpack

if TYPE_CHECKING:
    from poem_cma.optimizer import Optimizer

__all__ = ["VERSION", "from_bytes", "load", "save", "this_version", "to_bytes"]

#: Of the file as a whole; the records in it have versions of their own, see `flatten`.
VERSION = 18

_FIRST_LINE = re.compile(rb"poem-cma optimizer, format (\d{1,9}), sha256 ([0-9a-f]{64})\n")


def to_bytes(opt: Optimizer) -> bytes:
    """An optimiser as the content of a file."""
    leaves = pack(opt)
    arrays = {name: value for name, value in leaves.items() if isinstance(value, np.ndarray)}
    header = {"written_by": this_version()} | {name: value for name, value in leaves.items() if name not in arrays}
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    body = io.BytesIO()
    np.savez(body, allow_pickle=False, **arrays)
    digest = hashlib.sha256(body.getbuffer()).hexdigest()
    return f"poem-cma optimizer, format {VERSION}, sha256 {digest}\n".encode() + body.getbuffer()


def save(opt: Optimizer, path: str | os.PathLike[str]) -> None:
    """Write an optimiser next to its final place, then move it there: a crash leaves the old file or the new one."""
    content = to_bytes(opt)
    path = os.fspath(path)
    handle, part = tempfile.mkstemp(prefix=".poem-cma-", dir=os.path.dirname(path) or ".")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise


def load(
    cls: type[Optimizer], path: str | os.PathLike[str], *, method: Method | None = None, domain: Any = None
) -> Optimizer:
    """Read an optimiser, or raise one ValueError that says why the file cannot be used."""
    path = os.fspath(path)
    with open(path, "rb") as file:
        content = file.read()
    return from_bytes(cls, content, path, method=method, domain=domain)


def from_bytes(
    cls: type[Optimizer], content: bytes, path: str, *, method: Method | None = None, domain: Any = None
) -> Optimizer:
    """The optimiser in the content of a file; `path` is for the messages."""
    writer = ""
    try:
        leaves = _leaves(content)
        writer = f" (written by poem-cma {leaves.pop('written_by')}; this is {this_version()})"
        return unpack(cls, leaves, method, domain)
    except NeededError as needed:
        raise ValueError(f"{path}: {needed}") from None
    except Exception as error:  # whatever a file made by somebody else may lead to
        what = str(error) or type(error).__name__
        raise ValueError(f"{path} is not a usable poem-cma optimizer file: {what}{writer}") from error


def this_version() -> str:
    """The version of this library."""
    from poem_cma import __version__  # it is known once everything is imported

    return __version__


def _leaves(content: bytes) -> dict[str, Any]:
    """The table of an undamaged file."""
    arrays = _read(content)
    header: dict[str, Any] = json.loads(arrays.pop("header").tobytes().decode())
    return {**header, **arrays}


def _read(content: bytes) -> dict[str, Array]:
    """The arrays of an undamaged file of the right kind."""
    first = _FIRST_LINE.match(content)
    if first is None:
        raise ValueError("it was written by something else")
    version, digest = int(first[1]), first[2].decode()
    if version != VERSION:
        raise ValueError(f"it has format version {version}, this library reads version {VERSION}")
    body = content[first.end() :]
    if hashlib.sha256(body).hexdigest() != digest:
        raise ValueError("it is damaged: its checksum is wrong")
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        entries = archive.infolist()
        if any(e.compress_type != zipfile.ZIP_STORED for e in entries) or sum(e.file_size for e in entries) > len(body):
            raise ValueError("it claims to hold more than its size")
    with np.load(io.BytesIO(body), allow_pickle=False) as file:
        return {name: file[name] for name in file.files}
