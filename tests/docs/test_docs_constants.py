"""The page of constants lists what stands in `poem_cma.auto`, with the reasons given there."""

from __future__ import annotations

import runpy
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "docs" / "constants.py"))


def test_the_page_is_up_to_date() -> None:
    page = SCRIPT["PAGE"].read_text(encoding="utf-8")
    assert SCRIPT["written"](page) == page, "run: python docs/constants.py"


def test_every_number_of_the_modules_is_listed() -> None:
    listed = {(c.module, c.name) for c in SCRIPT["constants"]()}
    for path in SCRIPT["SOURCE"].rglob("*.py"):
        name = ".".join(path.relative_to(SCRIPT["SOURCE"]).with_suffix("").parts)
        source = path.read_text(encoding="utf-8")
        for constant, value in vars(import_module(f"poem_cma.auto.{name}")).items():
            numbers = value if isinstance(value, tuple) and value else (value,)
            if constant.isupper() and f"\n{constant}" in source and all(type(n) in (int, float) for n in numbers):
                assert (name, constant) in listed


def test_a_comment_of_two_lines_is_one_reason(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("X = 1\n#: Two\n#: lines.\nA, B = 2.0**-3, (1, 2)\nC = f(1)\nd = 3\n")
    SCRIPT["of_module"].__globals__["SOURCE"] = tmp_path
    found = [tuple(c) for c in SCRIPT["of_module"](tmp_path / "m.py")]
    SCRIPT["of_module"].__globals__["SOURCE"] = ROOT / "src" / "poem_cma" / "auto"
    assert found == [("m", "X", "1", ""), ("m", "A", "2.0 ** (-3)", "Two lines."), ("m", "B", "(1, 2)", "Two lines.")]


def test_the_table_shows_every_constant_with_the_first_sentence_of_its_reason() -> None:
    rows = SCRIPT["table"]().splitlines()[2:]
    for constant in SCRIPT["constants"]():
        shown, reason = f"`{constant.name} = {constant.value}`", SCRIPT["first_sentence"](constant.reason)
        assert any(shown in row and row.endswith(f"| {reason} |") for row in rows), constant
    assert SCRIPT["first_sentence"]("It is 1.5 at most. It is never zero.") == "It is 1.5 at most."
    long = " ".join(["word"] * 20)
    assert SCRIPT["first_sentence"](f"It ends here: {long}.") == "It ends here."
    assert SCRIPT["first_sentence"](f"It has {long}. More.") == f"It has {long}."
