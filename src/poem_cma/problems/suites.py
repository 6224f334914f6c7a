"""The suites of black boxes, by name. Each suite is one module with a table `BLACK_BOXES` of builders by name."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from importlib import import_module

from poem_cma.problems.black_box import BlackBox

__all__ = ["SUITES", "black_boxes", "load_black_box"]

#: The module of each suite. A module is imported when it is used, because some need packages of the extra `bench`.
SUITES = {
    "simulators": "poem_cma.problems.simulators",
    "policies": "poem_cma.problems.policies",
    "rough": "poem_cma.problems.rough",
    "noisy-bbob": "poem_cma.problems.noisy_bbob",
}


def black_boxes(suite: str) -> list[str]:
    """The names of a suite's problems."""
    return list(_table(suite))


def load_black_box(name: str) -> BlackBox:
    """Build a problem by its name; the same name always gives the same problem."""
    found = {each: build for suite in SUITES for each, build in _table(suite).items()}
    if name not in found:
        raise ValueError(f"no problem {name!r}; did you mean {', '.join(get_close_matches(name, found) or found)}?")
    return found[name]()


def _table(suite: str) -> dict[str, Callable[[], BlackBox]]:
    if suite not in SUITES:
        raise ValueError(f"no suite {suite!r}; the suites are losses, {', '.join(SUITES)}")
    table: dict[str, Callable[[], BlackBox]] = import_module(SUITES[suite]).BLACK_BOXES
    return table
