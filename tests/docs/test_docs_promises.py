"""Every promise of the page on long runs names tests that are there."""

from __future__ import annotations

import ast
import pathlib
import re

TESTS = pathlib.Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "long_runs.md"


def promises() -> list[tuple[str, list[str]]]:
    """Each promise, with the tests that it names."""
    section = PAGE.read_text().partition("## What is promised")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")][2:]
    return [(promise.strip(), re.findall(r"`([^`]*)`", tests)) for _, promise, tests in rows]


def test_every_promise_names_tests_that_are_there() -> None:
    found = promises()
    assert len(found) > 10
    for promise, tests in found:
        assert tests, promise
        for test in tests:
            file, _, name = test.partition("::")
            tree = ast.parse((TESTS / file).read_text())
            assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, test
