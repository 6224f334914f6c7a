"""Put the story and the tables of a run into docs/paper.md.

    python docs/paper_tables.py results/full [results/reproduce]

The page gets a selection of the run's report.md between its two marks, and docs/assets/paper-tables.txt all of it. From
a second run, the quick one, come the claims whose verdicts differ, and the story if the first run has none. What is
inserted says by which version of the package it was made. Everything else on the page is left as it is.
"""

from __future__ import annotations

import json
import pathlib
import re
import sys
from collections.abc import Callable

PAGE = pathlib.Path(__file__).with_name("paper.md")
ALL = pathlib.Path(__file__).with_name("assets") / "paper-tables.txt"
BEGIN, END = "<!-- tables: begin -->\n", "<!-- tables: end -->\n"
DIFFER = "<!-- verdicts: begin -->\n", "<!-- verdicts: end -->\n"
STORY = "<!-- story: begin -->\n", "<!-- story: end -->\n"
#: The sections of report.md that the page shows, and the columns of each that it leaves out.
SHOWN = {"Claims": ("remark",), "f, median [quartiles]": (), "Algorithm 2 at x0 = 0": ("M",), "Exponents of calls": ()}


def insert(page: pathlib.Path, *folders: str, shorten: Callable[[str], str] = str) -> None:
    """Replace what is between the marks by the tables of one or more runs."""
    tables = "\n".join(shorten(pathlib.Path(folder, "report.md").read_text(encoding="utf-8")) for folder in folders)
    between(page, (BEGIN, END), tables)


def between(page: pathlib.Path, marks: tuple[str, str], content: str) -> None:
    """Replace what is between two marks of a page; single asterisks, as in d*, do not begin emphasis."""
    content = re.sub(r"(?<![*\\])\*(?!\*)", r"\\*", content)
    before, rest = page.read_text(encoding="utf-8").split(marks[0])
    page.write_text(f"{before}{marks[0]}\n{content}\n{marks[1]}{rest.split(marks[1])[1]}", encoding="utf-8")


def sections(report: str) -> dict[str, str]:
    """The sections of a report by their headings."""
    found = (part.partition("\n") for part in re.split(r"^### ", report, flags=re.M)[1:])
    return {heading: content for heading, _, content in found}


def cells(line: str) -> list[str]:
    """The cells of a line of a table."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def shortened(report: str) -> str:
    """The sections that the page shows, without the columns that it leaves out."""
    parts = []
    for heading, content in sections(report).items():
        for name, absent in SHOWN.items():
            if heading.endswith(name) or heading.startswith(name):
                parts.append(f"### {heading}\n{_without(content, absent)}")
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def _without(content: str, absent: tuple[str, ...]) -> str:
    lines, kept = content.split("\n"), None
    for j, line in enumerate(lines):
        if line.startswith("|"):
            row = cells(line)
            kept = [i for i, name in enumerate(row) if name not in absent] if kept is None else kept
            lines[j] = f"| {' | '.join(row[i] for i in kept)} |"
    return "\n".join(lines)


def different(full: str, quick: str) -> str:
    """How many verdicts of two runs agree, and a table of the claims whose verdicts differ."""
    rows = [["claim", "quick", "verdict", "full", "verdict"], ["---"] * 5]
    claims = [
        {
            row[1]: row
            for line in sections(report)["Claims"].splitlines()
            if line.count("**") == 2 and (row := cells(line))
        }
        for report in (quick, full)
    ]
    for name, mine in claims[0].items():
        other = claims[1].get(name, mine)
        if mine[4] != other[4]:
            rows.append([name, mine[3], mine[4], other[3], other[4]])
    number, others = len(claims[0]), len(rows) - 2
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    return f"{number - others} of the {number} verdicts of the two runs agree.\n" + f"\n{table}" * bool(others)


def made(folder: pathlib.Path) -> str:
    """Which mode and version made a run."""
    told = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
    return f"a {told['scale']['name']} run of version {told['poem_cma']}"


def main(full: str, quick: str | None = None) -> None:
    """Renew the page and the file with all tables."""
    runs = [pathlib.Path(run) for run in (full, quick) if run]
    reports = [run.joinpath("report.md").read_text(encoding="utf-8") for run in runs]
    between(PAGE, (BEGIN, END), f"These tables come from {made(runs[0])}.\n\n{shortened(reports[0])}")
    ALL.parent.mkdir(exist_ok=True)
    ALL.write_text(reports[0], encoding="utf-8")
    for run, report in zip(runs, reports, strict=True):
        if told := sections(report).get("The story"):
            between(PAGE, STORY, f"The sentences come from {made(run)}.\n\n{told.strip()}\n")
            break
    if quick:
        between(PAGE, DIFFER, different(*reports))


if __name__ == "__main__":
    main(*sys.argv[1:])
