"""Tables of text, for the page and as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["Table", "markdown"]


@dataclass(frozen=True)
class Table:
    """A heading, the names of the columns, and rows of text."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """The table as Markdown.

    Examples
    --------
    >>> print(markdown(["a", "b"], [["1", "x|y"]]), end="")
    | a | b |
    | --- | --- |
    | 1 | x\\|y |
    """
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)
