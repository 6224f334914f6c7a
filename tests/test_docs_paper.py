"""docs/paper.md keeps its two marks, between which the tables of a run are put."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"


def test_the_tables_of_a_run_are_put_between_the_marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("paper.md", "paper_tables.py"):
        (tmp_path / name).write_bytes((DOCS / name).read_bytes())
    (tmp_path / "report.md").write_text("### Claims\n\nnew\n", encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["paper_tables.py", str(tmp_path)])
    before = (tmp_path / "paper.md").read_text(encoding="utf-8")
    runpy.run_path(str(tmp_path / "paper_tables.py"), run_name="__main__")
    after = (tmp_path / "paper.md").read_text(encoding="utf-8")
    begin, end = "<!-- tables: begin -->", "<!-- tables: end -->"
    assert "### Claims\n\nnew\n" in after
    assert after.split(begin)[0] == before.split(begin)[0]
    assert after.split(end)[1] == before.split(end)[1]
