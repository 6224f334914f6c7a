"""The code and the commands of the README and of every page run as they stand, and print what the page says."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))

import blocks as pages  # noqa: E402

ELSEWHERE = ("integrations.md", "pictures.md", "structures.md")  # tests/docs/test_docs_adapters.py runs their code
PAGES = [page for page in pages.pages() if pages.blocks(page) and page.name not in ELSEWHERE]
NOT_RUN = [block for page in PAGES for block in pages.blocks(page) if block.reason]
LANGUAGES = ("python", "sh", "toml", "text", "c")


def network() -> dict[str, Any]:
    """What the page on networks takes for granted: a model, its loss, batches, and a log that was kept."""
    torch = pytest.importorskip("torch", reason="torch is not installed: the page on networks was not run")
    torch.manual_seed(0)

    class Kept:
        """The path of the run's log, which is kept when it is asked for."""

        def __fspath__(self) -> str:
            names["opt"].log.save("kept.log")
            return "kept.log"

    names = {
        "model": torch.nn.Linear(3, 2),
        "batches": [(torch.randn(8, 3), torch.randint(2, (8,))) for _ in range(4)],
        "loss_function": torch.nn.functional.cross_entropy,
        "path": Kept(),
    }
    return names


def library() -> dict[str, Any]:
    """What the paragraph on compiled functions takes for granted: a library of C."""
    import ctypes

    import numpy as np

    import poem_cma as pc

    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("no C compiler here: the example of a compiled function was not run")
    code = "double loss(int n, const double *x, void *data) { return (x[0] - 1) * (x[0] - 1); }"
    Path("model.c").write_text(code, encoding="utf-8")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", "model.so", "model.c"], check=True)
    return {"ctypes": ctypes, "np": np, "pc": pc}


TAKEN_FOR_GRANTED = {"torch.md": network, "performance.md": library}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_block_runs_and_prints_what_the_page_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert {block.language for block in pages.blocks(page)} <= set(LANGUAGES)
    if page.name == "command_line.md" and shutil.which(os.environ.get("CC", "cc")) is None:
        pytest.skip("no C compiler here: the example of a compiled simulator was not run")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    names = TAKEN_FOR_GRANTED.get(page.name, dict)()
    for block, printed in pages.run(page, tmp_path, names):
        assert pages.agree(block.code, printed), f"{block.name} says\n{block.code}but prints\n{printed}"


@pytest.mark.parametrize("block", NOT_RUN, ids=lambda block: block.name)
def test_blocks_that_are_not_run(block: Any) -> None:
    pytest.skip(f"{block.name} is not run: {block.reason}")


def test_no_block_is_overlooked() -> None:
    """A fence that the reader of blocks does not understand would pass unseen."""
    for page in pages.pages():
        fences = [line.strip() for line in page.read_text(encoding="utf-8").splitlines() if line.strip()[:3] == "```"]
        assert len(fences) % 2 == 0, f"{page.name} has a block that does not end"
        assert sum(len(fence) > 3 for fence in fences) == len(pages.blocks(page)), page.name
    assert not [block.name for block in NOT_RUN if block.language == "python"]


def test_outputs_agree_up_to_rounding() -> None:
    assert pages.agree("f = 0.1234 after 1,000 calls", "f = 0.1230   after 1,000 calls\n")
    assert not pages.agree("f = 0.12", "f = 0.14")
    assert not pages.agree("f = 0.12", "g = 0.12")
    assert not pages.agree("a 1", "a 1 2")
