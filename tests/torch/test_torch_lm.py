"""The benchmark of language models, in a cut for a CPU: what Poem with nothing set does beside MeZO."""

from __future__ import annotations

import json
import pathlib
import sys

import pytest

pytest.importorskip("sklearn", reason="the benchmark shares its tasks with others on scikit-learn's data")
pytest.importorskip("matplotlib", reason="the benchmark draws its curves")
sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "benchmarks"))
import torch_lm


def test_it_learns_in_every_precision_and_never_ends_above_its_first_loss(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch_lm, "RATES", {"full": (3e-4,), "lora": (3e-3,)})
    command = ["torch_lm.py", "--size", "cut", "--passes", "300", "--seeds", "1", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", command)
    torch_lm.main()
    results = [json.loads(line) for line in (tmp_path / "torch_lm.jsonl").read_text().splitlines()]
    mine = [r for r in results if r["rate"] is None]
    assert {(r["kind"], r["precision"]) for r in mine} == {
        (kind, precision) for kind in ("full", "lora") for precision in torch_lm.PRECISIONS
    }
    for r in mine:
        assert r["curve"][-1][1] < r["curve"][0][1], r
    assert (tmp_path / "torch_lm.png").stat().st_size > 10_000
    printed = capsys.readouterr().out
    assert printed.count("| full |") == printed.count("| lora |") == 3
    monkeypatch.setattr(
        sys, "argv", ["torch_lm.py", "--table", str(tmp_path / "torch_lm.jsonl"), "--out", str(tmp_path)]
    )
    torch_lm.main()
    assert capsys.readouterr().out in printed
