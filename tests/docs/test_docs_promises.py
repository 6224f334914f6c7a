"""Every promise of the page on long runs has tests that are there: docs/promises.json names them."""

from __future__ import annotations

import ast
import json
import pathlib

TESTS = pathlib.Path(__file__).parents[1]
DOCS = TESTS.parent / "docs"
PAGE = DOCS / "long_runs.md"


def promises() -> list[tuple[str, str]]:
    """The name of each promise, and what it says."""
    section = PAGE.read_text(encoding="utf-8").partition("## What is promised")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")][2:]
    return [(name.strip(), promise.strip()) for name, promise in rows]


def named() -> dict[str, list[str]]:
    """The tests of each promise, by its name."""
    found: dict[str, list[str]] = json.loads((DOCS / "promises.json").read_text(encoding="utf-8"))
    return found


def test_every_promise_names_tests_that_are_there() -> None:
    found = promises()
    assert len(found) > 10
    assert all(name and promise for name, promise in found)
    assert [name for name, _ in found] == list(named())
    for name, of_promise in named().items():
        assert of_promise, name
        for test in of_promise:
            file, _, function = test.partition("::")
            tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
            assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, test
