"""The reproduction from end to end: cells of 50 iterations through to the page, resuming, and a real browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from reproduce_helpers import REQUEST, browse, compute, contents, kill_and_finish, run_command

from poem_cma.experiments.campaign import execute
from poem_cma.experiments.reproduce.claims import count, rows
from poem_cma.experiments.reproduce.output import write
from poem_cma.experiments.reproduce.pictures import pictures
from poem_cma.experiments.reproduce.plan import cells_of, groups, missing, work
from poem_cma.experiments.reproduce.results import read
from poem_cma.experiments.reproduce.story import sentences

HORIZON = ("--iterations", "50", "--seeds", "1", "--jobs", "2")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything in the small grid, computed and written."""
    folder = tmp_path_factory.mktemp("results")
    assert compute(folder) > 100
    write(folder, REQUEST)
    return folder


def test_everything_is_written(results: Path) -> None:
    drawn = [p.name for p in pictures(read(results, REQUEST))]
    assert len(drawn) == 6
    for name in drawn:
        assert (results / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (results / "figures" / f"{name}.svg").read_text()
    page = (results / "report.html").read_text()
    assert "https://" not in re.sub(r"<script>.*?</script>", "", page, flags=re.S)  # nothing to fetch
    assert "stands in for mushrooms" in page
    assert str(results) not in page


def test_every_claim_has_a_verdict_and_is_on_the_page(results: Path) -> None:
    claims = json.loads((results / "claims.json").read_text())
    page = (results / "report.html").read_text()
    assert len(claims) >= 35
    assert all(c["verdict"] in ("holds", "holds in part", "does not hold", "not decided", "not run") for c in claims)
    # The paper's numbers on its own sets do not apply to what stands in for them.
    not_run = [c["claim"] for c in claims if c["verdict"] == "not run"]
    assert not_run == [c["claim"] for c in claims if c["claim"].startswith(("mushrooms:", "w8a:"))]
    rows = page.split('<section id="claims">')[1].split("</section>")[0].count("<tr>")
    assert rows == 1 + len(claims)
    assert len((results / "claims.csv").read_text().splitlines()) == 1 + len(claims)


def test_the_page_opens_with_the_story_and_the_figures(results: Path) -> None:
    page = (results / "report.html").read_text()
    sections = re.findall(r'<section id="([^"]+)">', page)
    assert sections[:5] == ["story", "figure1", "figure2", "claims", "table1"]
    story = page.split('<section id="story">')[1].split("</section>")[0]
    assert story.count("<li>") == 10
    assert "in ten sentences" in story


def test_the_story_is_made_from_the_results(results: Path) -> None:
    found = read(results, REQUEST)
    claims = rows(found)
    told = sentences(found, claims)
    assert found.sets is not None
    for number in count(claims).values():
        assert re.search(rf"\b{number} ", told[-1])
    floor = np.median([float(r["dual"]) for r in found.sets[0].restricted])
    assert f"{floor:.3f} on {found.sets[0].name}" in " ".join(told)
    # Another part, or other results, and the story is another one.
    assert len(sentences(replace(found, fig1=None), claims)) == 8
    assert len(sentences(replace(found, sets=None, fits=None), claims)) == 3
    for value, where in ((9.0, "no set"), (0.0, "every set")):
        for curve in (c for s in found.sets for c in s.curves if c.method == "poem-cma"):
            curve.output_uncounted[:] = value
        assert sentences(found, claims)[-1].endswith(f"POEM-CMA is ahead of POEM on {where}.")


def test_there_is_nothing_left_to_do_and_writing_again_changes_no_byte(results: Path, tmp_path: Path) -> None:
    assert missing(results, cells_of(REQUEST)) == []
    shutil.copytree(results / "cells", tmp_path / "cells")
    write(tmp_path, REQUEST)
    assert contents(tmp_path) == contents(results)


def test_processes_give_the_same_bytes(results: Path, tmp_path: Path) -> None:
    some = cells_of(REQUEST)[::9]
    execute.run(tmp_path, groups(some), 2, lambda cell: None, work)
    made, before = contents(tmp_path), contents(results)
    assert len(made) == 2 * len(some)
    assert made == {name: before[name] for name in made}


def test_a_killed_run_goes_on_where_it_was(tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ("reproduce", "fig2", *HORIZON, "--out", str(out))
    finished, before = kill_and_finish(tmp_path, out, 5, *arguments)
    already, of = map(int, re.findall(r"(\d+) of (\d+) cells are there already", finished.stderr)[0])
    assert 5 <= already < of
    assert {p: p.stat().st_mtime_ns for p in before} == before
    assert (out / "report.html").exists()
    assert finished.stderr.count("stands in for it") == 2

    started = time.monotonic()
    again = run_command(tmp_path, *arguments)
    assert f"all {of} cells are there already" in again.stderr
    assert time.monotonic() - started < 30


def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from poem_cma.experiments.reproduce import command as module

    assert run_command(tmp_path, "reproduce", "fig3").returncode == 2
    assert run_command(tmp_path, "reproduce", "--seeds", "0").returncode == 2
    (tmp_path / "file").write_text("")
    assert run_command(tmp_path, "reproduce", "fig1", "--out", str(tmp_path / "file")).returncode == 2
    monkeypatch.setattr(module, "find_spec", lambda name: None if name == "plotly" else True)
    with pytest.raises(module.Stopped, match=r'plotly not installed: pip install "poem-cma\[experiments\]"'):
        module.reproduce("fig1", full=False, seeds=1, jobs=1, out=tmp_path)


def test_help_is_quick_and_names_the_options(tmp_path: Path) -> None:
    helped = run_command(tmp_path, "reproduce", "--help")
    assert helped.returncode == 0
    for option in ("--full", "--quick", "--seeds", "--jobs", "--out"):
        assert option in helped.stdout
    assert run_command(tmp_path, "--version").stdout.startswith("poem-cma ")
    heavy = (
        "import sys, poem_cma.command_line.cli; print(*{'scipy', 'matplotlib', 'plotly', 'sklearn'} & set(sys.modules))"
    )
    assert run_python(heavy) == ""


def run_python(code: str) -> str:
    import sys

    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_the_page_in_a_browser(results: Path, tmp_path: Path) -> None:
    page = results / "report.html"
    seen = browse(tmp_path / "profile", page, "--dump-dom")
    console = [line for line in seen.stderr.splitlines() if "CONSOLE" in line]
    assert console == []
    charts = sum(len(p.panels) for p in pictures(read(results, REQUEST)))
    assert f'data-charts="{charts}"' in seen.stdout
    boxes = seen.stdout.split('<div class="chart')[1:]
    assert len(boxes) == charts + seen.stdout.count('<div class="charts')
    drawn = [box for box in boxes if box.startswith((' js-plotly-plot"', '"')) and "main-svg" in box]
    assert len(drawn) == charts
    claims = json.loads((results / "claims.json").read_text())
    table = seen.stdout.split('<section id="claims">')[1].split("</section>")[0]
    assert table.count("<tr>") == 1 + len(claims)
    assert table.count("badge") == len(claims)


@pytest.mark.parametrize("width", [1280, 390])
def test_screenshots(results: Path, tmp_path: Path, width: int) -> None:
    # A window is never narrower than 500 pixels, a frame in it is.
    frame = (
        f'<iframe src="{(results / "report.html").as_uri()}" style="border:0;width:{width}px;height:3000px"></iframe>'
    )
    (tmp_path / "frame.html").write_text(f'<body style="margin:0">{frame}</body>')
    picture = tmp_path / "page.png"
    size = f"--window-size={max(width, 500)},3000"
    browse(tmp_path / "profile", tmp_path / "frame.html", f"--screenshot={picture}", size)
    assert picture.stat().st_size > 50_000
