"""The arena from end to end with the real packages: runs, resuming, what is missing, and the page."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench_helpers import TINY
from reproduce_helpers import browse, kill_and_finish, run_command

from poem_cma.experiments.bench import command as module
from poem_cma.experiments.bench import player as player_module
from poem_cma.experiments.bench import scale
from poem_cma.experiments.bench.output import write
from poem_cma.experiments.bench.plan import Request, entries, tuned_cells, tuning_cell
from poem_cma.experiments.bench.players import PLAYERS
from poem_cma.experiments.bench.results import read
from poem_cma.experiments.campaign import records

REQUEST = Request(TINY, TINY.problems, tuple(PLAYERS))
SMALL = ("bench", "--quick", "--problems", "max-affine", "--methods", "poem,zo-sgd,scipy-powell,scipy-cobyla", "--jobs")


def run_here(folder: Path, request: Request, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the command computes, in this process; the names of the cells."""
    heard: list[str] = []

    def compute(out: Path, todo: Any, of: int, *, work: Any, then: Any, **_: Any) -> None:
        ahead = list(todo)
        while ahead:
            group = ahead.pop(0)
            work(out, group)
            heard.extend(cell.name for cell in group)
            ahead = [*(following for cell in group for following in then(cell)), *ahead]

    monkeypatch.setattr(module, "compute", compute)
    module.run(request, 1, folder)
    return heard


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All players on a noisy and a quiet problem, 300 calls each, computed and written."""
    folder = tmp_path_factory.mktemp("bench")
    with pytest.MonkeyPatch.context() as monkeypatch:
        assert len(run_here(folder, REQUEST, monkeypatch)) > 60
    write(folder, REQUEST)
    return folder


def test_everybody_has_played(results: Path) -> None:
    noisy, quiet = read(results, REQUEST).problems
    assert {c.player.name for c in noisy.curves} == {n for n, p in PLAYERS.items() if p.role in ("ours", "peer")}
    assert {c.player.name for c in quiet.curves} == set(PLAYERS)
    tuned = {c.player.name for c in noisy.curves if c.variant == "tuned"}
    assert tuned == {name for name, player in PLAYERS.items() if player.axes}
    for curve in (*noisy.curves, *quiet.curves):
        assert curve.calls[-1] == 300
        assert curve.gaps.shape[1] == len(curve.calls)
        assert curve.gaps[:, 0].min() > 0.0
        assert curve.overhead > 0.0
        assert not curve.notes or curve.player.name == "ng-ngopt"  # numpy 2.4 is too new for its model
    assert quiet.peers[0].final < 0.5


def test_a_raw_result_says_what_it_is(results: Path) -> None:
    files = sorted((results / "cells" / "run").glob("unshared-quadratic-pycma-*.json"))
    found = json.loads(files[0].read_text())
    assert set(found["settings"]) == {"problem", "method", "budget", "setting", "seed"}
    assert set(found["result"]) == {"calls", "gaps", "nfev", "seconds", "oracle_seconds", "note"}
    assert {"cma", "edition"} <= set(found["versions"])
    assert "poem_cma" not in found["versions"]  # another version of ours does not make it out of date
    ours = json.loads(next((results / "cells" / "run").glob("unshared-quadratic-auto-*.json")).read_text())
    assert {"poem_cma", "code"} <= set(ours["versions"])


def test_everything_is_written(results: Path) -> None:
    page, text = (results / "report.html").read_text(), (results / "report.md").read_text()
    assert "https://" not in re.sub(r"<script>.*?</script>", "", page, flags=re.S)  # nothing to fetch
    assert str(results) not in page
    for title in (
        "Calls of the best peer for each of ours",
        "All methods",
        "What common random numbers are worth, at the setting",
    ):
        assert title in page
    assert "| geometric mean |" in text
    for name in ("profiles-0_1", "profiles-0_01", "ratios", "problem-max-affine"):
        assert (results / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    (row,) = json.loads((results / "ratios.json").read_text())
    assert row["problem"] == "unshared-quadratic"
    assert row["ratio"] > 0.0


def test_the_page_in_a_browser(results: Path, tmp_path: Path) -> None:
    seen = browse(tmp_path / "profile", results / "report.html", "--dump-dom")
    assert [line for line in seen.stderr.splitlines() if "CONSOLE" in line] == []
    charts = 2 * 2 + 1 + 2  # two pairs of profiles, the ratios, two problems
    assert f'data-charts="{charts}"' in seen.stdout


def test_nothing_is_left_to_do_until_our_code_changes(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_here(results, REQUEST, monkeypatch) == []
    monkeypatch.setattr(player_module, "_digest", lambda parts: "other" if "auto" in parts else "same")
    todo: list[Any] = []
    monkeypatch.setattr(module, "compute", lambda out, groups, of, **_: todo.extend(itertools.chain(*groups)))
    module.run(REQUEST, 1, results)
    assert {cell.settings["method"] for cell in todo} == {"auto", "poem", "poem-cma"}  # neither is what it was
    monkeypatch.undo()
    todo.clear()
    monkeypatch.setattr(module, "compute", lambda out, groups, of, **_: todo.extend(itertools.chain(*groups)))
    monkeypatch.setattr(player_module, "_version", lambda name: "99" if name == "cmaes" else None)
    players = [name for name, player in PLAYERS.items() if player.packages == ("cmaes",)]
    module.run(replace(REQUEST, players=tuple(players)), 1, results)
    assert {cell.settings["method"] for cell in todo} == {"cmaes", "cmaes-lra", "cmaes-sep"}


def test_the_tuned_setting_is_the_best_that_was_tried(results: Path) -> None:
    entry = next(e for e in entries(REQUEST) if e.player.name == "zo-sgd")
    tuned = records.load(results, tuning_cell(entry))
    assert tuned is not None
    assert len(tuned["tried"]) == 5  # two distances, then four steps, one of which was tried with them
    assert min(tuned["tried"], key=lambda row: row["score"])["setting"] == tuned["best"]
    assert all(cell.settings["setting"] == tuned["best"] for cell in tuned_cells(entry, tuned))
    assert not {cell.settings["seed"] for cell in tuned_cells(entry, tuned)} & set(tuning_cell(entry).settings["seeds"])


def test_a_killed_run_goes_on_where_it_was(tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = (*SMALL, "2", "--out", str(out))
    finished, before = kill_and_finish(tmp_path, out, 3, *arguments)
    assert re.search(r"\d+ of \d+ cells are there already", finished.stderr)
    assert {p: p.stat().st_mtime_ns for p in before} == before
    assert (out / "report.html").exists()
    again = run_command(tmp_path, *arguments)
    assert re.search(r"all \d+ cells are there already", again.stderr)

    next(out.glob("cells/run/max-affine-poem-*.json")).unlink()
    only = run_command(tmp_path, *arguments, "--report-only")
    assert only.returncode == 0, only.stderr
    assert re.search(r"1 of \d+ cells are not there yet", only.stderr)
    text = (out / "report.md").read_text()
    assert "POEM" not in text
    assert "ZO-SGD" in text


def test_what_is_missing_is_said_and_the_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(player_module, "_version", lambda name: None if name in ("cma", "evosax", "jax") else "1")
    request = module.make_request(full=False, problems=["max-affine"], methods=None)
    assert request.notes == (
        'evosax OpenES: evosax, jax not installed (pip install "poem-cma[bench]")',
        'evosax SNES: evosax, jax not installed (pip install "poem-cma[bench]")',
        'pycma: cma not installed (pip install "poem-cma[bench]")',
    )
    assert {"auto", "cmaes", "zo-sgd"} <= set(request.players)
    assert not {"pycma", "evosax-snes"} & set(request.players)
    with pytest.raises(module.Stopped, match=r"pycma: cma not installed"):
        module.make_request(full=False, problems=["max-affine"], methods=["pycma"])
    monkeypatch.setattr(module, "find_spec", lambda name: None if name == "plotly" else True)
    with pytest.raises(module.Stopped, match=r'plotly not installed: pip install "poem-cma\[bench\]"'):
        module.bench(None, None, full=False, jobs=1, out=tmp_path)


def test_a_problem_whose_data_cannot_be_had_is_left_out(tmp_path: Path) -> None:
    named = run_command(tmp_path, "bench", "--problems", "hinge-mushrooms", "--methods", "poem", "--out", str(tmp_path))
    assert named.returncode == 1
    assert "hinge-mushrooms is left out:" in named.stderr


def test_what_is_wrong_is_said_in_one_line(tmp_path: Path) -> None:
    for option, name, line in (
        ("--problems", "max-afine", "no problem 'max-afine'; did you mean max-affine?"),
        ("--methods", "pycmaa", "no method 'pycmaa'; did you mean pycma"),
    ):
        failed = run_command(tmp_path, "bench", option, name, "--out", str(tmp_path / "out"))
        assert failed.returncode == 2
        assert failed.stderr.strip().startswith(f"poem-cma: {line}")
        assert len(failed.stderr.strip().splitlines()) == 1


def test_a_peer_that_breaks_down_keeps_what_it_had(monkeypatch: pytest.MonkeyPatch) -> None:
    from poem_cma.experiments.bench.plan import compute_runs

    def play(task: Any) -> None:
        task.values(task.x0[None].repeat(50, axis=0))
        raise FloatingPointError("out of range")

    monkeypatch.setitem(PLAYERS, "poem", replace(PLAYERS["poem"], play=play))
    (found,) = compute_runs([{"problem": "max-affine", "method": "poem", "budget": 100, "setting": {}, "seed": 0}])
    assert found["note"] == "FloatingPointError: out of range"
    assert found["nfev"] == 50
    assert found["gaps"][-1] == 1.0


@pytest.mark.parametrize("problem", ["squared-rank5-of-100", "max-affine", "unshared-quadratic"])
def test_replicas_end_where_runs_alone_do(problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the longest run of a curve must be made by itself, for the time it takes.

    Bit for bit: no problem here rounds a row otherwise among others than alone.
    """
    from poem_cma.experiments.bench.plan import compute_runs

    family = [
        {"problem": problem, "method": "auto", "budget": 600, "setting": {"method": "auto"}, "seed": seed}
        for seed in range(3)
    ]
    together = compute_runs(family)
    monkeypatch.setitem(PLAYERS, "auto", replace(PLAYERS["auto"], replicas=None))
    alone = [compute_runs([settings])[0] for settings in family]
    np.testing.assert_array_equal([run["gaps"] for run in together], [run["gaps"] for run in alone])
    assert [run["calls"] for run in together] == [run["calls"] for run in alone]
    assert len({tuple(run["gaps"]) for run in together}) == 3


def test_the_two_scales() -> None:
    assert set(scale.QUICK.problems) < set(scale.FULL.problems)
    assert scale.FULL.seeds >= 5
    assert scale.FULL.budget == 20_000
