"""Files with right checksums and numbers that no run can come to: refused when they are read, by a field's name."""

from __future__ import annotations

import hashlib
import io
import json
import pathlib
import sqlite3
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from cases import CASES, D, draw
from inside import phase_of
from typer.testing import CliRunner

import poem_cma as pc
from poem_cma.command_line.cli import app
from poem_cma.store import StoreError
from poem_cma.store.layout import crc

Table = dict[str, Any]

#: Where a run is: a case of `cases`, the phase in which it is looked at, and settings.
MOMENTS = {
    "near": ("auto near", "near", {}),
    "far": ("auto far", "far", {}),
    "noiseless": ("auto noiseless", "exact", {}),
    "compared": ("auto far", "judge", {}),
    "poem": ("poem", "step", {}),
    "poem, steps ahead": ("poem", "step", {"ahead": 3, "scale": np.full(D, 2.0)}),
    "poem-cma": ("poem-cma", "step", {}),
    "poem-cma, learning": ("poem-cma", "learn", {}),
}

#: Fields that may be NaN, because they are not known at first, or have failed values in them.
MAY_BE_NAN = {
    "run.steps", "run.diameter", "run.lipschitz", "run.distance", "last.eta", "last.g_norm", "last.value",
    "last.spread", "shown.value", "shown.spread", "search.F", "search.unit", "walk.known", "judge.values",
    "scan.shares", "scan.falls", "scan.changes", "search.curvature", "slopes.squares", "slopes.normal",
    "slopes.right", "slopes.total", "noise.both", "noise.all", "noise.rest", "noise.short", "noise.squares",
    "evidence.total", "evidence.squares", "history.table", "values",
}  # fmt: skip

#: What a run has come to.
PARTS = ("run.", "state.", "counts.", "flight.", "history.s", "history.table", "spectrum.")

#: What says how to read the rest: x0, for one, how many variables there are.
APART = (".kind", ".version", ".length", "run.x0")


def table_of(content: bytes) -> Table:
    """The leaves of a file by name."""
    with np.load(io.BytesIO(content[content.index(b"\n") + 1 :])) as file:
        arrays = dict(file)
    return {**json.loads(arrays.pop("header").tobytes()), **arrays}


def file_of(table: Table) -> bytes:
    """A file of these leaves, with the right checksum."""
    arrays = {name: value for name, value in table.items() if isinstance(value, np.ndarray)}
    header = {name: value for name, value in table.items() if name not in arrays}
    body = io.BytesIO()
    np.savez(body, **arrays, header=np.frombuffer(json.dumps(header).encode(), dtype=np.uint8))
    digest = hashlib.sha256(body.getvalue()).hexdigest()
    return f"poem-cma optimizer, format 18, sha256 {digest}\n".encode() + body.getvalue()


def run_at(moment: str) -> pc.Optimizer:
    """A run some steps into the phase, with a few values told of the step under way."""
    name, phase, settings = MOMENTS[moment]
    method, fun, _ = CASES[name]
    opt = pc.Optimizer(np.zeros(D), method=method, domain=pc.Ball(5.0), budget=600, seed=0, **settings)
    more = 30
    while more:
        probe = opt.ask()
        assert probe is not None, "the phase was not reached"
        opt.tell(probe, [fun(x, n) for x, n in zip(probe.points, probe.numbers, strict=True)])
        more -= phase_of(opt) == phase
        if phase in ("judge", "learn") and phase_of(opt) == phase:
            break
    return opt


