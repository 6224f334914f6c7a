"""One writer a store: a lock that the system takes back when its process ends, however it ends."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from pathlib import Path

from poem_cma.store.errors import StoreError

__all__ = ["Lock"]

_FAR_BEHIND = 2**30  # a place in the file that nobody reads

_held: set[str] = set()  # by this process, which the system's lock would let in a second time


class Lock:
    """The right to write a store, held from construction to `release`."""

    def __init__(self, store: Path) -> None:
        if not store.name:
            raise StoreError(f"{store} is a folder: a store is a file")
        self._file = store.with_name(store.name + "-lock")
        self._key = os.path.realpath(self._file)
        if self._key in _held:
            raise StoreError(f"{store} is being written by another run of this process: one run a store")
        self._handle = self._acquire(store)
        _held.add(self._key)

    def _acquire(self, store: Path) -> int:
        while True:
            try:
                handle = os.open(self._file, os.O_RDWR | os.O_CREAT, 0o644)
            except OSError as error:
                raise StoreError(f"{store} cannot be written: {error.strerror or error}") from None
            if not _lock(handle):
                owner = os.read(handle, 200).decode(errors="replace").strip() or "another process"
                os.close(handle)
                raise StoreError(
                    f"{store} is being written by {owner}: one run a store. Stop that one first, or give another "
                    f"store; `poem-cma show` can look at it meanwhile"
                )
            if self._is_ours(handle):
                break
            os.close(handle)  # its last owner removed the file between our opening it and locking it
        os.ftruncate(handle, 0)
        since = time.strftime("%Y-%m-%d %H:%M:%S")
        with contextlib.suppress(OSError):  # a full disk: the lock holds, only its owner stays unnamed
            os.write(handle, f"process {os.getpid()} on {socket.gethostname()} since {since}".encode())
        return handle

    def _is_ours(self, handle: int) -> bool:
        try:
            return os.path.samestat(os.fstat(handle), os.stat(self._file))
        except OSError:
            return False

    def release(self) -> None:
        """Let the next one in."""
        if self._key in _held:
            _held.remove(self._key)
            with contextlib.suppress(OSError):
                os.unlink(self._file)
            os.close(self._handle)


def _lock(handle: int) -> bool:
    """Lock an open file for this process alone, or say that another has it. Children do not inherit the lock."""
    try:
        if os.name == "nt":
            import msvcrt

            os.lseek(handle, _FAR_BEHIND, os.SEEK_SET)  # what is locked there cannot be read: not the owner's name
            try:
                msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
            finally:
                os.lseek(handle, 0, os.SEEK_SET)
        else:
            import fcntl

            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
