"""docs/measured.py puts what commands print into the pages that show it."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "docs" / "measured.py"))

PAGE = """Words.

<!-- measured: python {table} -->

| a | b |
|---|---|
| 1 | 2 |

More words.

<!-- measured: python {block} --two -->
```
old
lines
```

| another | table |
"""


def test_a_table_and_a_block_are_replaced_by_what_is_printed(tmp_path: Path) -> None:
    (tmp_path / "table.py").write_text(r"print('| a | b |\n|---|---|\n| 3 | 4 |')", encoding="utf-8")
    (tmp_path / "block.py").write_text(r"import sys; print('new', *sys.argv[1:])", encoding="utf-8")
    page = PAGE.format(table=tmp_path / "table.py", block=tmp_path / "block.py")
    assert len(SCRIPT["commands"](page)) == 2
    after = SCRIPT["renewed"](page)
    assert after == page.replace("| 1 | 2 |", "| 3 | 4 |").replace("old\nlines", "new --two")


@pytest.mark.parametrize("name", ["which.md", "design_notes.md"])
def test_every_command_of_a_page_exists(name: str) -> None:
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    found = SCRIPT["commands"](text)
    assert len(found) == text.count("<!-- measured:") > 0
    for command in found:
        assert (ROOT / command.split()[0]).is_file()
