"""The tutorials run as files, and their pages and notebooks are those of the files with what they print."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))

import blocks  # noqa: E402
import tutorials  # noqa: E402

NAMES = ["forward_passes", "noisy_simulator", "tune_with_optuna"]
NEEDS = {
    "forward_passes": ("torch", "sklearn", "matplotlib"),
    "noisy_simulator": ("matplotlib",),
    "tune_with_optuna": ("optuna", "sklearn", "matplotlib"),
}


def source(name: str) -> list[tutorials.Cell]:
    return tutorials.cells((tutorials.SOURCES / f"{name}.py").read_text(encoding="utf-8"))


def stored(name: str) -> dict[str, Any]:
    return json.loads((tutorials.PAGES / f"{name}.ipynb").read_text(encoding="utf-8"))


def test_these_are_all_tutorials() -> None:
    assert tutorials.names() == NAMES
    assert sorted(path.stem for path in tutorials.PAGES.glob("*.md")) == NAMES
    assert sorted(path.stem for path in tutorials.PAGES.glob("*.ipynb")) == NAMES
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert all(f": tutorials/{name}.md\n" in navigation for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_page_and_notebook_are_those_of_the_file(name: str) -> None:
    parts, book = source(name), stored(name)
    outputs = tutorials.outputs_of(book)
    renew = f"run: python docs/tutorials.py {name}"
    assert tutorials.notebook(parts, outputs) == book, renew
    page = (tutorials.PAGES / f"{name}.md").read_text(encoding="utf-8")
    assert tutorials.markdown(parts, outputs, name) == page, renew
    pictures = [picture for output in outputs for picture in output.pictures]
    assert len(pictures) == len(list(tutorials.PAGES.glob(f"{name}-*.png"))) > 0
    for number, picture in enumerate(pictures, 1):
        assert (tutorials.PAGES / f"{name}-{number}.png").read_bytes() == picture


@pytest.mark.parametrize("name", NAMES)
def test_the_file_runs_and_prints_what_the_page_says(name: str, tmp_path: Path) -> None:
    for module in NEEDS[name]:
        pytest.importorskip(module, reason=f"{module} is not installed: the tutorial {name} was not run")
    command = [sys.executable, str(tutorials.SOURCES / f"{name}.py")]
    environment = os.environ | {"MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=500
    )
    assert done.returncode == 0, done.stderr[-2000:]
    shown = "".join(output.printed for output in tutorials.outputs_of(stored(name)))
    assert blocks.agree(shown, done.stdout), f"the page says\n{shown}but the file prints\n{done.stdout}"
    assert list(tmp_path.glob("*.png"))


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_has_the_form_of_its_format(name: str) -> None:
    book = stored(name)
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    identities = [cell["id"] for cell in book["cells"]]
    assert len(set(identities)) == len(identities)
    code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    for cell in book["cells"]:
        needed = {"id", "cell_type", "metadata", "source"}
        assert set(cell) == (needed | {"execution_count", "outputs"} if cell in code else needed)
    for output in (one for cell in code for one in cell["outputs"]):
        if output["output_type"] == "display_data":
            assert base64.b64decode(output["data"]["image/png"]).startswith(b"\x89PNG")


def test_cells_and_their_outputs(tmp_path: Path) -> None:
    text = "# %% [markdown]\n# # Title\n#\n# Words.\n\n# %%\nfrom pathlib import Path\n\nx = 2\nprint(x)\n\n"
    text += '# %%\nPath("a.png").write_bytes(b"p")\n'
    parts = tutorials.cells(text)
    assert [part.is_code for part in parts] == [False, True, True]
    assert parts[0].text == "# Title\n\nWords."
    outputs = tutorials.execute(parts, "small", tmp_path)
    assert outputs == [tutorials.Output(), tutorials.Output("2\n"), tutorials.Output("", (b"p",))]
    page = tutorials.markdown(parts, outputs, "small")
    assert page.startswith("# Title\n\nA [notebook](small.ipynb)")
    assert '```text title="output"\n2\n```' in page
    assert "](small-1.png)" in page
    assert tutorials.outputs_of(tutorials.notebook(parts, outputs)) == outputs
    with pytest.raises(ValueError, match="must begin"):
        tutorials.cells("x = 1\n# %%\n")
