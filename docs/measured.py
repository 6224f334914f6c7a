"""Run the commands whose output pages show, and put what they print into the pages.

    python docs/measured.py docs/which.md [docs/design_notes.md]     # two minutes, and an hour

A line `<!-- measured: python benchmarks/NAME.py ... -->` stands before a table or a fenced block, which is replaced by
what the command prints. Numbers in the sentences around it are written by hand.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

#: The mark, and the table or the block below it.
_MEASURED = re.compile(
    r"^<!-- measured: python (?P<command>.+?) -->\n\n?(?P<shown>(?:\|.*\n)+|```\n(?:.*\n)*?```\n)", flags=re.M
)


def commands(text: str) -> list[str]:
    """The commands of a page, in their order."""
    return [found["command"] for found in _MEASURED.finditer(text)]


def renewed(text: str) -> str:
    """The page, with what its commands print now."""
    return _MEASURED.sub(_renewed, text)


def _renewed(found: re.Match[str]) -> str:
    command = [sys.executable, *shlex.split(found["command"])]
    printed = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.rstrip()
    shown = f"{printed}\n" if found["shown"].startswith("|") else f"```\n{printed}\n```\n"
    return found[0].replace(found["shown"], shown)


if __name__ == "__main__":
    for page in map(Path, sys.argv[1:]):
        page.write_text(renewed(page.read_text(encoding="utf-8")), encoding="utf-8")
