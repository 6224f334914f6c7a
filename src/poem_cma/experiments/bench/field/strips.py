"""The picture that leads the page: methods one below the other, one dot for each problem and budget, the median marked.

The axis is the square root of the score, so that scores near 0 can be told apart; what is above 1.5 lies at its end.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

from poem_cma.experiments.bench.field.players import PLAYERS
from poem_cma.experiments.bench.field.results import FieldResults

__all__ = ["COLOURS", "END", "TICKS", "Strip", "colour", "draw_strip", "strip", "strip_html"]

END = 1.5
TICKS = (0.0, 0.01, 0.05, 0.2, 0.5, 1.0, 1.5)
COLOURS = {"ours": "#d55e00", "peer": "#0072b2", "tuned": "#7f7f7f"}


@dataclass(frozen=True)
class Dot:
    """A median score, and what it is of."""

    score: float
    label: str
    small: bool  # the smaller of two budgets


@dataclass(frozen=True)
class Row:
    """A method."""

    name: str
    title: str
    dots: tuple[Dot, ...]
    median: float
    everywhere: bool


@dataclass(frozen=True)
class Strip:
    """A suite's picture; the methods with the lowest median come first."""

    suite: str
    rows: tuple[Row, ...]
    places: int


def strip(results: FieldResults, suite: str) -> Strip | None:
    """What the picture of a suite shows; None if nothing is there."""
    places = results.of(suite)
    largest: dict[str, int] = {}
    for place in places:
        largest[place.problem] = max(place.budget, largest.get(place.problem, 0))
    rows = []
    for name in results.methods:
        dots = [
            Dot(
                results.medians[p][name],
                f"{p.problem}, {p.budget:,}: {results.medians[p][name]:.3f} (worst {max(results.scores[p][name]):.2f})",
                p.budget < largest[p.problem],
            )
            for p in places
            if name in results.medians[p]
        ]
        if dots:
            median = float(np.median([dot.score for dot in dots]))
            rows.append(Row(name, PLAYERS[name].title, tuple(dots), median, len(dots) == len(places)))
    rows.sort(key=lambda row: row.median)
    return Strip(suite, tuple(rows), len(places)) if rows else None


def colour(name: str) -> str:
    """Ours, peers, and those that are tuned."""
    return COLOURS[PLAYERS[name].role]


def place_of(score: float) -> float:
    """Where a score lies on the axis, from 0 to 1.

    Examples
    --------
    >>> place_of(0.0), place_of(0.375), place_of(80.0)
    (0.0, 0.5, 1.0)
    """
    return sqrt(min(max(score, 0.0), END) / END)


def strip_html(shown: Strip) -> str:
    """The picture as HTML and CSS: it needs no script, and its dots say what they are."""
    rows = "".join(_row(row, shown.places) for row in shown.rows)
    ticks = "".join(f'<span style="left:{100 * place_of(t):.1f}%">{t:g}{"+" if t == END else ""}</span>' for t in TICKS)
    axis = f'<div class="row axis"><div class="who"></div><div class="lane">{ticks}</div></div>'
    return (
        f'<div class="strip" id="strip-{escape(shown.suite)}">{axis}{rows}{axis}'
        '<p class="told" aria-live="polite">&nbsp;</p></div>'
    )


def _row(row: Row, places: int) -> str:
    dots = "".join(
        f'<i class="{"small" if dot.small else "full"}" style="left:{100 * place_of(dot.score):.2f}%;'
        f'top:{_height(j):.0f}%" title="{escape(dot.label)}"></i>'
        for j, dot in enumerate(row.dots)
    )
    part = "" if row.everywhere else f" <small>{len(row.dots)} of {places}</small>"
    return (
        f'<div class="row {PLAYERS[row.name].role}"><div class="who">{escape(row.title)}{part}'
        f'<b>{row.median:.2f}</b></div><div class="lane"><u style="left:{100 * place_of(1.0):.2f}%"></u>{dots}'
        f'<s style="left:{100 * place_of(row.median):.2f}%"></s></div></div>'
    )


def _height(j: int) -> float:
    """Dots that would cover each other lie at different heights."""
    return 18.0 + 64.0 * ((j * 0.618034) % 1.0)


def draw_strip(shown: Strip, folder: Path) -> list[Path]:
    """The same as PNG and SVG files."""
    import matplotlib
    from matplotlib.figure import Figure

    style: dict[Any, Any] = {
        "svg.hashsalt": "poem-cma", "svg.fonttype": "path", "font.family": "DejaVu Sans", "font.size": 9,
        "axes.spines.top": False, "axes.spines.right": False, "axes.spines.left": False,
    }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(8.0, 1.1 + 0.36 * len(shown.rows)), layout="constrained")
        axes: Any = figure.subplots()
        for height, row in enumerate(reversed(shown.rows)):
            ink = colour(row.name)
            for j, dot in enumerate(row.dots):
                y = height + (_height(j) - 50.0) / 100.0 * 0.8
                face = "none" if dot.small else ink
                axes.plot(place_of(dot.score), y, "o", ms=4.5, mec=ink, mfc=face, alpha=0.6, clip_on=False)
            middle = place_of(row.median)
            axes.plot([middle, middle], [height - 0.42, height + 0.42], color=ink, lw=3.0, clip_on=False)
        axes.axvline(place_of(1.0), color="#888888", lw=0.8, ls=":")
        labels = [
            f"{row.title}{'' if row.everywhere else f' ({len(row.dots)} of {shown.places})'}  {row.median:.2f}"
            for row in reversed(shown.rows)
        ]
        axes.set_yticks(range(len(labels)), labels)
        axes.set_xticks([place_of(t) for t in TICKS], [f"{t:g}" + ("+" if t == END else "") for t in TICKS])
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=True, axis="y", alpha=0.2)
        axes.set(xlim=(0.0, 1.0), xlabel="score: 0 is the best value known, 1 is x0", title=shown.suite)
        files = [folder / f"strip-{shown.suite}.{kind}" for kind in ("png", "svg")]
        figure.savefig(files[0], dpi=120, metadata={"Software": None})
        figure.savefig(files[1], metadata={"Date": None, "Creator": None})
    return files
