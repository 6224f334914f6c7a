"""The code of a page, run as it stands; what it printed, put back into the page.

    python docs/blocks.py docs/index.md ...     # runs the pages and rewrites their output

How a fenced block is marked says what happens to it, in the order of the page and in one folder:

* `python`: run; the blocks of a page share their names.
* `python title="file.py"`: written to that file, and run as a script if it minimises something.
* `sh`: run by bash, where every command must succeed.
* any other with a title: written to that file.
* `text title="output"`: what the block before it printed.
* a line `<!-- not run: reason -->` before a block: left alone.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

_BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^>]+) -->\n\s*)?"
    r"^(?P<indent> *)```(?P<language>\w+)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<code>.*?)^(?P=indent)```$",
    flags=re.S | re.M,
)

#: A number as pages show them.
_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: Path
    language: str
    title: str
    code: str
    reason: str  # why it is not run, if it is not
    line: int
    place: tuple[int, int]  # where its code stands in the page

    @property
    def name(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def is_output(self) -> bool:
        return (self.language, self.title) == ("text", "output")


def pages() -> list[Path]:
    """All pages with code that are written by hand: the README and those of the site without the tutorials."""
    found = sorted((ROOT / "docs").rglob("*.md"))
    return [ROOT / "README.md", *(page for page in found if page.parent.name != "tutorials")]


def blocks(page: Path) -> list[Block]:
    """The blocks of a page in their order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            page, m["language"], m["title"] or "", _dedented(m["code"], m["indent"]), (m["reason"] or "").strip(),
            text.count("\n", 0, m.start("code")), m.span("code"),
        )
        for m in _BLOCK.finditer(text)
    ]  # fmt: skip


def run(page: Path, folder: Path, names: dict[str, Any] | None = None) -> list[tuple[Block, str]]:
    """Run the code of a page in a folder; its output blocks, each with what was printed instead."""
    names = {"__name__": "__page__"} if names is None else names
    printed, outputs = "", []
    for block in blocks(page):
        if block.is_output:
            outputs.append((block, printed))
        elif not block.reason:
            printed = _run(block, folder, names)
    return outputs


def agree(shown: str, printed: str) -> bool:
    """Whether two outputs have the same words, and numbers that differ by the rounding of another machine at most."""
    if _NUMBER.sub("0", " ".join(shown.split())) != _NUMBER.sub("0", " ".join(printed.split())):
        return False
    pairs = zip(_NUMBER.findall(shown), _NUMBER.findall(printed), strict=True)
    numbers = [(float(a.replace(",", "")), float(b.replace(",", ""))) for a, b in pairs]
    return all(abs(a - b) <= 0.1 * max(abs(a), abs(b)) + 2e-3 for a, b in numbers)


def _run(block: Block, folder: Path, names: dict[str, Any]) -> str:
    if block.title:
        (folder / block.title).write_text(block.code, encoding="utf-8")
    if block.language == "python" and not block.title:
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.chdir(folder):
            exec(compile(block.code, block.name, "exec"), names)
        return out.getvalue()
    if block.language == "python" and "pc.minimize" in block.code:
        return _command([sys.executable, block.title], block, folder)
    if block.language == "sh":
        return _command(["bash", "-euc", block.code], block, folder)
    return ""


def _command(command: list[str], block: Block, folder: Path) -> str:
    """Run a program of the page; commands find this Python's scripts, and modules of the folder."""
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "100",
        "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
    }  # fmt: skip
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=200, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"{block.name} ended with {done.returncode}:\n{block.code}\n{done.stderr[-2000:]}")
    return done.stdout


def _dedented(code: str, indent: str) -> str:
    return re.sub(f"^{indent}", "", code, flags=re.M) if indent else code


def main(paths: list[str]) -> None:
    """Run the pages and put what they print into their output blocks."""
    import tempfile

    for page in [Path(path).resolve() for path in paths] or pages():
        if not any(block.is_output for block in blocks(page)):
            continue  # nothing to renew
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "examples").symlink_to(ROOT / "examples")
            outputs = run(page, Path(folder))
        text = page.read_text(encoding="utf-8")
        for block, printed in reversed(outputs):
            begin, end = block.place
            text = text[:begin] + printed.rstrip() + "\n" + text[end:]
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
