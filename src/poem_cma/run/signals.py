"""Signals while a run has workers: everything is ended in good order first."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

__all__ = ["sigterm_ends_the_run", "undisturbed"]


class _Terminated(BaseException):
    """The process was asked to end."""


@contextlib.contextmanager
def sigterm_ends_the_run(wanted: bool) -> Iterator[None]:
    """Where workers must be ended first, SIGTERM unwinds the run before it ends the process."""
    ours = wanted and threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def end(*_: Any) -> None:
        raise _Terminated

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    except _Terminated:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """A second Ctrl-C does not keep workers from being ended."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before if before is not None else signal.default_int_handler)
