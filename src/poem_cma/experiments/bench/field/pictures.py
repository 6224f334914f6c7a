"""Profiles of the scores: on how many problems a method's median is at most so large."""

from __future__ import annotations

import numpy as np

from poem_cma.experiments.bench import profiles as shapes
from poem_cma.experiments.bench.field.players import PLAYERS
from poem_cma.experiments.bench.field.results import FieldResults
from poem_cma.experiments.bench.field.scores import share_below
from poem_cma.experiments.bench.pictures import OTHERS, OURS
from poem_cma.experiments.campaign.picture import Line, Panel, Picture

__all__ = ["profile_picture"]

LIMITS = np.geomspace(1e-3, 2.0, 60)
MOST_PEERS = 6  # in a panel
_COLOURS = {"auto": OURS["auto"], "poem": OURS["poem"], "poem-told": OURS["poem-cma"]}


def profile_picture(results: FieldResults) -> Picture | None:
    """One panel for each suite: ours, and the peers with the largest areas."""
    panels = [
        panel for suite in results.request.suites if (panel := _panel(results, suite, _peers(results))) is not None
    ]
    if not panels:
        return None
    caption = (
        f"Ours and the {MOST_PEERS} peers with the largest area in a suite; over the problems and budgets at which a "
        "method takes part."
    )
    return Picture("field-profiles", "Profiles of the scores", caption, panels)


def _peers(results: FieldResults) -> dict[str, str]:
    """The colour of every peer, the same in all panels."""
    peers = [name for name in results.methods if name not in _COLOURS]
    return {name: OTHERS[j % len(OTHERS)] for j, name in enumerate(peers)}


def _panel(results: FieldResults, suite: str, peers: dict[str, str]) -> Panel | None:
    places = results.of(suite)
    shares = {}
    for name in results.methods:
        medians = [results.medians[p][name] for p in places if name in results.medians[p]]
        if medians:
            shares[name] = share_below(medians, LIMITS)
    if not shares:
        return None
    ordered = sorted((n for n in shares if n in peers), key=lambda n: -float(shares[n].mean()))[:MOST_PEERS]
    shown = [n for n in _COLOURS if n in shares] + ordered
    lines = [
        Line(
            PLAYERS[n].title, *shapes.steps(LIMITS, shares[n]), (_COLOURS | peers)[n],
            dash="solid" if n in _COLOURS else "dashed",
        )
        for n in shown
    ]  # fmt: skip
    return Panel(suite, "score s", "share with a median of at most s", lines, shares=True)
