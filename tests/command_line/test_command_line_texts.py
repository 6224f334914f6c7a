"""Texts that a store holds are shown and exported as texts: no terminal and no spreadsheet takes orders from them."""

from __future__ import annotations

import csv
import json
import os
import pathlib
import sqlite3
from typing import Any

import numpy as np
import pytest
from runs import P, run
from typer.testing import CliRunner

from poem_cma.command_line.cli import app
from poem_cma.store.layout import crc

ESCAPES = "\x1b]0;gotcha\x07\x1b[2J\x1b[31mred\u202e\x9b2J\r\nsecond line \udce9"


def command(*words: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error."""
    result = CliRunner().invoke(app, list(words))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def harmless(text: str) -> bool:
    return all(c.isprintable() or c == "\n" for c in text)


def test_show_prints_names_and_messages_without_their_escapes(tmp_path: pathlib.Path) -> None:
    def fun(x: np.ndarray, i: int) -> float:
        if i % 5 == 0:
            raise RuntimeError(ESCAPES)
        return P.fun(x, i)

    run(fun, store=tmp_path / "run.db", name=ESCAPES, budget=60)
    code, out, err = command("show", str(tmp_path / "run.db"))
    assert code == 0
    assert harmless(out + err)
    assert out.count("]0;gotcha") == 2
    assert r"\x1b]0;gotcha\x07\x1b[2J\x1b[31mred\u202e\x9b2J\r\nsecond line \udce9" in out.replace("\n", "")


def test_resume_prints_what_it_would_run_without_its_escapes(tmp_path: pathlib.Path) -> None:
    store = tmp_path / "run.db"
    run(store=store, budget=60)
    text = json.dumps({"folder": ESCAPES, "target": ESCAPES + ":f", "x0": [0.0]})
    db = sqlite3.connect(store)
    db.execute("INSERT OR REPLACE INTO document VALUES (?, ?, ?)", ("launch", text, crc("launch", text)))
    db.commit()
    db.close()
    code, out, err = command("resume", str(store))
    assert code == 1
    assert harmless(out + err)
    assert r"going on with \x1b]0;gotcha" in err


def test_the_result_of_a_run_is_printed_without_escapes(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odd.py").write_text(
        f"def f(x):\n    if x[0] > 0: raise RuntimeError({ESCAPES!r})\n    return float(x @ x)\n"
    )
    _, out, err = command("minimize", "odd.py:f", "--x0", "0,0", "--budget", "60", "--seed", "1")
    assert harmless(out + err)
    assert r"\x1b]0;gotcha" in out


@pytest.mark.parametrize("begins", ["=", "+", "-", "@", "\t", "\r"])
def test_no_text_in_a_csv_begins_a_formula(tmp_path: pathlib.Path, begins: str) -> None:
    """Reasons of failures are the only texts; numbers stay numbers."""
    store = tmp_path / "run.db"
    run(store=store, budget=60, fun=lambda x, i: float("nan") if i % 5 == 0 else -P.fun(x, i))
    text = begins + "cmd|'/C calc'!A0"
    db = sqlite3.connect(store)
    for probe, point, attempt in db.execute("SELECT probe, point, attempt FROM failure").fetchall():
        row: tuple[Any, ...] = (probe, point, attempt, text)
        db.execute("INSERT OR REPLACE INTO failure VALUES (?, ?, ?, ?, ?)", (*row, crc(*row)))
    db.commit()
    db.close()
    assert command("export", str(store))[0] == 0
    with open(tmp_path / "run.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    failed = [row["failure"] for row in rows if row["failure"]]
    assert len(failed) > 3
    assert set(failed) == {"'" + text}
    assert min(float(row["value"]) for row in rows if row["value"]) < 0.0
    assert command("export", str(store), "--format", "json")[0] == 0
    calls = json.loads((tmp_path / "run.json").read_text())["calls"]
    assert {call["failure"] for call in calls} == {None, text}


@pytest.mark.parametrize("kind", ["csv", "json", "parquet", "db"])
@pytest.mark.parametrize("link", ["symbolic", "hard"])
def test_an_export_is_not_written_through_a_link_that_somebody_planted(
    tmp_path: pathlib.Path, kind: str, link: str
) -> None:
    if kind == "parquet":
        pytest.importorskip("pyarrow", reason="Parquet is written by pyarrow")
    mine, target = tmp_path / "mine.txt", tmp_path / f"out.{kind}"
    mine.write_text("precious")
    for name in (f"out.{kind}-part", f"out.{kind}"):
        (os.symlink if link == "symbolic" else os.link)(mine, tmp_path / name)
    run(store=tmp_path / "run.db", budget=60)
    code, _, err = command("export", str(tmp_path / "run.db"), "--format", kind, "--out", str(target))
    assert mine.read_text() == "precious"
    if code == 0:
        assert not target.is_symlink()
        assert target.stat().st_size > 1000
    else:
        assert kind == "db"
        assert "has several names" in err
