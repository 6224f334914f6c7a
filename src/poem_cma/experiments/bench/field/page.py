"""The field's page: pictures and the table of wins first, then everything behind them."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files

import poem_cma
from poem_cma.experiments.bench.field import tables
from poem_cma.experiments.bench.field.losses import Losses
from poem_cma.experiments.bench.field.players import PLAYERS
from poem_cma.experiments.bench.field.results import FieldResults
from poem_cma.experiments.bench.field.strips import Strip, strip_html
from poem_cma.experiments.campaign import page as shell
from poem_cma.experiments.campaign.picture import Picture
from poem_cma.experiments.campaign.table import Table

__all__ = ["page", "rules"]

_HINT = (
    "One dot for each problem and budget, hollow for the smaller of two budgets; the bar is the median, which is also "
    "the number beside the name. Orange: ours. Grey: tuned with the judge. Point at a dot, or touch it, for its name."
)


def rules(results: FieldResults) -> list[str]:
    """How it was measured."""
    ours = ", ".join(PLAYERS[name].title for name in results.methods if PLAYERS[name].role == "ours")
    return [
        "A score is (f(x) - best) / (f(x0) - best), where f is the judge's value of the point that a run returns, and "
        "best is the lowest judged value of any run of any method on that problem, with any budget. The judge is f "
        "itself or the mean over fixed samples; only the methods marked as tuned see it.",
        "Every call of F counts, and no method gets more than its budget. Every budget is a run of its own.",
        "First: the median over the seeds is within 0.005 of the lowest. A run ends worse than x0 if its score is "
        "above 1.02; it said so if it failed or its message has a warning. A median above 2 counts as 2 in means.",
        "Samples have numbers: with equal seeds, all methods have the same sequence. Where noise is not shared, every "
        "evaluation has noise of its own.",
        "Peers have their defaults and, where they need a scale, a quarter of the box (of the smallest box around a "
        "simplex) or 1; points outside the domain are projected before they are evaluated. Ours "
        f"({ours or 'none here'}) are evaluated where they ask.",
        *(f"{name} ({suite}) is left out of the scores: no run ended below x0." for suite, name in results.flat),
    ]


def page(
    results: FieldResults,
    strips: Sequence[Strip],
    profiles: Picture | None,
    shown: Sequence[Table],
    losses: Losses | None,
) -> str:
    """The whole document; the first three tables lead, the last one says who plays."""
    style, script = (
        (files("poem_cma.experiments.bench.field") / f"field.{kind}").read_text("utf-8") for kind in ("css", "js")
    )
    request = results.request
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in request.notes)
    suites = ", ".join(request.suites)
    losses_link = '<a href="#losses">Losses</a> ' if losses else ""
    head = f"""<style>{style}</style><header>
<h1>The field</h1>
<p>poem-cma {poem_cma.__version__} and its peers on {len(results.starts)} black boxes: {escape(suites)}. Mode:
{escape(request.scale.name)}. 0 is the best value known, 1 is x0.</p>
<p><strong>{escape(tables.headline(results))}</strong></p>
<p>{escape(tables.details(results))}</p>
{notes}
<nav><a href="#scores">Scores</a> <a href="#outcome">Outcome</a> {losses_link}<a href="#profiles">Profiles</a>
<a href="#tables">Tables</a> <a href="#players">Players</a> <a href="#rules">Rules</a></nav>
</header>"""
    pictures = "".join(f"<h3>{escape(each.suite)}</h3>{strip_html(each)}" for each in strips)
    items = "".join(f"<li>{escape(rule)}</li>" for rule in rules(results))
    parts = [
        head,
        f'<section id="scores"><h2>Scores</h2><p>{_HINT}</p>{pictures}</section>',
        shell.section("outcome", "Outcome", (), shown[:3]),
        _losses(losses) if losses else "",
        shell.section("profiles", "Profiles", [profiles] if profiles else (), ()),
        shell.section("tables", "Tables", (), shown[3:-1]),
        shell.section("players", "Players", (), shown[-1:]),
        f'<section id="rules"><h2>How it was measured</h2><ul>{items}</ul></section>',
        f"<script>{script}</script>",
    ]
    return shell.page("poem-cma: the field", "\n".join(parts))


def _losses(losses: Losses) -> str:
    return (
        f'<section id="losses"><h2>Losses</h2><p>Problems whose least value is known: {escape(losses.headline)}. '
        f'<a href="{escape(losses.link)}">The report of the losses</a>.</p>{shell.table(losses.table)}</section>'
    )
