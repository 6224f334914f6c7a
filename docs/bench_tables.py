"""Put the tables of runs of the losses into docs/benchmarks.md.

    python docs/bench_tables.py results/bench-full results/bench

The text between the two marks is replaced by the report.md of each run, without the sections that the page leaves to
report.html. Everything else on the page is left as it is.
"""

from __future__ import annotations

import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from paper_tables import insert

#: The sections of report.md that the page leaves to report.html: every problem, method and setting, profiles, rules.
LEFT_OUT = re.compile(
    r"Calls of the best peer|All methods|Problems solved to|Median gap at the end|Defaults and grids"
    r"|How it was measured"
)


def selected(report: str) -> str:
    """The report without the sections that are left out."""
    first, *sections = re.split(r"^(?=### )", report, flags=re.M)
    return first + "".join(s for s in sections if not LEFT_OUT.match(s.removeprefix("### ")))


def main(*runs: str) -> None:
    """Select, then insert."""
    with tempfile.TemporaryDirectory() as folder:
        for number, run in enumerate(runs):
            report = pathlib.Path(run, "report.md").read_text(encoding="utf-8")
            pathlib.Path(folder, str(number)).mkdir()
            pathlib.Path(folder, str(number), "report.md").write_text(selected(report), encoding="utf-8")
        page = pathlib.Path(__file__).with_name("benchmarks.md")
        insert(page, *(f"{folder}/{number}" for number in range(len(runs))))


if __name__ == "__main__":
    main(*sys.argv[1:])
