"""From cells' files to everything a person looks at; nothing is computed here but medians, ratios and profiles."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import poem_cma
from poem_cma.experiments.bench import report, tables
from poem_cma.experiments.bench.pictures import pictures
from poem_cma.experiments.bench.plan import Request
from poem_cma.experiments.bench.ratios import Ratio, ratios
from poem_cma.experiments.bench.results import Results, read
from poem_cma.experiments.bench.solved import ACCURACIES, make_profiles
from poem_cma.experiments.campaign.cells import write_text
from poem_cma.experiments.campaign.draw import draw
from poem_cma.experiments.campaign.table import Table, markdown

__all__ = ["write"]


def write(folder: Path, request: Request) -> tuple[Path, str]:
    """Write figures, tables and the report; its path, and a line that says what came out."""
    results = read(folder, request)
    found = ratios(results.problems)
    profiles = [made for tau in ACCURACIES if (made := make_profiles(results, tau)) is not None]
    drawn = pictures(results, profiles, found)
    for picture in drawn:
        draw(picture, folder / "figures")
    shown = [
        tables.ratio_table(found, request.scale.budget),
        tables.overview(results, profiles),
        *map(tables.accuracy_table, profiles),
        tables.noise_table(results),
        tables.finals(results),
        tables.tuning_table(results),
        tables.settings_table(results),
    ]
    settings = {
        "scale": asdict(request.scale), "problems": request.problems, "methods": request.players,
        "notes": request.notes, "poem_cma": poem_cma.__version__,
    }  # fmt: skip
    write_text(folder / "settings.json", json.dumps(settings, indent=1) + "\n")
    write_text(folder / "ratios.json", json.dumps(_records(found), indent=1) + "\n")
    write_text(folder / "report.md", _markdown(results, shown[:-1], found))
    write_text(folder / "report.html", report.page(results, drawn, shown, found))
    return folder / "report.html", report.headline(found)


def _markdown(results: Results, shown: list[Table], found: list[Ratio]) -> str:
    rules = "".join(f"* {rule}\n" for rule in report.rules(results))
    scale, line = results.request.scale, report.headline(found)
    parts = [f"## {scale.name.capitalize()}: {scale.budget:,} calls, {len(results.problems)} problems\n"]
    parts.append(f"{line[0].upper()}{line[1:]}.\n")
    parts += [f"* {note}\n" for note in results.request.notes]
    parts += [f"### {t.title}\n\n{markdown(t.header, t.rows)}" for t in shown if t.rows]
    parts.append(f"### How it was measured\n\n{rules}")
    return "\n".join(parts)


def _records(found: list[Ratio]) -> list[dict[str, object]]:
    return [
        {
            "problem": r.problem.name, "d": r.problem.d, "peer": r.peer.player.name, "variant": r.peer.variant,
            "peer_gap": r.peer.final, "auto_gap": r.ours.final, "peer_calls": r.peer_calls, "auto_calls": r.our_calls,
            "ratio": r.value,
        }
        for r in found
    ]  # fmt: skip
