"""Cells: whole or not there, the same bytes for the same settings, and nothing in them that should not be."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reproduce_helpers import REQUEST, TINY, contents

from poem_cma.experiments.campaign import cells, execute
from poem_cma.experiments.campaign.cells import Cell
from poem_cma.experiments.reproduce.fig2 import METHODS
from poem_cma.experiments.reproduce.plan import COMPUTE, TOGETHER, cells_of, groups, missing, work
from poem_cma.experiments.reproduce.scale import FULL, QUICK
from poem_cma.run.joint import JointRuns, joint

CELL = Cell("toy", {"name": "a", "size": 3, "list": (1, 2), "nothing": None})
ARRAYS = {"x": np.arange(3.0), "n": 7, "far": np.inf}


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    assert not cells.finished(tmp_path, CELL)
    assert cells.load(tmp_path, CELL) is None
    cells.save(tmp_path, CELL, ARRAYS)
    loaded = cells.load(tmp_path, CELL)
    assert loaded is not None
    assert {name: value.tolist() for name, value in loaded.items()} == {"x": [0.0, 1.0, 2.0], "n": 7, "far": np.inf}


def test_the_same_cell_has_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        cells.save(tmp_path / name, CELL, ARRAYS)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert len(contents(tmp_path / "one")) == 2
    header = json.loads(CELL.files(tmp_path / "one")[1].read_text())
    assert set(header) == {"layout", "kind", "settings", "versions", "sha256"}
    assert header["settings"]["list"] == [1, 2]
    assert str(tmp_path).encode() not in b"".join(contents(tmp_path).values())


@pytest.mark.parametrize("damage", ["truncate", "remove", "other settings", "other version", "not json", "a list"])
def test_a_damaged_cell_is_not_finished(tmp_path: Path, damage: str) -> None:
    cells.save(tmp_path, CELL, ARRAYS)
    data, about = CELL.files(tmp_path)
    header = json.loads(about.read_text())
    if damage == "truncate":
        data.write_bytes(data.read_bytes()[:-10])
    elif damage == "remove":
        data.unlink()
    elif damage == "other settings":
        about.write_text(json.dumps(header | {"settings": {}}))
    elif damage == "other version":
        about.write_text(json.dumps(header | {"versions": {"poem_cma": "0"}}))
    else:
        about.write_text("[1]" if damage == "a list" else "{")
    assert not cells.finished(tmp_path, CELL)
    assert cells.load(tmp_path, CELL) is None


def test_nothing_is_pickled_and_no_part_is_left(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="pickle"):
        cells.save(tmp_path, CELL, {"x": np.array([object()])})
    assert contents(tmp_path) == {}


def test_a_failing_cell_is_named_and_the_others_are_kept(tmp_path: Path) -> None:
    good = [c for c in cells_of(REQUEST) if c.kind == "table1"][:1]
    bad = Cell("table1", {"method": "nonsense", "d": 4, "k": 2, "seed": 0, "most_calls": 100})
    heard: list[Cell] = []
    with pytest.raises(RuntimeError, match=r"table1/nonsense.*failed: ValueError: unknown method 'nonsense'"):
        execute.run(tmp_path, [good, [bad]], 1, heard.append, work)
    assert heard == good
    assert missing(tmp_path, [*good, bad]) == [bad]


@pytest.mark.parametrize("scale", [TINY, QUICK, FULL], ids=lambda s: s.name)
def test_a_plan_has_every_cell_once_and_a_function_for_it(scale: object) -> None:
    planned = cells_of(type(REQUEST)(REQUEST.parts, scale, REQUEST.sets))  # type: ignore[arg-type]
    assert len({(c.kind, c.name) for c in planned}) == len(planned)
    assert {c.kind for c in planned} == {*COMPUTE, *TOGETHER}
    assert sorted(c.name for group in groups(planned) for c in group) == sorted(c.name for c in planned)
    for group in groups(planned):
        assert len({c.settings["seed"] for c in group}) == len(group) if len(group) > 1 else True


def test_runs_that_are_computed_together_have_the_bytes_of_runs_alone(tmp_path: Path) -> None:
    """Every method, with shared and with independent xi; and where some of the seeds are there already."""
    scale = replace(TINY, seeds=4, side_seeds=3, iterations=400, table_seeds=4, most_calls=3000)
    request = type(REQUEST)(("fig2", "table1"), scale, REQUEST.sets)
    chosen = {}  # one group of each, that with the largest d
    for group in groups(c for c in cells_of(request) if c.kind in TOGETHER):
        settings = group[0].settings
        chosen.setdefault((group[0].kind, settings["method"], settings.get("paired", True)), group)
    assert len(chosen) == 3 * len(METHODS)
    joined = 0

    def count(opts: Any, before: Any) -> JointRuns:
        nonlocal joined
        joined += 1
        return joint(opts, before)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("poem_cma.experiments.reproduce.runs.joint", count)
        for what, group in chosen.items():
            before = joined
            work(tmp_path / "together", group)
            assert joined > before, what
            for cell in group[:-1]:
                work(tmp_path / "alone", [cell])
            before = joined
            work(tmp_path / "alone", *groups(missing(tmp_path / "alone", group)))
            assert joined == before, what
        work(tmp_path / "partly", group[:1])
        work(tmp_path / "partly", *groups(missing(tmp_path / "partly", group)))
    alone = contents(tmp_path / "alone")
    assert contents(tmp_path / "together") == alone
    some = contents(tmp_path / "partly")
    assert len(some) == 2 * len(group)
    assert some == {name: alone[name] for name in some}
