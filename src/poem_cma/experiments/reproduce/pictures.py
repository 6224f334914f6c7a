"""What the pictures show, before anything is drawn: panels of lines with bands, made from the results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from poem_cma.experiments.campaign.picture import Line, Panel, Picture
from poem_cma.experiments.reproduce.fig1 import PAPER, REGIMES
from poem_cma.experiments.reproduce.fig2 import DISTANCES, METHODS
from poem_cma.experiments.reproduce.fits import Fit, Measured
from poem_cma.experiments.reproduce.results import Results
from poem_cma.experiments.reproduce.summary2 import Curve, SetSummary
from poem_cma.experiments.reproduce.table1 import FIXED_D, FIXED_K

__all__ = ["VARIANTS", "pictures"]

#: How the names of pictures end that show a figure in other settings.
VARIANTS = "-variants"

COLOURS = {
    "poem-cma": "#d55e00", "poem": "#0072b2", "tpbco": "#009e73", "tpge": "#cc79a7", "rsnso": "#b8860b",
    "few": "#cc79a7", "theory": "#0072b2", "filtered": "#d55e00", "population": "#7f7f7f", "gradients": "#009e73",
}  # fmt: skip


def pictures(results: Results) -> list[Picture]:
    """All that can be drawn from what there is."""
    found: list[Picture] = []
    if results.fig1 is not None:
        found.append(_figure1(results.fig1))
    for s in results.sets or ():
        found += _figure2(s, results.request.scale.iterations, results.request.scale.beyond)
    if results.measured is not None and results.fits is not None:
        found.append(_table1(results.measured, results.fits))
    return found


def _figure1(found: dict[str, Any]) -> Picture:
    curves, d = found["families"][found["nearest"]], np.array(found["d"])
    lines = [
        _over_seeds(
            REGIMES[name],
            d,
            curves[name].T,
            COLOURS[name],
            "solid" if name in ("few", "theory", "filtered") else "dashed",
        )
        for name in REGIMES
    ]
    if d[-1] == 500:
        lines.append(Line("the paper, d = 500", [500, 500], list(PAPER.values()), "#888888", points=True))
    seeds = len(curves["few"][0])
    caption = (
        f"Synthetic set: {found['nearest']}; the one of {len(found['families'])} readings that comes nearest to the "
        f"paper's two numbers. Medians and quartiles over {seeds} seeds, d_true = 5, n = 5000, batch 1."
    )
    panel = Panel("Estimated effective dimension", "ambient dimension d", "d*", lines, ticks=found["d"])
    return Picture("figure1", "Figure 1: effective dimension against ambient dimension", caption, [panel])


def _figure2(s: SetSummary, T: int, beyond: int) -> Iterator[Picture]:
    far = T * beyond
    floor = float(np.median([float(r["dual"]) for r in s.restricted])) - s.f_star
    levels = [(floor, "least value in POEM-CMA's subspace")]
    early = [_gap_line(s, c, METHODS[c.method], T, "output_uncounted") for c in _main(s, T)]
    longest = [s.curve(m, far) or s.curve(m, T) for m in METHODS]
    late = [_gap_line(s, c, METHODS[c.method], far, "output") for c in longest if c is not None]
    loop = "calls of the main loop, 2 t"
    gap, horizon = "f(output) − f*", [(2 * T, "the horizon of the other panel")]
    yield Picture(
        f"figure2-{s.name}", f"Figure 2: hinge loss on {s.title}",
        f"Medians and quartiles over seeds; f* = {float(s.optimum['primal']):.5f} (primal), "
        f"{float(s.optimum['dual']):.5f} (dual). Shared ξ; initial distance {DISTANCES[0]:g}. TPBCO and RSNSO are "
        "given the number of iterations beforehand, so each horizon is a run of its own.",
        [
            Panel(f"{s.title}: as the paper plots, without preliminary calls", loop, gap, early, (), levels),
            Panel(f"{s.title}: all calls counted, {beyond} times beyond", "oracle calls", gap, late, horizon, levels),
        ],
    )  # fmt: skip
    side = max((c.iterations for c in s.curves if not c.paired), default=T)
    independent = [
        _gap_line(s, c, METHODS[m], side, "output")
        for m in METHODS
        if (c := s.curve(m, side, paired=False)) is not None
    ]
    dashes = dict(zip(DISTANCES, ("solid", "dashed", "dotted"), strict=True))
    distances = [
        _gap_line(s, c, f"{METHODS[m]}, {r:g}", side, "output", dashes[r])
        for m in ("poem-cma", "poem")
        for r in DISTANCES
        if (c := s.curve(m, side, initial_distance=r)) is not None
    ]
    yield Picture(
        f"figure2-{s.name}{VARIANTS}", f"Figure 2, variants on {s.title}",
        "Medians and quartiles over seeds, all calls counted. With independent ξ, the two calls of a pair draw their "
        "own examples. The other panel has shared ξ and several initial distances r_ε.",
        [
            Panel(f"{s.title}: independent ξ", "oracle calls", gap, independent),
            Panel(f"{s.title}: initial distances", "oracle calls", gap, distances, (), levels),
        ],
    )  # fmt: skip


def _main(s: SetSummary, iterations: int) -> list[Curve]:
    return [c for m in METHODS if (c := s.curve(m, iterations)) is not None]


def _gap_line(s: SetSummary, curve: Curve, label: str, T: int, point: str, dash: str = "solid") -> Line:
    shown = curve.calls <= 2 * T
    if point == "output":
        shown &= curve.calls > curve.preliminary
    return _over_seeds(
        label, curve.calls[shown], getattr(curve, point)[:, shown] - s.f_star, COLOURS[curve.method], dash
    )


def _table1(measured: list[Measured], fits: list[Fit]) -> Picture:
    panels = []
    for against, fixed in (("d", f"structure of dimension {FIXED_K}"), ("k", f"d = {FIXED_D}")):
        lines = []
        for fit in (f for f in fits if f.against == against):
            m = next(m for m in measured if (m.method, m.against, m.fraction) == (fit.method, against, fit.fraction))
            # Where the median run did not arrive there is no point.
            rows = [i for i in range(len(m.dimensions)) if np.isfinite(np.median(m.normalised[i]))]
            if rows:
                x = np.array(m.dimensions)[rows]
                exponent = f"{fit.exponent:.2f}" if fit.known else "?"
                label = f"{METHODS[fit.method]}: {exponent} (theory {fit.theory:g}), ε {fit.fraction:.0%}"
                finite = np.where(np.isfinite(m.normalised[rows]), m.normalised[rows], np.nan)
                lines.append(_over_seeds(label, x, finite.T, COLOURS[fit.method]))
        what = "ambient dimension d" if against == "d" else "dimension of the structure"
        ticks = next(m.dimensions for m in measured if m.against == against)
        panels.append(Panel(f"Calls to an ε-solution, {fixed}", what, "calls × ε² / (L D)²", lines, ticks=ticks))
    caption = (
        "Absolute loss with a low-dimensional structure and known optimum. Medians and quartiles over seeds of the "
        "calls until f − f* is the given share of its value at x0, in units of (L D)²/ε². All calls counted. No point "
        "where the median run did not arrive."
    )
    return Picture("table1", "Table 1: calls to an ε-solution", caption, panels)


def _over_seeds(label: str, x: Any, values: Any, colour: str, dash: str = "solid") -> Line:
    if len(x) == 0:  # the preliminary calls may take longer than all the rest
        return Line(label, [], [], colour)
    low, middle, high = np.nanquantile(values, [0.25, 0.5, 0.75], axis=0)
    return Line(label, np.asarray(x), middle, colour, low, high, dash)
