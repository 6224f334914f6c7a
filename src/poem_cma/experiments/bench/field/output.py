"""From cells' files to everything a person looks at."""

from __future__ import annotations

import json
from pathlib import Path

import poem_cma
from poem_cma.experiments.bench.field import tables
from poem_cma.experiments.bench.field.losses import Losses
from poem_cma.experiments.bench.field.page import page, rules
from poem_cma.experiments.bench.field.pictures import profile_picture
from poem_cma.experiments.bench.field.plan import FieldRequest
from poem_cma.experiments.bench.field.results import FieldResults, read
from poem_cma.experiments.bench.field.strips import Strip, draw_strip, strip
from poem_cma.experiments.campaign.cells import write_text
from poem_cma.experiments.campaign.draw import draw
from poem_cma.experiments.campaign.table import Table, markdown

__all__ = ["write"]


def write(folder: Path, request: FieldRequest, losses: Losses | None = None) -> tuple[Path, str]:
    """Write figures, tables and the report; its path, and a line that says what came out."""
    results = read(folder, request)
    strips = [made for suite in request.suites if (made := strip(results, suite)) is not None]
    for each in strips:
        draw_strip(each, folder / "figures")
    if (profiles := profile_picture(results)) is not None:
        draw(profiles, folder / "figures")
    shown = [
        tables.wins_table(results),
        tables.means_table(results),
        tables.duel_table(results),
        *(tables.suite_table(results, each.suite) for each in strips),
        tables.players_table(results),
    ]
    write_text(folder / "scores.json", json.dumps(_records(results), indent=1, allow_nan=False) + "\n")
    write_text(folder / "report.md", _markdown(results, strips, shown, losses))
    write_text(folder / "report.html", page(results, strips, profiles, shown, losses))
    return folder / "report.html", tables.headline(results)


def _markdown(results: FieldResults, strips: list[Strip], shown: list[Table], losses: Losses | None) -> str:
    line, problems = tables.headline(results), len(results.starts)
    parts = [
        f"## All methods, {results.request.scale.name} run: {problems} problems, {len(results.methods)} methods\n",
        f"{line[0].upper()}{line[1:]}. {tables.details(results)}".rstrip() + "\n",
        *(f"* {note}\n" for note in results.request.notes),
        *(f"![Scores on {each.suite}](figures/strip-{each.suite}.png)\n" for each in strips),
        *(f"### {t.title}\n\n{markdown(t.header, t.rows)}" for t in shown[:1] if t.rows),
        *([_losses(losses)] if losses else []),
        *(f"### {t.title}\n\n{markdown(t.header, t.rows)}" for t in shown[1:] if t.rows),
        "### How it was measured\n\n" + "".join(f"* {rule}\n" for rule in rules(results)),
    ]
    return "\n".join(parts)


def _losses(losses: Losses) -> str:
    line, table = losses.headline, losses.table
    return f"### {table.title}\n\n{line[0].upper()}{line[1:]}.\n\n{markdown(table.header, table.rows)}"


def _records(results: FieldResults) -> dict[str, object]:
    return {
        "poem_cma": poem_cma.__version__,
        "scale": results.request.scale.name,
        "best": {f"{suite}/{name}": value for (suite, name), value in results.best.items()},
        "scores": [
            {"suite": p.suite, "problem": p.problem, "budget": p.budget, "method": name, "scores": scores}
            for p, methods in results.scores.items()
            for name, scores in methods.items()
        ],
    }
