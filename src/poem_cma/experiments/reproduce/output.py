"""From cells' files to everything a person looks at; nothing is computed here but medians."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict
from pathlib import Path

import poem_cma
from poem_cma.experiments.campaign.cells import write_text
from poem_cma.experiments.campaign.draw import draw
from poem_cma.experiments.reproduce import claims as claim_rows
from poem_cma.experiments.reproduce import markdown, report
from poem_cma.experiments.reproduce.pictures import pictures
from poem_cma.experiments.reproduce.plan import Request
from poem_cma.experiments.reproduce.results import read

__all__ = ["write"]


def write(folder: Path, request: Request) -> tuple[Path, dict[str, int]]:
    """Write figures, claims and the report; its path, and how many claims got which verdict."""
    results = read(folder, request)
    for picture in pictures(results):
        draw(picture, folder / "figures")
    claims = claim_rows.rows(results)
    records = claim_rows.as_records(claims)
    write_text(folder / "claims.json", json.dumps(records, indent=1, ensure_ascii=False) + "\n")
    write_text(folder / "claims.csv", _csv(records))
    settings = {
        "parts": request.parts, "scale": asdict(request.scale), "notes": request.notes,
        "sets": {paper.name: used for paper, used in request.sets}, "poem_cma": poem_cma.__version__,
    }  # fmt: skip
    write_text(folder / "settings.json", json.dumps(settings, indent=1) + "\n")
    write_text(folder / "report.md", markdown.text(results, claims))
    write_text(folder / "report.html", report.page(results, claims))
    return folder / "report.html", claim_rows.count(claims)


def _csv(records: list[dict[str, str]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()
