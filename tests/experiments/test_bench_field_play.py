"""The rules of the field: calls are counted, budgets are kept, runs can be repeated, and who takes part where."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from field_stub import bowl

import poem_cma
from poem_cma import Box, Simplex
from poem_cma.experiments.bench.field import play as play_module
from poem_cma.experiments.bench.field.library import load, source_of
from poem_cma.experiments.bench.field.peers.ars import GRID
from poem_cma.experiments.bench.field.play import play, work
from poem_cma.experiments.bench.field.player import Ending
from poem_cma.experiments.bench.field.players import PLAYERS
from poem_cma.experiments.bench.field.task import WORST, FieldTask, Spent
from poem_cma.experiments.bench.players import PLAYERS as ARENA
from poem_cma.experiments.bench.provenance import source_digest
from poem_cma.experiments.campaign import records
from poem_cma.experiments.campaign.cells import Cell
from poem_cma.problems.black_box import BlackBox
from poem_cma.problems.suites import SUITES

EVERYWHERE = [name for name, player in PLAYERS.items() if not player.suites]
SIMOPT = [name for name, player in PLAYERS.items() if player.suites == ("simulators",)]
DOMAINS = {
    "no domain": None,
    "a box": Box(np.full(3, -1.0), 2.0),
    "x0 on bounds": Box(np.full(3, 0.1), 2.0),
    "a half-infinite box": Box(np.zeros(3), np.inf),
    "a simplex": Simplex(),
}


@pytest.fixture(autouse=True)
def stub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SUITES, "rough", "field_stub")
    load.cache_clear()


def need(name: str) -> None:
    for package in PLAYERS[name].missing():
        pytest.skip(f"{name} needs {package}, which is not installed")


def settings_of(name: str, problem: str = "bowl", budget: int = 45) -> dict[str, Any]:
    return {"suite": "rough", "problem": problem, "method": name, "budget": budget, "seed": 3}


@pytest.mark.parametrize("name", EVERYWHERE)
@pytest.mark.parametrize("domain", DOMAINS, ids=str)
@pytest.mark.parametrize("shared", [True, False], ids=["shared", "own"])
def test_no_player_exceeds_its_budget(name: str, domain: str, shared: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    need(name)
    made = bowl(domain=DOMAINS[domain], shared=shared)
    asked: list[Any] = []

    def fun(x: Any, xi: Any) -> float:
        asked.append(np.array(x))
        return made.fun(x, xi)

    counted = replace(made, fun=fun)
    monkeypatch.setattr(play_module, "load", lambda *_: counted)
    for budget in (11, 60):
        asked.clear()
        found = play(settings_of(name, budget=budget))
        runs = len(GRID) if name == "ars-best" else 1
        assert 0 < len(asked) <= runs * budget
        assert len(asked) == found["nfev"] or name == "ars-best"
        assert found["nfev"] <= budget
        assert 0.0 <= found["value"] < 10.0
        assert "Error" not in found["message"]
        if PLAYERS[name].role != "ours" and counted.domain is not None:
            assert all(np.allclose(counted.domain.project(x), x, atol=1e-9) for x in asked)


@pytest.mark.parametrize("name", EVERYWHERE)
@pytest.mark.parametrize("problem", ["bowl", "bowl-own"])
def test_a_cell_played_twice_has_the_same_bytes(name: str, problem: str, tmp_path: Path) -> None:
    need(name)
    cell = Cell("field", settings_of(name, problem))
    texts = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        np.random.seed(len(texts))  # noqa: NPY002  # what others have drawn before makes no difference
        work(folder, [cell])
        texts.append(cell.files(folder)[1].read_bytes())
        assert set(json.loads(cell.files(folder)[1].with_suffix(".time").read_bytes())) == {"seconds", "inside"}
    assert texts[0] == texts[1]
    if name in ("pycma", "ars", "noisyopt-spsa"):  # others may return x0 after so few evaluations
        assert json.loads(texts[0])["result"]["value"] != play(settings_of(name, problem) | {"seed": 4})["value"]


@pytest.mark.parametrize("name", SIMOPT)
def test_simopts_solvers_count_replications(name: str) -> None:
    pytest.importorskip("simopt", reason="the simulators need simoptlib")
    found = [
        play({"suite": "simulators", "problem": "example-1", "method": name, "budget": 120, "seed": seed})
        for seed in (0, 0)
    ]
    assert [f.pop("time") is not None for f in found] == [True, True]
    assert found[0] == found[1]
    assert 60 <= found[0]["nfev"] <= 120
    assert found[0]["value"] <= found[0]["start"] == 8.0


def test_simopts_solvers_leave_out_what_they_are_not_for() -> None:
    pytest.importorskip("simopt", reason="the simulators need simoptlib")
    by_name = {name: load("simulators", name) for name in ("sscont-1", "network-1", "example-2")}
    assert PLAYERS["simopt-astrodf"].takes_part(by_name["sscont-1"], 300)
    assert not PLAYERS["simopt-astrodf"].takes_part(by_name["network-1"], 300)  # a simplex
    assert not PLAYERS["simopt-astrodf"].takes_part(by_name["example-2"], 300)  # whole numbers
    assert PLAYERS["simopt-rndsrch"].takes_part(by_name["network-1"], 300)


def test_all_players_have_the_same_samples_and_own_noise_is_new_every_time() -> None:
    x = np.zeros(3)
    one, two = (FieldTask(bowl(), 50, seed=5) for _ in range(2))
    one.values(np.zeros((4, 3)) + 1.0, shared=True)
    assert one.value(x + 1.0) == two.at(x + 1.0, 1)
    assert len(set(two.values(np.ones((6, 3)), shared=True))) == 1
    assert len(set(two.values(np.ones((6, 3))))) == 6
    own = FieldTask(bowl(shared=False), 50, seed=5)
    assert len({own.at(x + 1.0, 0) for _ in range(6)}) == 6
    assert own.nfev == 6


def test_ours_have_the_samples_that_peers_have(monkeypatch: pytest.MonkeyPatch) -> None:
    made = bowl()
    seen: list[tuple[float, ...]] = []

    def fun(x: Any, xi: Any) -> float:
        seen.append(tuple(xi))
        return made.fun(x, xi)

    counted = replace(made, fun=fun)
    monkeypatch.setattr(play_module, "load", lambda *_: counted)
    play(settings_of("poem", budget=40) | {"seed": 8})
    ours = list(dict.fromkeys(seen))
    seen.clear()
    FieldTask(counted, 40, seed=8).values(np.zeros((12, 3)))
    assert ours[:12] == seen  # at the end a run compares its result with x0, on samples of their own


def test_a_request_beyond_the_budget_costs_nothing() -> None:
    task = FieldTask(bowl(), 10, seed=0)
    with pytest.raises(Spent):
        task.values(np.zeros((11, 3)))
    with pytest.raises(Spent):
        task.mean(np.zeros(3), range(11))
    assert task.nfev == 0
    task.mean(np.zeros(3), range(10))
    with pytest.raises(Spent, match="the budget of 10 evaluations is spent"):
        task.value(np.zeros(3))


def test_the_scale_that_is_told() -> None:
    box = FieldTask(bowl(domain=Box(np.full(3, -1.0), [1.0, 3.0, 7.0])), 10, 0)
    assert box.unit.tolist() == [0.5, 1.0, 2.0]
    assert [side.tolist() for side in box.bounds] == [[-1.0] * 3, [1.0, 3.0, 7.0]]
    free = FieldTask(replace(bowl(), x0=np.array([0.0, 1.0, -50.0])), 10, 0)
    assert free.unit.tolist() == [1.0, 1.0, 1.0]
    assert [side.tolist() for side in free.bounds] == [[-2.0, -1.0, -100.0], [2.0, 3.0, 0.0]]
    simplex = FieldTask(bowl(domain=Simplex(2.0)), 10, 0)
    assert simplex.unit.tolist() == [0.5] * 3
    assert [side.tolist() for side in simplex.bounds] == [[0.0] * 3, [2.0] * 3]
    half = FieldTask(bowl(domain=Box(np.zeros(3), np.inf)), 10, 0)
    assert [side.tolist() for side in half.bounds] == [[0.0] * 3, [2.1] * 3]


def test_a_player_that_breaks_down_keeps_what_it_had(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(task: FieldTask) -> Ending:
        task.value(task.x0)
        task.recommend(np.full(3, 0.3))
        raise FloatingPointError("out of range")

    def wild(task: FieldTask) -> None:
        task.recommend(np.full(3, np.nan))

    monkeypatch.setitem(PLAYERS, "ars", replace(PLAYERS["ars"], play=breaks))
    monkeypatch.setitem(PLAYERS, "poem", replace(PLAYERS["poem"], play=wild))
    found = play(settings_of("ars"))
    assert (found["value"], found["nfev"], found["said"]) == (0.0, 1, True)
    assert found["message"] == "FloatingPointError: out of range"
    assert play(settings_of("poem"))["value"] == WORST


def test_who_takes_part_where() -> None:
    small = bowl()
    assert PLAYERS["optuna-tpe"].takes_part(small, 300)
    assert not PLAYERS["optuna-tpe"].takes_part(small, 301)
    assert not PLAYERS["py-bobyqa"].takes_part(bowl(d=21), 300)
    assert not PLAYERS["pycma-2"].takes_part(small, 300)
    assert PLAYERS["pycma-2"].takes_part(bowl(suite="noisy-bbob"), 300)
    assert PLAYERS["pycma-1"].takes_part(small, 300)
    assert not PLAYERS["pycma-1"].takes_part(bowl(domain=DOMAINS["a box"]), 300)
    assert not PLAYERS["pycma-fresh"].takes_part(bowl(shared=False), 300)  # it would be pycma
    assert not any(PLAYERS[name].takes_part(small, 300) for name in SIMOPT)


@pytest.mark.parametrize(
    ("suite", "problem", "package"),
    [
        ("simulators", "cntnews-1", "simopt"), ("policies", "cartpole", "numpy"), ("rough-itself", "wall", "numpy"),
        ("noisy-bbob", "f101-gauss-sphere-d5-i1", "cocoex"),
    ],
)  # fmt: skip
def test_a_small_cell_of_each_suite(
    suite: str, problem: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(package, reason=f"the suite {suite} needs {package}")
    if suite == "rough-itself":
        suite = "rough"
        monkeypatch.setitem(SUITES, "rough", "poem_cma.problems.rough")
    for name in ("auto", "ars"):
        cell = Cell("field", settings_of(name, problem, 60) | {"suite": suite})
        work(tmp_path, [cell])
        found = records.load(tmp_path, cell)
        assert found is not None
        assert 0 < found["nfev"] <= 60
        assert np.isfinite([found["value"], found["start"]]).all()


@pytest.mark.parametrize("name", [name for name, player in PLAYERS.items() if player.role == "ours"])
def test_a_change_of_any_file_that_a_run_goes_through_makes_it_out_of_date(name: str) -> None:
    package = Path(poem_cma.__file__).parent
    used: set[str] = set()

    def note(frame: Any, *_: Any) -> None:
        file = Path(frame.f_code.co_filename)
        if file.is_relative_to(package):
            used.add(file.relative_to(package).parts[0])

    sys.setprofile(note)
    try:
        play(settings_of(name))
    finally:
        sys.setprofile(None)
    elsewhere = {"experiments", "problems", "history.py", "parameters"}  # they record a run, or pass its arguments on
    assert {"minimize.py", "run"} <= used
    assert used - elsewhere <= set(PLAYERS[name].code)


def test_the_checksum_of_a_file_that_does_not_exist_is_an_error() -> None:
    assert source_digest(("minimize.py",)) != source_digest(("minimize.py", "run"))
    with pytest.raises(FileNotFoundError, match=r"descent\.py is neither a file nor a folder"):
        source_digest(("minimize.py", "descent.py"))
    for players in (PLAYERS, ARENA):
        assert all(player.made_by() for player in players.values())
    assert all(source_of(suite) for suite in SUITES)


def test_problems_of_the_scales_exist() -> None:
    from importlib import import_module

    from poem_cma.experiments.bench.field.scale import FULL, QUICK

    for scale in (QUICK, FULL):
        assert list(scale.suites) == list(SUITES)
        for suite, what in scale.suites.items():
            module = "poem_cma.problems.rough" if suite == "rough" else SUITES[suite]
            assert set(what.problems) <= set(import_module(module).BLACK_BOXES)


def test_the_stub_is_a_black_box() -> None:
    assert isinstance(load("rough", "bowl"), BlackBox)
