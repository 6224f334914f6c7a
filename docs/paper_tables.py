"""Put the tables of a run into docs/paper.md.

    python docs/paper_tables.py results/full

The text between the two marks is replaced by the run's report.md; everything else on the page is left as it is.
"""

from __future__ import annotations

import pathlib
import sys

PAGE = pathlib.Path(__file__).with_name("paper.md")
BEGIN, END = "<!-- tables: begin -->\n", "<!-- tables: end -->\n"


def insert(page: pathlib.Path, *folders: str) -> None:
    """Replace what is between the marks by the tables of one or more runs."""
    text = page.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    tables = "\n".join(pathlib.Path(folder, "report.md").read_text(encoding="utf-8") for folder in folders)
    page.write_text(f"{before}{BEGIN}\n{tables}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    insert(PAGE, sys.argv[1])
