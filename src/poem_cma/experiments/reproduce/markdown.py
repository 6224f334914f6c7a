"""report.md: the story, the claims and the tables as plain Markdown, to quote from."""

from __future__ import annotations

from poem_cma.experiments.campaign.table import Table
from poem_cma.experiments.campaign.table import markdown as _table
from poem_cma.experiments.reproduce import tables
from poem_cma.experiments.reproduce.claims import Claim, count
from poem_cma.experiments.reproduce.results import Results
from poem_cma.experiments.reproduce.story import sentences

__all__ = ["text"]


def text(results: Results, claims: list[Claim]) -> str:
    """All of it."""
    counts = ", ".join(f"{verdict}: {number}" for verdict, number in count(claims).items())
    rows = [(c.where, c.claim, c.paper, c.ours, f"**{c.verdict}**", c.remark) for c in claims]
    story = "\n".join(f"{j}. {sentence}" for j, sentence in enumerate(sentences(results, claims), 1))
    parts = [f"### The story\n\n{story}\n"]
    parts += [
        f"### Claims\n\n{counts}.\n\n{_table(('where', 'claim', 'the paper', 'ours', 'verdict', 'remark'), rows)}"
    ]
    shown: list[Table] = []
    if results.fig1 is not None:
        shown.append(tables.readings(results.fig1))
    for s in results.sets or ():
        shown += tables.set_tables(s, results.request.scale)
    if results.sets:
        shown.append(tables.spectra(results.sets))
    if results.measured is not None and results.fits is not None:
        shown += tables.exponents(results.measured, results.fits)
    parts += [f"### {t.title}\n\n{_table(t.header, t.rows)}" for t in shown]
    return "\n".join(parts)
