"""A report as one HTML file with everything in it: charts that answer to the finger, and no need for a network."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from importlib.resources import files

from poem_cma.experiments.campaign import charts
from poem_cma.experiments.campaign.picture import Picture
from poem_cma.experiments.campaign.table import Table

__all__ = ["html_table", "page", "picture", "section", "table"]


def page(title: str, body: str) -> str:
    """The whole document."""
    assets = files("poem_cma.experiments.campaign") / "page"
    style, script = ((assets / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<main>
{body}
</main>
<script>{charts.plotly_script()}</script>
<script>{script}</script>
</body>
</html>
"""


def section(name: str, title: str, drawn: Iterable[Picture], shown: Iterable[Table]) -> str:
    """A heading, charts, and the tables behind them."""
    content = "".join(map(picture, drawn)) + "".join(map(table, shown))
    return f'<section id="{name}"><h2>{escape(title)}</h2>{content}</section>'


def picture(picture: Picture) -> str:
    """One chart for each panel."""
    boxes = "".join(
        f'<figure><figcaption>{escape(panel.title)}</figcaption><div class="chart" id="{picture.name}-{j}">'
        f'<script type="application/json">{charts.chart(panel)}</script></div></figure>'
        for j, panel in enumerate(picture.panels)
    )
    return f"<h3>{escape(picture.title)}</h3><div class='charts'>{boxes}</div><p>{escape(picture.caption)}</p>"


def table(table: Table) -> str:
    """A table with its heading."""
    rows = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in table.rows]
    return f"<h3>{escape(table.title)}</h3>{html_table(table.header, rows)}"


def html_table(header: Iterable[str], rows: Iterable[str], kind: str = "") -> str:
    """A table that can be copied; the rows are HTML already."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return (
        f'<div class="table"><button type="button" class="copy">copy</button><div class="scroll"><table class="{kind}">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></div>"
    )
