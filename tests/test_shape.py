"""The size of files, functions and records: what is larger has more than one idea."""

from __future__ import annotations

import ast
import pathlib
from collections.abc import Iterator

import pytest

import poem_cma

SOURCE = pathlib.Path(poem_cma.__file__).parent
FILES = {file.relative_to(SOURCE).as_posix(): file for file in sorted(SOURCE.rglob("*.py"))}

LINES_OF_A_FILE = 300
LINES_OF_A_FUNCTION = 50  # its docstring apart
FIELDS_OF_A_RECORD = 15

#: What is larger and about to be mended. A name that needs no exception any more fails the test.
LARGER: set[str] = set()


def lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """From its name to its end, without its docstring."""
    first = function.body[0]
    written = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    docstring = (first.end_lineno or 0) - first.lineno + 1 if written else 0
    return (function.end_lineno or 0) - function.lineno + 1 - docstring


def is_record(node: ast.ClassDef) -> bool:
    """Whether it is a named tuple or a dataclass."""
    names = {ast.unparse(base) for base in node.bases} | {ast.unparse(d).split("(")[0] for d in node.decorator_list}
    return bool(names & {"NamedTuple", "typing.NamedTuple", "dataclass", "dataclasses.dataclass"})


def too_large(name: str, text: str) -> Iterator[str]:
    """The names of what is larger than it should be in a file."""
    if len(text.splitlines()) > LINES_OF_A_FILE:
        yield name
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and lines(node) > LINES_OF_A_FUNCTION:
            yield f"{name} {node.name}"
        if isinstance(node, ast.ClassDef) and is_record(node):
            fields = [
                part for part in node.body if isinstance(part, ast.AnnAssign) and "ClassVar" not in ast.unparse(part)
            ]
            if len(fields) > FIELDS_OF_A_RECORD:
                yield f"{name} {node.name}"


@pytest.mark.parametrize("name", FILES)
def test_nothing_is_larger_than_one_idea(name: str) -> None:
    found = set(too_large(name, FILES[name].read_text()))
    assert found == {larger for larger in LARGER if larger.split()[0] == name}


def test_what_is_too_large_is_found() -> None:
    body = "    pass\n"
    doc = '    """Long.' + "\n" * 60 + '    """\n'
    fields = "".join(f"    a{n}: int\n" for n in range(16))
    assert list(too_large("a.py", "\n" * 301)) == ["a.py"]
    assert list(too_large("a.py", "def f():\n" + body * 50)) == ["a.py f"]
    assert not list(too_large("a.py", "def f():\n" + doc + body * 49))
    assert list(too_large("a.py", "class A(NamedTuple):\n" + fields)) == ["a.py A"]
    assert list(too_large("a.py", "@dataclass(frozen=True)\nclass A:\n" + fields)) == ["a.py A"]
    assert not list(too_large("a.py", "class A:\n" + fields))
