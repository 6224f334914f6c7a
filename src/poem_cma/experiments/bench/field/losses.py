"""What the field's page says about the losses, which have a report of their own."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from poem_cma.experiments.bench.players import PLAYERS
from poem_cma.experiments.campaign.table import Table

__all__ = ["Losses", "read_losses"]


@dataclass(frozen=True)
class Losses:
    """The outcome of the losses: one line, where their report is, and a ratio for each problem."""

    headline: str
    link: str
    table: Table


def read_losses(folder: Path, inside: Path, headline: str) -> Losses:
    """The ratios that a run of the losses has written into a folder."""
    ratios = json.loads((folder / "ratios.json").read_text(encoding="utf-8"))
    rows = [
        [
            r["problem"],
            str(r["d"]),
            _title(r["peer"], r["variant"]),
            f"{r['peer_gap']:.2g}",
            f"{r['auto_gap']:.2g}",
            f"{r['ratio']:.2f}",
        ]
        for r in ratios
    ]
    header = ["problem", "d", "best peer", "its gap", "auto's gap", "calls of the peer / of auto"]
    link = (folder / "report.html").relative_to(inside).as_posix()
    return Losses(headline, link, Table("Losses: calls of the best peer for each of ours", header, rows))


def _title(peer: str, variant: str) -> str:
    return PLAYERS[peer].title + (", tuned" if variant == "tuned" else "")
