"""The examples of the gallery run, and their pages show what a full run has printed."""

from __future__ import annotations

import json
import os
import pathlib
import re
import runpy
import shutil
import subprocess
import sys
from typing import Any

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PAGES = ROOT / "docs" / "gallery"
NAMES = [
    "f1_classifier", "policy_search", "digits_attack", "epidemic", "portfolio_cvar", "external_program",
    "effective_dimension",
]  # fmt: skip
TABLES = runpy.run_path(str(ROOT / "docs" / "gallery_tables.py"))


def stored(name: str) -> dict[str, Any]:
    return json.loads((PAGES / f"{name}.json").read_text(encoding="utf-8"))


def page(name: str) -> str:
    return (PAGES / f"{name}.md").read_text(encoding="utf-8")


def run(name: str, out: pathlib.Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "examples" / f"{name}.py"), "--quick", "--out", str(out)]
    return subprocess.run(command, cwd=out, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.parametrize("name", NAMES)
def test_the_small_setting_runs(name: str, tmp_path: pathlib.Path) -> None:
    if name == "external_program" and shutil.which(os.environ.get("CC", "cc")) is None:
        pytest.skip("no C compiler here: the example of a compiled simulator was not run")
    done = run(name, tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stderr == ""
    kept = json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))
    assert kept["quick"]
    for row in kept["rows"]:
        assert re.search(" +".join(map(re.escape, row)), done.stdout), row  # the table as printed is the table as kept
    rows = [row[0] for row in kept["rows"]]
    if "breast_cancer takes its place" in done.stdout:  # the page was made where the data were
        rows = [row.replace("breast_cancer", "mushrooms") for row in rows]
    missing = set(re.findall(r"^(\w+) is left out", done.stdout, flags=re.M))
    assert rows == [row[0] for row in stored(name)["rows"] if row[0].split()[0] not in missing]
    look_at(tmp_path / f"{name}.png")


@pytest.mark.parametrize("name", NAMES)
def test_the_page_shows_a_full_run(name: str) -> None:
    kept, text = stored(name), page(name)
    assert not kept["quick"]
    before, rest = text.split(TABLES["BEGIN"])
    table, after = rest.split(TABLES["END"])
    assert table == f"\n{TABLES['markdown'](kept)}\n"
    assert f"]({name}.png)" in before + after
    look_at(PAGES / f"{name}.png")
    words = re.sub(r"`[^`]*`|^    .*$", "", before + after, flags=re.M)
    for number in re.findall(r"\d+\.\d+", words):  # what the words say is in the table
        assert re.search(rf"(?<!\d){re.escape(number)}(?!\d)", table), number


@pytest.mark.parametrize("name", NAMES)
def test_the_code_on_the_page_is_that_of_the_example(name: str) -> None:
    source = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
    assert len(source.splitlines()) < 100
    shown = [line.strip() for line in page(name).splitlines() if line.startswith("    ")]
    assert f"python examples/{name}.py" in shown
    for line in shown:
        assert line in source or line == f"python examples/{name}.py", line


def test_the_index_names_every_page_and_nothing_else() -> None:
    assert re.findall(r"\]\((\w+)\.md\)", page("index")) == NAMES
    assert {path.stem for path in PAGES.glob("*.md")} == {"index", *NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_a_page_ends_with_a_choice_and_has_its_thumbnail(name: str) -> None:
    from PIL import Image, ImageChops

    assert "\n## What to pick\n\n" in page(name)
    assert f"](thumbs/{name}.png)" in page("index")
    shown = Image.open(PAGES / "thumbs" / f"{name}.png").convert("RGB")
    made = TABLES["thumbnail"](PAGES / f"{name}.png")
    assert shown.size == made.size
    assert max(high for _, high in ImageChops.difference(shown, made).getextrema()) < 32


def test_a_data_set_that_is_missing_is_replaced(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, value in {
        "POEM_CMA_DATA": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "POEM_CMA_MIRROR": "http://127.0.0.1:9/",
    }.items():  # fmt: skip
        monkeypatch.setenv(variable, value)
    for name in ("effective_dimension", "f1_classifier"):
        done = run(name, tmp_path)
        assert done.returncode == 0, done.stderr[-2000:]
        assert "breast_cancer takes its place" in done.stdout


def test_a_missing_package_is_named_in_one_line(tmp_path: pathlib.Path) -> None:
    missing = "No module named 'gymnasium'"
    (tmp_path / "gymnasium.py").write_text(f"raise ModuleNotFoundError({missing!r})", encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, str(ROOT / "examples" / "policy_search.py"), "--quick"]
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == f'{missing}: pip install "poem-cma[gallery]"\n'


def test_a_quick_run_does_not_come_on_a_page(tmp_path: pathlib.Path) -> None:
    there = tmp_path / "epidemic.md"
    there.write_text(page("epidemic"), encoding="utf-8")
    folder = tmp_path / "results"
    folder.mkdir()
    shutil.copyfile(PAGES / "f1_classifier.png", folder / "epidemic.png")
    kept = stored("epidemic") | {"about": "Another run", "rows": [["a", "1"]]}
    (folder / "epidemic.json").write_text(json.dumps(kept | {"quick": True}), encoding="utf-8")
    with pytest.raises(SystemExit, match="full run"):
        TABLES["insert"](there, folder)
    assert there.read_text(encoding="utf-8") == page("epidemic")
    (folder / "epidemic.json").write_text(json.dumps(kept), encoding="utf-8")
    TABLES["insert"](there, folder)
    after = there.read_text(encoding="utf-8")
    assert "Another run.\n\n| method | error in boys a day |\n| --- | --- |\n| a | 1 |\n" in after
    for mark, part in ((TABLES["BEGIN"], 0), (TABLES["END"], 1)):
        assert after.split(mark)[part] == page("epidemic").split(mark)[part]
    assert (tmp_path / "epidemic.png").read_bytes() == (PAGES / "f1_classifier.png").read_bytes()
    assert (tmp_path / "thumbs" / "epidemic.png").is_file()


def look_at(picture: pathlib.Path) -> None:
    """It is a picture with something on it, on white, which reads on light and dark pages and in print."""
    import numpy as np
    from PIL import Image

    pixels = np.asarray(Image.open(picture).convert("RGBA"))
    assert min(pixels.shape[:2]) > 300
    assert (pixels[[0, 0, -1, -1], [0, -1, 0, -1]] == 255).all()
    assert 0.01 < (pixels != 255).any(axis=2).mean() < 0.5
