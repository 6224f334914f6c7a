"""One writer a store: a lock that the system takes back when its process ends, however it ends."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
import threading
import time
from pathlib import Path

from poem_cma.store.errors import StoreError

__all__ = ["Lock"]

_FAR_BEHIND = 2**30  # a place in the file that nobody reads

#: Lock files of this process, which the system's lock would let in a second time: by device and number.
_held: set[tuple[int, int]] = set()
_entering = threading.Lock()


class Lock:
    """The right to write a store, held from construction to `close`.

    The lock is that of the file itself, by whatever links or folders it is reached: `store` is its real path. A file
    with several names (hard links) is refused, because SQLite finds its log by the name.
    """

    def __init__(self, store: Path) -> None:
        if not store.name:
            raise StoreError(f"{store} is a folder: a store is a file")
        self.store = Path(os.path.realpath(store))
        self._file = self.store.with_name(self.store.name + "-lock")
        with _entering:
            self._handle = self._acquire()
            self._key = _key(os.fstat(self._handle))
            _held.add(self._key)
        try:
            self._refuse_several_names()
        except BaseException:
            self.close()
            raise

    def _acquire(self) -> int:
        while True:
            with contextlib.suppress(OSError):
                if _key(os.lstat(self._file)) in _held:  # to open it again and close it would let the lock go
                    raise StoreError(f"{self.store} is being written by another run of this process: one run a store")
            handle = self._open()
            if not _lock(handle):
                owner = os.read(handle, 200).decode(errors="replace").strip() or "another process"
                os.close(handle)
                raise StoreError(
                    f"{self.store} is being written by {owner}: one run a store. Stop that one first, or give another "
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

    def _open(self) -> int:
        """The lock file. Whatever else has its name is left as it is: what is behind a link is not ours to change."""
        try:
            handle = os.open(self._file, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o644)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise self._in_the_way() from None
            raise StoreError(f"{self.store} cannot be written: {error.strerror or error}") from None
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
            os.close(handle)
            raise self._in_the_way()
        return handle

    def _in_the_way(self) -> StoreError:
        return StoreError(
            f"{self._file} is in the way: it should be the lock of a store, and is a link or no file: remove it"
        )

    def _is_ours(self, handle: int) -> bool:
        try:
            return os.path.samestat(os.fstat(handle), os.lstat(self._file))
        except OSError:
            return False

    def _refuse_several_names(self) -> None:
        with contextlib.suppress(OSError):
            if self.store.is_file() and os.stat(self.store).st_nlink > 1:
                raise StoreError(
                    f"{self.store} has several names (hard links), and its log would belong to one of them alone: "
                    f"give a copy of it, or remove the other names"
                )

    def close(self) -> None:
        """Let the next one in."""
        if self._key in _held:
            _held.remove(self._key)
            with contextlib.suppress(OSError):
                os.unlink(self._file)
            os.close(self._handle)


def _key(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


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
