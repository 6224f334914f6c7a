"""The arithmetic of the field against numbers worked out by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from poem_cma.experiments.bench.field import tables
from poem_cma.experiments.bench.field.output import write
from poem_cma.experiments.bench.field.plan import FieldRequest, entries
from poem_cma.experiments.bench.field.results import Place, read
from poem_cma.experiments.bench.field.scale import QUICK
from poem_cma.experiments.bench.field.scores import count_harm, duel, mean_of_medians, relative, share_below, standings
from poem_cma.experiments.bench.field.strips import place_of, strip
from poem_cma.experiments.campaign import records
from poem_cma.problems.suites import SUITES

METHODS = ("auto", "ars", "random-search")
#: Judged values by problem, method and budget, for two seeds; x0 has 5 on both.
VALUES = {
    ("bowl", "auto", 60): (1.0, 2.0), ("bowl", "ars", 60): (3.0, 9.0), ("bowl", "random-search", 60): (1.5, 1.5),
    ("bowl-own", "auto", 60): (6.0, 5.0), ("bowl-own", "ars", 60): (4.0, 4.0),
    ("bowl-own", "random-search", 60): (4.0, 4.5),
}  # fmt: skip


@pytest.fixture
def request_and_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[FieldRequest, Path]:
    """Files as a run would have written them."""
    from poem_cma.experiments.bench.field.library import load

    monkeypatch.setitem(SUITES, "rough", "field_stub")
    load.cache_clear()
    request = FieldRequest(QUICK, (("rough", "bowl"), ("rough", "bowl-own")), METHODS, seeds=2)
    for entry in entries(request):
        values = VALUES[entry.problem.name, entry.player.name, entry.budget]
        for cell, value in zip(entry.cells, values, strict=True):
            said = entry.player.name == "auto" and value == 6.0
            result = {"value": value, "start": 5.0, "nfev": 60, "message": "", "said": said}
            records.save(tmp_path, cell, result | {"time": {"seconds": 0.06, "inside": 0.03}})
    return request, tmp_path


def test_scores_of_files(request_and_folder: tuple[FieldRequest, Path]) -> None:
    """On bowl the best value is 1: scores are (value - 1) / 4. On bowl-own it is 4: scores are value - 4."""
    request, folder = request_and_folder
    results = read(folder, request)
    bowl, own = Place("rough", "bowl", 60), Place("rough", "bowl-own", 60)
    assert results.best == {("rough", "bowl"): 1.0, ("rough", "bowl-own"): 4.0}
    assert results.scores[bowl] == {"auto": [0.0, 0.25], "ars": [0.5, 2.0], "random-search": [0.125, 0.125]}
    assert results.medians[bowl] == {"auto": 0.125, "ars": 1.25, "random-search": 0.125}
    assert results.medians[own] == {"auto": 1.5, "ars": 0.0, "random-search": 0.25}

    wins = {row[0]: row[1:] for row in tables.wins_table(results).rows}
    assert wins["auto"] == ["2", "1", "0", "1", "4", "1", "1"]  # 6.0 is worse than x0, and it said so
    assert wins["ARS V1"] == ["2", "1", "0", "1", "4", "1", "0"]
    assert wins["random search"] == ["2", "1", "0", "1", "4", "0", ""]
    means = {row[0]: row[1:] for row in tables.means_table(results).rows}
    assert means == {"auto": ["0.81"], "ARS V1": ["0.62"], "random search": ["0.19"]}
    duels = {row[0]: row[1] for row in tables.duel_table(results).rows}
    assert duels == {"ARS V1": "1 : 0 : 1", "random search": "0 : 1 : 1"}
    first = tables.suite_table(results, "rough").rows[0]
    assert first == ["bowl", "3", "60", "0.125 (0.250) ★", "1.250 (2.000)", "0.125 (0.125) ★"]
    assert tables.headline(results) == (
        "auto is first on 1, within 0.1 of the first on 0 and behind on 1 of 2 problems with a budget; 1 of its 4 runs "
        "ended worse than x0, 1 of those said so"
    )
    assert tables.details(results) == "It is behind on bowl-own."
    with_pycma = replace(results, runs={p: {**runs, "pycma": runs["ars"]} for p, runs in results.runs.items()})
    assert tables.details(with_pycma) == (
        "It is behind on bowl-own. Against pycma, its median is lower on 1, level on 0 and higher on 1."
    )
    shown = strip(results, "rough")
    assert shown is not None
    assert [(row.name, row.median) for row in shown.rows] == [
        ("random-search", 0.1875),
        ("ars", 0.625),
        ("auto", 0.8125),
    ]


def test_the_report_has_what_it_must(request_and_folder: tuple[FieldRequest, Path]) -> None:
    request, folder = request_and_folder
    report, line = write(folder, request)
    html = report.read_text(encoding="utf-8")
    assert line in html
    assert 'id="strip-rough"' in html
    assert html.count("<i class=") == 6  # two problems, three methods
    assert html.index('id="strip-rough"') < html.index("<h3>Wins and losses</h3>") < html.index("a star for the first")
    assert 'title="bowl, 60: 0.125 (worst 0.25)"' in html
    assert "http://" not in html.split("<script>")[0]
    assert "https://" not in html.split("<script>")[0]
    text = (folder / "report.md").read_text(encoding="utf-8")
    assert "| auto | 2 | 1 | 0 | 1 | 4 | 1 | 1 |" in text
    assert "![Scores on rough](figures/strip-rough.png)" in text
    for name in ("strip-rough", "field-profiles"):
        assert (folder / "figures" / f"{name}.png").stat().st_size > 5000
        assert b"<svg" in (folder / "figures" / f"{name}.svg").read_bytes()
    scores = json.loads((folder / "scores.json").read_text(encoding="utf-8"))["scores"]
    assert {"suite": "rough", "problem": "bowl", "budget": 60, "method": "auto", "scores": [0.0, 0.25]} in scores


def test_a_method_without_all_its_runs_is_left_out(request_and_folder: tuple[FieldRequest, Path]) -> None:
    request, folder = request_and_folder
    cell = next(e for e in entries(request) if e.player.name == "auto").cells[1]
    cell.files(folder)[1].unlink()
    results = read(folder, request)
    assert set(results.scores[Place("rough", "bowl", 60)]) == {"ars", "random-search"}
    assert results.best["rough", "bowl"] == 1.5  # the missing run was the one that found 1


def test_a_problem_that_nobody_improves_has_no_scores(request_and_folder: tuple[FieldRequest, Path]) -> None:
    request, folder = request_and_folder
    for entry in entries(request):
        for cell in entry.cells:
            found = records.load(folder, cell)
            assert found is not None
            records.save(folder, cell, found | {"start": 0.5 if entry.problem.name == "bowl" else 5.0})
    results = read(folder, request)
    assert results.flat == [("rough", "bowl")]
    assert list(results.scores) == [Place("rough", "bowl-own", 60)]


def test_relative_scores_and_limits() -> None:
    assert relative(5.0, start=5.0, best=1.0) == 1.0
    assert relative(1e300, start=1.0, best=0.0) == 1e9
    assert standings({"a": 1.0, "b": 1.1, "c": 1.1001}) == {"a": "first", "b": "near", "c": "behind"}
    assert count_harm([1.02, 1.0201], [False, False]) == (1, 0)
    assert duel({1: 0.0}, {1: 0.005}) == (0, 1, 0)
    assert duel({1: 0.0}, {2: 0.0}) == (0, 0, 0)
    assert mean_of_medians([1e9, 0.0]) == 1.0
    assert share_below([0.0, 0.5], [0.1, 0.5]).tolist() == [0.5, 1.0]
    assert [place_of(s) for s in (0.0, 0.06, 1.5, 9.0)] == [0.0, 0.2, 1.0, 1.0]
