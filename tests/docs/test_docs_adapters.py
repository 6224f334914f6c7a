"""The pages on adapters, pictures and structures: every block runs, and prints what the page says."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))
from blocks import agree  # noqa: E402

BLOCK = re.compile(
    r"```(python|sh)(?: title=\"([^\"]+)\")?\n(.*?)```(?:\n\n```text title=\"output\"\n(.*?)```)?", flags=re.S
)
QUIET = {"PYTHONWARNINGS": "ignore", "COLUMNS": "100", "TQDM_DISABLE": "1"}


@pytest.mark.parametrize(("page", "blocks"), [("integrations.md", 5), ("pictures.md", 3), ("structures.md", 4)])
def test_every_block_runs_and_prints_what_is_written(page: str, blocks: int, tmp_path: pathlib.Path) -> None:
    path = f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = 0
    for language, title, code, expected in BLOCK.findall((ROOT / "docs" / page).read_text(encoding="utf-8")):
        name = title or "block.py"
        if language == "python":
            (tmp_path / name).write_text(code, encoding="utf-8")
        if title and "pc.minimize" not in code:
            continue  # a module for what follows
        command = [sys.executable, name] if language == "python" else ["bash", "-euc", code]
        done = subprocess.run(
            command, cwd=tmp_path, env=os.environ | QUIET | {"PATH": path}, capture_output=True, text=True, timeout=300,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{code}\n{done.stderr[-2000:]}"
        if expected:
            assert agree(expected, done.stdout), f"{code}\n{done.stdout}"
        ran += 1
    assert ran == blocks


def test_the_pictures_of_the_page_are_there() -> None:
    page = (ROOT / "docs" / "pictures.md").read_text(encoding="utf-8")
    pictures = re.findall(r"\]\((images/[a-z]+\.png)\)", page)
    assert len(pictures) == 3
    for picture in pictures:
        assert (ROOT / "docs" / picture).stat().st_size > 10_000
