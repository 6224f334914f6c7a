"""What must happen once, before several processes begin."""

from __future__ import annotations

import signal
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: Any, specs: Any) -> None:
    """ART writes a file into the home folder when it is imported for the first time; two at once trip over it."""
    if find_spec("art") and not (Path.home() / ".art" / "config.json").exists():
        import art.config  # noqa: F401


def pytest_configure(config: Any) -> None:
    """What a shell runs in the background ignores Ctrl-C, and so would the processes that tests interrupt."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
