"""The public names and their arguments are those of the list: a change is made on purpose, and in both places."""

from __future__ import annotations

import importlib
from pathlib import Path

import public_api
import pytest

LISTED = (Path(__file__).parent / "public_api.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("module", public_api.MODULES)
def test_the_public_names_and_their_arguments(module: str) -> None:
    try:
        importlib.import_module(module)
    except ImportError as error:
        pytest.skip(f"the names of {module} were not checked: {error}")
    deeper = tuple(f"{m}." for m in public_api.MODULES if m.startswith(f"{module}."))
    listed = [line for line in LISTED if line.startswith(f"{module}.") and not line.startswith(deeper)]
    assert public_api.lines(module) == listed, (
        "the public interface is not the one of tests/public_api.txt. "
        "If that was meant, say so in CHANGELOG.md and run python tests/public_api.py > tests/public_api.txt"
    )


def test_the_reference_has_every_public_name() -> None:
    """Whatever the package exports has its place on the page."""
    page = (Path(__file__).parent.parent / "docs" / "api.md").read_text(encoding="utf-8")
    shown = {line.removeprefix("::: ") for line in page.splitlines() if line.startswith("::: ")}
    for line in LISTED:
        name = line.split("(")[0]
        module, _, last = name.rpartition(".")
        if module == "poem_cma":
            assert {name, f"{name}.{last}"} & shown, f"docs/api.md does not show {name}"
