"""A grid small enough for the tests, on the sets that need no network, and the command as a user runs it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from poem_cma.experiments.campaign.cells import Cell
from poem_cma.experiments.reproduce.data import PAPER_SETS
from poem_cma.experiments.reproduce.plan import PARTS, Request, cells_of, groups, missing, work
from poem_cma.experiments.reproduce.scale import QUICK

TINY = replace(
    QUICK, name="tiny", seeds=2, side_seeds=1, iterations=50, dimensions=(10, 20), figure1_seeds=1, spectrum_seeds=2,
    ambient=(8, 12, 16), intrinsic=(2, 3, 4), table_seeds=2, most_calls=1000,
)  # fmt: skip

REQUEST = Request(PARTS, TINY, tuple((paper, paper.stand_in) for paper in PAPER_SETS))


def compute(folder: Path, cells: list[Cell] | None = None) -> int:
    """Compute what is missing, here and now; how many cells that was."""
    todo = missing(folder, cells_of(REQUEST) if cells is None else cells)
    for group in groups(todo):
        work(folder, group)
    return len(todo)


def without_network(folder: Path) -> dict[str, str]:
    """An environment in which no set can be had but those of scikit-learn."""
    (folder / "data").mkdir(parents=True, exist_ok=True)
    places = {"POEM_CMA_DATA": str(folder / "data"), "XDG_CACHE_HOME": str(folder / "cache")}
    return os.environ | places | {"POEM_CMA_MIRROR": "http://127.0.0.1:9/", "NO_PROXY": "*", "OMP_NUM_THREADS": "1"}


def command(*arguments: str) -> list[str]:
    """The command line with the interpreter that runs the tests."""
    return [sys.executable, "-c", "from poem_cma.command_line.cli import main; main()", *arguments]


def run_command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return subprocess.run(
        command(*arguments), env=without_network(folder), capture_output=True, text=True, timeout=120, check=False
    )


def kill_and_finish(
    folder: Path, out: Path, cells: int, *arguments: str
) -> tuple[subprocess.CompletedProcess[str], dict[Path, int]]:
    """Kill the command and its workers when it has made so many cells, run it to its end; and the times of these."""
    process = subprocess.Popen(
        command(*arguments), env=without_network(folder), start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    deadline = time.monotonic() + 90
    while len(list(out.glob("cells/*/*.json"))) < cells and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = {p: p.stat().st_mtime_ns for p in out.glob("cells/*/*.json")}
    assert len(before) >= cells
    assert not (out / "report.html").exists()
    finished = run_command(folder, *arguments)
    assert finished.returncode == 0, finished.stderr
    return finished, before


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def browser() -> str:
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("no chromium on this machine; install it (Debian: apt-get install chromium) to test the page")
    return found


def browse(profile: Path, page: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """Open a page without a window; the console's messages are on standard error."""
    common = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars")
    log = ("--enable-logging=stderr", "--virtual-time-budget=20000", f"--user-data-dir={profile}")
    arguments = [browser(), *common, *log, *flags, page.as_uri()]
    return subprocess.run(arguments, capture_output=True, text=True, timeout=90, check=True)
