"""docs/field_tables.py puts a run's tables and pictures between the marks of the page and leaves the rest alone."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
BEGIN, END = "<!-- field: begin -->", "<!-- field: end -->"


def test_the_tables_of_a_run_are_put_between_the_marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("benchmarks.md", "field_tables.py"):
        (tmp_path / name).write_bytes((DOCS / name).read_bytes())
    run = tmp_path / "run"
    (run / "figures").mkdir(parents=True)
    (run / "figures" / "strip-noisy-bbob.png").write_bytes(b"picture")
    text = (
        "## Field\n\n![Scores](figures/strip-noisy-bbob.png)\n\n### Wins\n\nnew\n\n"
        "### One against one: lower\n\nold\n\n### rough: median score (worst seed), a star\n\nold\n\n"
        "### How it was measured\n\n* rule\n"
    )
    (run / "report.md").write_text(text, encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["field_tables.py", str(run)])
    before = (tmp_path / "benchmarks.md").read_text(encoding="utf-8")
    runpy.run_path(str(tmp_path / "field_tables.py"), run_name="__main__")
    after = (tmp_path / "benchmarks.md").read_text(encoding="utf-8")
    inside = after.split(BEGIN)[1].split(END)[0]
    assert inside == "\n\n## Field\n\n![Scores](images/field-noisy-bbob.png){.larger}\n\n### Wins\n\nnew\n\n"
    assert (tmp_path / "images" / "field-noisy-bbob.png").read_bytes() == b"picture"
    assert after.split(BEGIN)[0] == before.split(BEGIN)[0]
    assert after.split(END)[1] == before.split(END)[1]


def test_the_page_has_the_tables_that_the_command_prints() -> None:
    """Numbers change from run to run; headings and columns are those of the command."""
    page = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    shown = page.split(BEGIN)[1].split(END)[0]
    header = (
        "| method | problems with budgets | first | within 0.1 | behind | runs | worse than x0 | of which said so |"
    )
    assert f"### Wins and losses\n\n{header}\n" in shown
    assert "### One against one" not in shown  # report.html has it
    for suite in ("simulators", "policies", "rough", "noisy-bbob"):
        assert f"### {suite}: median score (worst seed)" not in shown  # report.html has it
        assert f"(images/field-{suite}.png)" in shown
        assert (DOCS / "images" / f"field-{suite}.png").stat().st_size > 5_000


def test_the_page_is_short() -> None:
    """With its tables: everything between spaces that has a letter or a digit counts as a word."""
    page = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    assert len([word for word in page.split() if re.search(r"\w", word)]) <= 1500
