"""The code and the commands of the pages on long runs and on the command line run as they stand."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parent.parent
BLOCK = re.compile(r"```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)```", flags=re.S)


def blocks(page: str) -> list[tuple[str, str, str]]:
    return BLOCK.findall((ROOT / "docs" / page).read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", ["long_runs.md", "command_line.md"])
def test_every_block_runs(page: str, tmp_path: pathlib.Path) -> None:
    """In the order of the page, in one folder: files with a title are written, Python and shell blocks are run."""
    environment = os.environ | {
        "PATH": f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "100",
        "PYTHONPATH": str(tmp_path),
    }  # fmt: skip
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    ran = 0
    for language, title, code in blocks(page):
        assert language in ("python", "sh", "toml", "text", "c"), language
        if title:
            (tmp_path / title).write_text(code, encoding="utf-8")
        if language == "python" and title:
            if "pc.minimize" not in code:
                continue  # a module or a program for what follows
            command = [sys.executable, title]
        elif language == "python":
            (tmp_path / "block.py").write_text(code, encoding="utf-8")
            command = [sys.executable, "block.py"]
        elif language == "sh":
            if "examples/program" in code and shutil.which(os.environ.get("CC", "cc")) is None:
                pytest.skip("no C compiler here: the example of a compiled simulator was not run")
            command = ["bash", "-euc", code]
        else:
            continue
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200, check=False
        )
        assert done.returncode == 0, f"{code}\n{done.stderr[-2000:]}"
        ran += 1
    assert ran >= 4