def senseless(name: str, value: Any) -> Iterator[Any]:
    """What cannot stand in a field that holds this value."""
    may_be_nan = any(name.endswith(known) for known in MAY_BE_NAN)
    if isinstance(value, bool | str):
        yield 3.5
    elif isinstance(value, int | float):
        yield "text"
        yield 10**400
        if not may_be_nan:
            yield float("nan")
        if isinstance(value, int):
            yield -2
    elif isinstance(value, np.ndarray):
        yield np.array(["text"])
        if value.size and not may_be_nan and value.dtype.kind == "f":
            yield np.full_like(value, np.nan)
        if value.shape == (D,) and not may_be_nan:
            yield np.ones(D + 1, value.dtype)
            yield np.ones((D, D), value.dtype)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_senseless_number_in_any_field_is_refused_by_its_name(tmp_path: pathlib.Path, moment: str) -> None:
    run_at(moment).save(tmp_path / "run")
    whole = table_of((tmp_path / "run").read_bytes())
    tried = 0
    for name, value in whole.items():
        if not name.startswith(PARTS) or name.endswith(APART):
            continue
        for other in list(senseless(name, value))[tried % 2 :: 2]:  # by turns: a file takes some milliseconds
            (tmp_path / "bad").write_bytes(file_of(whole | {name: other}))
            with pytest.raises(ValueError, match="is not a usable poem-cma optimizer file") as caught:
                pc.Optimizer.load(tmp_path / "bad")
            (line,) = str(caught.value).splitlines()
            assert name.split(".")[-1] in line, (name, other)
            tried += 1
    assert tried > 60


@pytest.mark.parametrize(
    ("name", "value"),
    [("seed", -1), ("seed", "one"), ("sign", 0.5), ("scale", -1.0), ("scale", np.ones(D + 1)), ("run.x0", np.ones(0)),
     ("run.x0", np.full(D, np.nan)), ("counts.nfev", 0), ("flight.0.sizes", np.array([7, 7]))],
)  # fmt: skip
def test_what_the_run_was_made_with_must_make_sense_too(tmp_path: pathlib.Path, name: str, value: Any) -> None:
    run_at("poem").save(tmp_path / "run")
    whole = table_of((tmp_path / "run").read_bytes())
    (tmp_path / "bad").write_bytes(file_of(whole | {name: value}))
    with pytest.raises(ValueError, match="is not a usable poem-cma optimizer file"):
        pc.Optimizer.load(tmp_path / "bad")


def test_one_record_in_the_place_of_another_is_refused(tmp_path: pathlib.Path) -> None:
    run_at("far").save(tmp_path / "run")
    whole = table_of((tmp_path / "run").read_bytes())
    table = {name: value for name, value in whole.items() if not name.startswith("state.gate.")}
    table |= {f"state.gate{name[11:]}": value for name, value in whole.items() if name.startswith("state.clock.")}
    (tmp_path / "bad").write_bytes(file_of(table))
    with pytest.raises(ValueError, match=r"state\.gate must be Gate"):
        pc.Optimizer.load(tmp_path / "bad")


def test_a_store_whose_snapshot_makes_no_sense_is_refused_and_left_alone(tmp_path: pathlib.Path) -> None:
    def change(name: str, value: Any) -> bytes:
        path = tmp_path / "run.db"
        path.unlink(missing_ok=True)
        run(100)
        db = sqlite3.connect(path)
        row = db.execute("SELECT id, calls, remarks, state FROM snapshot").fetchone()
        row = (*row[:3], file_of(table_of(row[3]) | {name: value}))
        db.execute("INSERT OR REPLACE INTO snapshot VALUES (?, ?, ?, ?, ?)", (*row, crc(*row)))
        db.commit()
        db.close()
        return path.read_bytes()

    def run(budget: int) -> None:
        settings: Table = {"sample": draw, "method": "poem", "budget": budget, "seed": 0}
        pc.minimize(CASES["poem"].fun, np.zeros(D), store=tmp_path / "run.db", **settings)

    for name, value in {"state.r_bar": float("nan"), "state.t": -5, "counts.nfev": 99, "state.x": np.zeros(2)}.items():
        before = change(name, value)
        with pytest.raises(StoreError) as caught:
            pc.minimize(
                CASES["poem"].fun,
                np.zeros(D),
                sample=draw,
                method="poem",
                budget=200,
                seed=0,
                store=tmp_path / "run.db",
            )
        assert len(str(caught.value).splitlines()) == 1
        assert name.split(".")[-1] in str(caught.value) or "was told 99 calls" in str(caught.value)
        assert (tmp_path / "run.db").read_bytes() == before
        assert CliRunner().invoke(app, ["show", str(tmp_path / "run.db")]).exit_code == 0
