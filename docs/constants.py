"""Put the table of all constants of `poem_cma.auto` into docs/constants.md.

    python docs/constants.py

A constant is a number, or a tuple of numbers, with a name in capitals at the top of a module. Its reason is the comment
above it that begins with `#:`. The table has a row for each such comment, with its first sentence.
"""

from __future__ import annotations

import ast
import re
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent / "src" / "poem_cma" / "auto"
PAGE = HERE / "constants.md"
LONGEST = 17  # words of a sentence that is shown whole
BEGIN, END = "<!-- constants: begin -->", "<!-- constants: end -->"


class Constant(NamedTuple):
    """One assignment."""

    module: str
    name: str
    value: str
    reason: str  # empty if no comment gives one


def constants() -> list[Constant]:
    """All of them, in the order of the modules."""
    return [found for path in sorted(SOURCE.rglob("*.py")) for found in of_module(path)]


def of_module(path: Path) -> list[Constant]:
    """The constants of a module."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    found: list[Constant] = []
    for node in ast.parse(text).body:
        if not isinstance(node, ast.Assign):
            continue
        target = node.targets[0]
        several = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
        names, values = (target.elts, node.value.elts) if several else ([target], [node.value])
        if len(names) != len(values):
            continue
        reason = _above(lines, node.lineno)
        found += [
            Constant(module, name.id, ast.unparse(value), reason)
            for name, value in zip(names, values, strict=True)
            if isinstance(name, ast.Name) and name.id.isupper() and _is_number(value)
        ]
    return found


def table() -> str:
    """The table in Markdown: a row with the name of each module, and a row for each comment in it."""
    rows: list[str] = []
    for module, own in groupby(constants(), key=lambda c: c.module):
        rows.append(f"| **`{module}`** | |")
        for reason, group in groupby(own, key=lambda c: c.reason):
            values = ", ".join(f"`{c.name} = {c.value}`" for c in group)
            rows.append(f"| {values} | {first_sentence(reason)} |")
    return "\n".join(["| constants | reason |", "|---|---|", *rows])


def first_sentence(text: str) -> str:
    """Up to the first full stop that ends a sentence; a long sentence ends at its colon or semicolon."""
    sentence = re.split(r"(?<=[.!?])\s+(?=[A-Z])", text, maxsplit=1)[0]
    return (
        sentence if len(sentence.split()) <= LONGEST else re.split(r"[:;] ", sentence, maxsplit=1)[0].rstrip(".") + "."
    )


def written(page: str) -> str:
    """The page with the table between its marks."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.split(END)[1]}"


def _above(lines: list[str], line: int) -> str:
    """The comment that ends on the line before."""
    first = line - 1
    while first > 0 and lines[first - 1].startswith("#:"):
        first -= 1
    return " ".join(text.removeprefix("#:").strip() for text in lines[first : line - 1]).replace("|", "\\|")


def _is_number(value: ast.expr) -> bool:
    parts = [part for part in ast.walk(value) if isinstance(part, (ast.Constant, ast.Name, ast.Call))]
    return bool(parts) and all(isinstance(part, ast.Constant) and isinstance(part.value, int | float) for part in parts)


def main() -> None:
    """Renew the page, and name the constants without a reason."""
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    for constant in constants():
        if not constant.reason:
            print(f"no reason given: {constant.module}.{constant.name}")


if __name__ == "__main__":
    main()
