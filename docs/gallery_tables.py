"""Put the tables and pictures of full runs of the examples into docs/gallery.

    python docs/gallery_tables.py results/gallery        # make gallery runs the examples, then this

For every page whose example has a result in the folder: the table goes between the two marks, result and picture beside
the page. Everything else on the page is left as it is.
"""

from __future__ import annotations

import json
import pathlib
import shutil
import sys

PAGES = pathlib.Path(__file__).with_name("gallery")
BEGIN, END = "<!-- table: begin -->\n", "<!-- table: end -->\n"


def markdown(kept: dict) -> str:
    """The table of a run, its caption above it."""
    lines = [kept["columns"], ["---"] * len(kept["columns"]), *kept["rows"]]
    return f"{kept['about']}.\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def insert(page: pathlib.Path, folder: pathlib.Path) -> None:
    """Replace what is between the marks of a page."""
    kept = json.loads((folder / f"{page.stem}.json").read_text(encoding="utf-8"))
    if kept["quick"]:
        raise SystemExit(f"{page.stem} was run with --quick: the page needs a full run")
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    page.write_text(f"{before}{BEGIN}\n{markdown(kept)}\n{END}{rest.split(END)[1]}", encoding="utf-8")
    for suffix in ("json", "png"):
        shutil.copyfile(folder / f"{page.stem}.{suffix}", page.with_suffix(f".{suffix}"))


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    for page in sorted(PAGES.glob("*.md")):
        if (folder / f"{page.stem}.json").exists():
            insert(page, folder)
            sys.stdout.write(f"{page.name}\n")
