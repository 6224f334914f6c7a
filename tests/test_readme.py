"""The README's code runs as it stands."""

from __future__ import annotations

import pathlib
import re

import numpy as np
import pytest

README = pathlib.Path(__file__).parent.parent / "README.md"


def test_the_code_of_the_readme_runs(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.S)
    assert len(blocks) == 3
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(README), "exec"), names)
    result = names["result"]
    assert result.fun < 0.5  # type: ignore[attr-defined]
    assert np.isfinite(result.x).all()  # type: ignore[attr-defined]
    assert (tmp_path / "run.poem").exists()
    assert "Spectrum(effective_dimension=" in capsys.readouterr().out
