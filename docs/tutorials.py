"""Run the tutorials, and write their pages and notebooks.

    python docs/tutorials.py [NAME ...]      # all of examples/tutorials, or some of them; about a minute

A tutorial is a Python file with cells: `# %% [markdown]` begins text, in comments, and `# %%` begins code. The cells
are run in their order, in one namespace and one folder. What a cell prints, and the pictures that it saves, are shown:

* in `docs/tutorials/NAME.md`, the page, with the pictures beside it as `NAME-1.png`, `NAME-2.png`, ...
* in `docs/tutorials/NAME.ipynb`, the notebook, which holds its pictures.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
SOURCES = HERE.parent / "examples" / "tutorials"
PAGES = HERE / "tutorials"

_MARK = re.compile(r"^# %%(?P<text> \[markdown\])?$", flags=re.M)


class Cell(NamedTuple):
    """A part of a tutorial."""

    text: str
    is_code: bool


class Output(NamedTuple):
    """What a cell of code has printed, and the pictures that it has saved (PNG)."""

    printed: str = ""
    pictures: tuple[bytes, ...] = ()


def names() -> list[str]:
    """The tutorials, in alphabetical order."""
    return sorted(path.stem for path in SOURCES.glob("*.py"))


def cells(source: str) -> list[Cell]:
    """The cells of a file; nothing may stand before the first mark."""
    before, *parts = _MARK.split(source)
    if before.strip():
        raise ValueError("the file must begin with a line `# %%` or `# %% [markdown]`")
    return [
        Cell(text.strip("\n") if mark is None else re.sub(r"^# ?", "", text.strip("\n"), flags=re.M), mark is None)
        for mark, text in zip(parts[::2], parts[1::2], strict=True)
    ]


def execute(parts: list[Cell], name: str, folder: Path) -> list[Output]:
    """Run the cells of code; an empty output for each cell of text."""
    import matplotlib as mpl

    mpl.use("Agg")
    space: dict[str, Any] = {"__name__": "__main__"}
    outputs = []
    with contextlib.chdir(folder):
        for number, part in enumerate(parts):
            known = set(folder.glob("*.png"))
            with contextlib.redirect_stdout(io.StringIO()) as out:
                if part.is_code:
                    exec(compile(part.text, f"{name}, cell {number}", "exec"), space)
            new = sorted(set(folder.glob("*.png")) - known, key=lambda path: path.stat().st_mtime_ns)
            outputs.append(Output(out.getvalue(), tuple(path.read_bytes() for path in new)))
    return outputs


def markdown(parts: list[Cell], outputs: list[Output], name: str) -> str:
    """The page."""
    shown, pictures = [], 0
    for part, output in zip(parts, outputs, strict=True):
        shown.append(f"```python\n{part.text}\n```" if part.is_code else part.text)
        if output.printed:
            shown.append(f'```text title="output"\n{output.printed.rstrip()}\n```')
        for picture in output.pictures:
            pictures += 1
            shown.append(f"![What the code above draws]({name}-{pictures}.png){'{.wide}' * _is_wide(picture)}")
    title, _, rest = "\n\n".join(shown).partition("\n")
    where = f"A [notebook]({name}.ipynb) with its outputs; the same as a file: `python examples/tutorials/{name}.py`."
    return f"{title}\n\n{where}\n{rest}\n"


def notebook(parts: list[Cell], outputs: list[Output]) -> dict[str, Any]:
    """The notebook, in format 4.5."""
    found, count = [], 0
    for number, (part, output) in enumerate(zip(parts, outputs, strict=True)):
        cell: dict[str, Any] = {"id": f"cell-{number}", "metadata": {}, "source": part.text.splitlines(keepends=True)}
        if part.is_code:
            count += 1
            cell |= {"cell_type": "code", "execution_count": count, "outputs": _as_json(output)}
        else:
            cell |= {"cell_type": "markdown"}
        found.append(cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": found, "metadata": about, "nbformat": 4, "nbformat_minor": 5}


def outputs_of(book: dict[str, Any]) -> list[Output]:
    """What a notebook shows below its cells."""
    found = []
    for cell in book["cells"]:
        given = cell.get("outputs", [])
        printed = "".join("".join(one["text"]) for one in given if one["output_type"] == "stream")
        pictures = [one["data"]["image/png"] for one in given if one["output_type"] == "display_data"]
        found.append(Output(printed, tuple(map(base64.b64decode, pictures))))
    return found


def write(name: str, folder: Path = PAGES) -> None:
    """Run a tutorial, and write its page, its pictures and its notebook."""
    parts = cells((SOURCES / f"{name}.py").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as place:
        outputs = execute(parts, name, Path(place))
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob(f"{name}-*.png"):
        old.unlink()
    for number, picture in enumerate((p for output in outputs for p in output.pictures), 1):
        (folder / f"{name}-{number}.png").write_bytes(picture)
    (folder / f"{name}.md").write_text(markdown(parts, outputs, name), encoding="utf-8")
    text = json.dumps(notebook(parts, outputs), indent=1, ensure_ascii=False)
    (folder / f"{name}.ipynb").write_text(text + "\n", encoding="utf-8")


def _is_wide(picture: bytes) -> bool:
    """Whether a picture (PNG) has several panels beside each other, for which a phone is too narrow."""
    width, height = (int.from_bytes(picture[at : at + 4], "big") for at in (16, 20))
    return width > 2.5 * height


def _as_json(output: Output) -> list[dict[str, Any]]:
    printed = output.printed.splitlines(keepends=True)
    stream = [{"name": "stdout", "output_type": "stream", "text": printed}] if printed else []
    return stream + [
        {"data": {"image/png": base64.b64encode(picture).decode()}, "metadata": {}, "output_type": "display_data"}
        for picture in output.pictures
    ]


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for chosen in sys.argv[1:] or names():
        begin = time.perf_counter()
        write(chosen)
        print(f"{chosen}: {time.perf_counter() - begin:.0f} s")
