"""Put the tables and pictures of a run of the suites with a judge into docs/benchmarks.md.

    python docs/field_tables.py results/full

The text between the two marks is replaced by the run's report.md, without the sections that the page leaves to
report.html. The pictures are copied to docs/images; everything else on the page is left as it is.
"""

from __future__ import annotations

import pathlib
import re
import shutil
import sys

HERE = pathlib.Path(__file__).parent
BEGIN, END = "<!-- field: begin -->\n", "<!-- field: end -->\n"
PICTURE = re.compile(r"\(figures/strip-([a-z-]+)\.png\)")

#: The sections of report.md that the page leaves to report.html: means, duels, every problem, every method, the rules.
LEFT_OUT = re.compile(
    r"Mean of the medians|One against one|.*: median score \(worst seed\)|Who plays|How it was measured"
)


def insert(page: pathlib.Path, run: pathlib.Path) -> None:
    """Replace what is between the marks, and copy the pictures it shows."""
    report = selected((run / "report.md").read_text(encoding="utf-8")).rstrip()
    text = page.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    images = page.parent / "images"
    images.mkdir(exist_ok=True)
    for suite in PICTURE.findall(report):
        shutil.copyfile(run / "figures" / f"strip-{suite}.png", images / f"field-{suite}.png")
    shown = PICTURE.sub(r"(images/field-\1.png){.larger}", report)
    page.write_text(f"{before}{BEGIN}\n{shown}\n\n{END}{after}", encoding="utf-8")


def selected(report: str) -> str:
    """The report without the sections that are left out."""
    first, *sections = re.split(r"^(?=### )", report, flags=re.M)
    return first + "".join(s for s in sections if not LEFT_OUT.match(s.removeprefix("### ")))


if __name__ == "__main__":
    insert(HERE / "benchmarks.md", pathlib.Path(sys.argv[1]))
