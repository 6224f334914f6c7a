"""What the arena's pictures show."""

from __future__ import annotations

import numpy as np

from poem_cma.experiments.bench import profiles as shapes
from poem_cma.experiments.bench.ratios import Ratio
from poem_cma.experiments.bench.results import Curve, ProblemResults, Results
from poem_cma.experiments.bench.solved import FACTORS, Profiles
from poem_cma.experiments.campaign.picture import Line, Panel, Picture

__all__ = ["pictures", "profile_picture", "ratio_picture"]

OURS = {"auto": "#d55e00", "poem": "#0072b2", "poem-cma": "#56b4e9"}
OTHERS = ("#009e73", "#cc79a7", "#b8860b", "#7f7f7f", "#6a3d9a", "#1b9e77", "#a6761d", "#e7298a")
MOST_PEERS = 5  # in a picture of one problem


def pictures(results: Results, profiles: list[Profiles], ratios: list[Ratio]) -> list[Picture]:
    """All that can be drawn from what there is."""
    found = [profile_picture(p) for p in profiles]
    if ratios:
        found.append(ratio_picture(ratios))
    return found + [_problem(p) for p in results.problems if p.curves]


def profile_picture(made: Profiles) -> Picture:
    """Performance and data profile side by side."""
    shown = [i for i, name in enumerate(made.names) if name in OURS]
    shown += [i for i in range(len(made.names)) if i not in shown][: len(OTHERS)]
    colours = _colours([made.names[i] for i in shown])
    left, right = (
        [
            Line(made.labels[i], *shapes.steps(limits, shares[i]), colours[made.names[i]], dash=_dash(made.names[i]))
            for i in shown
        ]
        for limits, shares in ((FACTORS, made.performance), (made.gradients, made.data))
    )
    y = f"share of problems with a gap of {made.accuracy:g} or less"
    panels = [
        Panel("Performance profile", "calls / least calls of all methods", y, left, shares=True),
        Panel("Data profile", "calls / (d + 1)", y, right, shares=True),
    ]
    caption = "Medians over seeds; peers tuned on each problem, ours never. The limit with gradients is left out."
    name = f"profiles-{made.accuracy:g}".replace(".", "_")
    return Picture(name, f"Profiles to a gap of {made.accuracy:g}", caption, panels)


def ratio_picture(ratios: list[Ratio]) -> Picture:
    """The ratios in order."""
    ordered = sorted(ratios, key=lambda r: r.value)
    x, y = np.arange(1, len(ordered) + 1), np.array([r.value for r in ordered])
    line = Line("one problem each", x, y, OURS["auto"], points=True)
    panel = Panel(
        "Calls of the best peer / of auto", "problems in order", "ratio", [line], levels=[(1.0, "level")],
        ticks=[int(j) for j in x[:: max(1, len(x) // 8)]],
    )  # fmt: skip
    caption = "From the least to the largest: " + ", ".join(r.problem.name for r in ordered) + "."
    return Picture("ratios", "Ratios", caption, [panel])


def _problem(p: ProblemResults) -> Picture:
    limits = [c for c in p.curves if c.player.role == "limit"]
    ours = [c for name in OURS if (c := p.curve(name)) is not None]
    best: dict[str, Curve] = {}
    for c in p.peers:
        best.setdefault(c.player.name, c)
    shown = list(best.values())[:MOST_PEERS]
    colours = _colours([c.player.name for c in shown])
    lines = [_line(c, OURS[c.player.name], bands=c.player.name == "auto") for c in ours]
    lines += [_line(c, colours[c.player.name]) for c in shown]
    lines += [Line(c.label, c.calls, c.median, "#999999", dash="dotted") for c in limits]
    title = f"{p.name}, d = {p.d}"
    panel = Panel(title, "calls, everything counted", "median gap of the recommendation", lines)
    caption = f"Ours and the {len(shown)} best peers of {len(best)}; dotted: with true gradients."
    return Picture(f"problem-{p.name}", p.name, caption, [panel])


def _line(c: Curve, colour: str, bands: bool = False) -> Line:
    low, high = np.quantile(c.gaps, [0.25, 0.75], axis=0) if bands else (None, None)
    return Line(c.label, c.calls, c.median, colour, low, high, _dash(c.player.name))


def _dash(name: str) -> str:
    return "solid" if name in OURS else "dashed"


def _colours(names: list[str]) -> dict[str, str]:
    peers = [name for name in names if name not in OURS]
    return OURS | {name: OTHERS[j % len(OTHERS)] for j, name in enumerate(peers)}
