"""The pages keep their two marks, between which the tables of a run are put."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(("page", "script"), [("paper.md", "paper_tables.py"), ("benchmarks.md", "bench_tables.py")])
def test_the_tables_of_a_run_are_put_between_the_marks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str, script: str
) -> None:
    for name in {page, script, "paper_tables.py"}:
        (tmp_path / name).write_bytes((DOCS / name).read_bytes())
    monkeypatch.setattr("sys.path", list(sys.path))
    (tmp_path / "report.md").write_text("### Claims\n\nnew\n", encoding="utf-8")
    (tmp_path / "settings.json").write_text('{"scale": {"name": "full"}, "poem_cma": "9.8"}', encoding="utf-8")
    monkeypatch.setattr("sys.argv", [script, str(tmp_path)])
    before = (tmp_path / page).read_text(encoding="utf-8")
    runpy.run_path(str(tmp_path / script), run_name="__main__")
    after = (tmp_path / page).read_text(encoding="utf-8")
    begin, end = "<!-- tables: begin -->", "<!-- tables: end -->"
    assert "### Claims\n\nnew\n" in after
    assert after.split(begin)[0] == before.split(begin)[0]
    assert after.split(end)[1] == before.split(end)[1]


REPORT = """### The story

1. One d* and one f*.

### Claims

1 holds.

| where | claim | the paper | ours | verdict | remark |
| --- | --- | --- | --- | --- | --- |
| 6.2 | the first | 72 | 71 \\| 70 | **holds** | a remark |
| 6.3 | the second | 4 | 9 | **does not hold** |  |

### a set: every curve, f at its end

| a | b |
| --- | --- |
| 1 | 2 |

### a set: f, median [quartiles]

| method | f |
| --- | --- |
| POEM | 0.1 |
"""


def test_the_page_of_the_paper_shows_a_selection_and_where_two_runs_differ(tmp_path: Path) -> None:
    script = runpy.run_path(str(DOCS / "paper_tables.py"))
    shown = script["shortened"](REPORT)
    assert "a remark" not in shown
    assert "| 6.2 | the first | 72 | 71 \\| 70 | **holds** |\n" in shown
    assert [line for line in shown.splitlines() if line.startswith("#")] == [
        "### Claims", "### a set: f, median [quartiles]",
    ]  # fmt: skip
    quick = REPORT.replace("71 \\| 70 | **holds**", "60 | **not decided**")
    told = script["different"](REPORT, quick)
    assert told.startswith("1 of the 2 verdicts of the two runs agree.\n")
    assert "| the first | 60 | **not decided** | 71 \\| 70 | **holds** |\n" in told
    assert "|" not in script["different"](REPORT, REPORT)


def test_the_page_of_the_paper_says_what_made_its_story_and_its_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The story is that of the first run that has one."""
    for name in ("paper.md", "paper_tables.py"):
        (tmp_path / name).write_bytes((DOCS / name).read_bytes())
    for mode, version, text in (("full", "9.8", REPORT.split("### Claims")[1]), ("quick", "9.9", REPORT)):
        folder = tmp_path / mode
        folder.mkdir()
        report = text if mode == "quick" else f"### Claims{text}"
        (folder / "report.md").write_text(report, encoding="utf-8")
        made = {"scale": {"name": mode}, "poem_cma": version}
        (folder / "settings.json").write_text(json.dumps(made), encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["paper_tables.py", str(tmp_path / "full"), str(tmp_path / "quick")])
    runpy.run_path(str(tmp_path / "paper_tables.py"), run_name="__main__")
    page = (tmp_path / "paper.md").read_text(encoding="utf-8")
    parts = {
        name: page.split(f"<!-- {name}: begin -->")[1].split(f"<!-- {name}: end -->")[0] for name in ("story", "tables")
    }
    assert parts["story"] == "\n\nThe sentences come from a quick run of version 9.9.\n\n1. One d\\* and one f\\*.\n\n"
    assert parts["tables"].startswith("\n\nThese tables come from a full run of version 9.8.\n\n### Claims\n")


def test_the_pictures_of_the_paper_are_drawn_from_the_files_of_a_run(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    from reproduce_helpers import REQUEST, compute

    from poem_cma.experiments.reproduce.output import write

    compute(tmp_path)
    write(tmp_path, REQUEST)
    script = runpy.run_path(str(DOCS / "figures_paper.py"))
    drawn = script["figures"](tmp_path)
    assert [len(figure.axes) for figure in drawn.values()] == [1, 4]
    with script["without"]("bisection", "again"):
        pass  # the parts that are taken away have the names that the picture's command knows


def test_the_page_has_the_tables_that_the_arena_prints() -> None:
    """The numbers change from run to run; headings and columns are those of the command."""
    from poem_cma.experiments.bench import tables
    from poem_cma.experiments.bench.plan import Request
    from poem_cma.experiments.bench.results import Results
    from poem_cma.experiments.bench.scale import FULL

    page = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    shown = page.split("<!-- tables: begin -->")[1].split("<!-- tables: end -->")[0]
    nothing = Results(Request(FULL, (), ()), ())
    noise = tables.noise_table(nothing)
    assert f"### {noise.title}\n\n| " + " | ".join(noise.header) + " |" in shown
    left_out = [
        tables.ratio_table([], FULL.budget), tables.overview(nothing, ()), tables.finals(nothing),
        tables.tuning_table(nothing),
    ]  # fmt: skip
    report = "".join(f"### {table.title}\n\nnumbers\n\n" for table in [noise, *left_out])
    selected = runpy.run_path(str(DOCS / "bench_tables.py"))["selected"](report)
    assert selected == report.split(f"### {left_out[0].title}")[0]
    assert not any(f"### {table.title}\n" in shown for table in left_out)
