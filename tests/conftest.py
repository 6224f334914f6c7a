"""What must happen once, before several processes begin."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: Any, specs: Any) -> None:
    """ART writes a file into the home folder when it is imported for the first time; two at once trip over it."""
    if find_spec("art") and not (Path.home() / ".art" / "config.json").exists():
        import art.config  # noqa: F401
