"""The suites of black boxes, by name. Each suite is one module with a table `BLACK_BOXES` of builders by name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from difflib import get_close_matches
from importlib import import_module

from poem_cma.problems.black_box import BlackBox

__all__ = ["SUITES", "black_boxes", "load_black_box", "no_such"]

#: The module of each suite. A module is imported when it is used, because some need packages of the extra `bench`.
SUITES = {
    "simulators": "poem_cma.problems.simulators",
    "policies": "poem_cma.problems.policies",
    "rough": "poem_cma.problems.rough",
    "noisy-bbob": "poem_cma.problems.noisy_bbob",
}

#: The most names that an error message lists.
_LISTED = 12


def black_boxes(suite: str) -> list[str]:
    """The names of a suite's problems."""
    return list(_table(suite))


def load_black_box(name: str, suite: str | None = None, *, others: Iterable[str] = ()) -> BlackBox:
    """Build a problem by its name; the same name always gives the same problem.

    Parameters
    ----------
    name : str
    suite : str, optional
        By default the suites are searched one after another. One that cannot be imported is passed over.
    others : iterable of str
        Further names that exist, which the error for an unknown name may suggest.
    """
    known, absent = list(others), ""
    for each in SUITES if suite is None else (suite,):
        try:
            table = _table(each)
        except ImportError as error:
            if suite is not None:
                raise
            absent += f" (the suite {each} cannot be imported: {error})"
            continue
        if name in table:
            return table[name]()
        known += table
    raise ValueError(no_such("problem", name, known) + absent)


def no_such(what: str, name: str, known: Collection[str]) -> str:
    """One line for a name that does not exist: the names that resemble it, or else the first of those that exist."""
    if near := get_close_matches(name, known, n=3):
        return f"no {what} {name!r}; did you mean {' or '.join(near)}?"
    more = f", and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
    return f"no {what} {name!r}; there are {', '.join(list(known)[:_LISTED])}{more}"


def _table(suite: str) -> dict[str, Callable[[], BlackBox]]:
    if suite not in SUITES:
        raise ValueError(f"no suite of black boxes {suite!r}; there are {', '.join(SUITES)}")
    table: dict[str, Callable[[], BlackBox]] = import_module(SUITES[suite]).BLACK_BOXES
    return table
