"""The pictures of docs/paper.md: what stalls in POEM-CMA and what mends it, and the two figures of a reproduction.

python docs/figures_paper.py [--only repair|figures] [folder of a run]    # e.g. results/reproduce; some minutes

The first is drawn from runs on the hinge loss of mushrooms, the paper's problem. The rungs between POEM and `auto`
are made by taking parts of the near search away; their gaps go into the page as a table. The two figures are those of
the run, drawn again for narrow screens.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

import poem_cma as pc
from poem_cma.auto import averages
from poem_cma.auto.near import phase, replay, walk
from poem_cma.experiments.campaign.picture import Panel
from poem_cma.experiments.reproduce.data import PAPER_SETS, Hinge, hinge
from poem_cma.experiments.reproduce.pictures import VARIANTS, pictures
from poem_cma.experiments.reproduce.plan import Request
from poem_cma.experiments.reproduce.results import read
from poem_cma.experiments.reproduce.scale import Scale
from poem_cma.problems.optimum import least_hinge_loss

IMAGES = Path(__file__).resolve().parent / "images"
PAGE = IMAGES.with_name("paper.md")
MARKS = "<!-- repair: begin -->\n", "<!-- repair: end -->\n"
SET, SEEDS, BUDGET = "mushrooms", range(5), 100_000
GRID = (300, 1000, 3000, 10_000, 30_000, 100_000)
SHOWN = (1000, 10_000, 100_000)  # the columns of the table
FONTS = {"font.size": 10, "axes.titlesize": 10, "legend.fontsize": 9}


@contextmanager
def without(*parts: str) -> Iterator[None]:
    """The near search without bisected walks, or without samples that are evaluated again."""

    def every(steps: Any, _: Any) -> list[int]:
        return [k for k, value in enumerate(steps.known) if np.isnan(value)]

    with ExitStack() as stack:
        if "bisection" in parts:
            for module in (walk, phase):
                stack.enter_context(patch.object(module, "places", every))
        if "again" in parts:
            stack.enter_context(patch.object(replay, "enough", lambda _: False))
        yield


def run(problem: Hinge, method: Any, seed: int, power: float | None = None) -> list[float]:
    """f at the output when so many evaluations of GRID are spent; at an average with this power instead, if told."""
    found: list[float] = []
    n, d = problem.shape
    opt = pc.Optimizer(np.zeros(d), method=method, domain=pc.Ball(1.0, outside=True), budget=BUDGET, seed=seed)
    mean, steps = np.zeros(d), 0
    xis: dict[int, int] = {}
    while (probe := opt.ask()) is not None:
        for number in probe.numbers:
            if number not in xis:
                xis[number] = int(np.random.default_rng([seed, number]).integers(n))
        opt.tell(probe, [problem.value(x, xis[k]) for x, k in zip(probe.points, probe.numbers, strict=True)])
        if power is not None and opt.nit > steps:
            steps = opt.nit
            mean += (1.0 + power) / (steps + power) * (opt._state.x - mean)
        while len(found) < len(GRID) and opt.nfev >= GRID[len(found)]:
            found.append(problem.full(mean if power is not None else opt.result().x))
    return found + [problem.full(mean if power is not None else opt.result().x)] * (len(GRID) - len(found))


def repair() -> tuple[Figure, str]:
    """Gap against evaluations from rung to rung, as a picture and as a table."""
    problem = hinge(SET)
    least = least_hinge_loss(problem.sparse).dual
    near, poem = pc.methods.near(), pc.methods.poem(initial_distance=0.1)
    rungs: list[tuple[str, str, Any, float | None, tuple[str, ...]]] = [
        ("POEM-CMA", "#d55e00", pc.methods.poem_cma(initial_distance=0.1), None, ()),
        ("all directions: POEM", "#0072b2", poem, None, ()),
        ("+ later iterates weigh more", "#56b4e9", poem, averages.POWERS[0], ()),
        ("+ many slopes on one sample, dual averaging", "#cc79a7", near, None, ("bisection", "again")),
        ("+ flat stretches skipped", "#009e73", near, None, ("again",)),
        ("+ samples evaluated again: auto", "#111111", pc.methods.auto(), None, ()),
    ]
    figure = Figure(figsize=(7, 5.0), layout="constrained")
    axes, rows = figure.subplots(), []
    for label, colour, method, power, absent in rungs:
        with without(*absent):
            gaps = np.array([run(problem, method, seed, power) for seed in SEEDS]) - least
        middle = np.median(gaps, axis=0)
        print(label, *(f"{value:.4f}" for value in middle), flush=True)
        rows.append((label, *(f"{middle[GRID.index(n)]:.2g}" for n in SHOWN)))
        axes.loglog(GRID, middle, "o-", ms=4, color=colour, label=label)
        axes.fill_between(GRID, gaps.min(axis=0), gaps.max(axis=0), color=colour, alpha=0.12, lw=0)
    floor = _floor() - least
    print(f"subspace {floor:.4f}")
    rows.append(("least value in the subspace", *[f"{floor:.2g}"] * len(SHOWN)))
    axes.axhline(floor, color="#d55e00", ls=":", label="least value in POEM-CMA's subspace")
    axes.set(xlabel="evaluations", ylabel="f − f*, median and range of five seeds", title=f"hinge loss on {SET}")
    figure.legend(*axes.get_legend_handles_labels(), frameon=False, loc="outside lower center", ncols=2)
    return _plain(figure), _table(rows)


def _table(rows: list[tuple[str, ...]]) -> str:
    """The medians in Markdown, with what they are."""
    head = ("f − f\\* after evaluations", *(f"{n:,}" for n in SHOWN))
    lines = [head, ("---",) * len(head), *rows]
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    return f"{table}\nMedians of {len(SEEDS)} seeds with a budget of {BUDGET:,}."


def _floor() -> float:
    """The least value in the subspace that POEM-CMA keeps, median over seeds."""
    from poem_cma.experiments.reproduce.fig2 import compute_restricted

    settings = {"set": SET, "tol": PAPER_SETS[0].tol, "method": "poem-cma", "initial_distance": 0.1, "paired": True}
    found = [compute_restricted(settings | {"iterations": 1, "seed": seed}) for seed in SEEDS]
    return float(np.median([float(r["dual"]) for r in found]))


def figures(folder: Path) -> dict[str, Figure]:
    """The paper's Figure 1, and the panels of its Figure 2 with all evaluations counted."""
    made = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
    sets = tuple((paper, made["sets"][paper.name]) for paper in PAPER_SETS)
    scale = Scale(**{name: tuple(v) if isinstance(v, list) else v for name, v in made["scale"].items()})
    drawn = {p.name: p for p in pictures(read(folder, Request(tuple(made["parts"]), scale, sets)))}
    both = [p for name, p in drawn.items() if name.startswith("figure2-") and not name.endswith(VARIANTS)]
    return {
        "paper-figure1.png": _panels([drawn["figure1"].panels[0]]),
        "paper-figure2.png": _panels([panel for p in both for panel in p.panels]),
    }


def _panels(panels: list[Panel]) -> Figure:
    rows = (len(panels) + 1) // 2
    figure = Figure(figsize=(7, 3.6 if rows == 1 else 6.4), layout="constrained")
    for axes, panel in zip(np.ravel(figure.subplots(rows, min(len(panels), 2))), panels, strict=True):
        for line in panel.lines:
            if line.points:
                axes.plot(line.x, line.y, "*", ms=10, color=line.colour, label=line.label, zorder=5)
                continue
            axes.plot(line.x, line.y, ls=line.dash, color=line.colour, lw=1.4, label=line.label)
            if line.low is not None:
                axes.fill_between(line.x, line.low, line.high, color=line.colour, alpha=0.15, lw=0)
        for y, label in panel.levels:
            axes.axhline(y, color="#d55e00", lw=0.9, ls=":", label=label)
        title = panel.title.replace(": ", ":\n", 1)
        axes.set(title=title, xlabel=panel.x_label, ylabel=panel.y_label, xscale="log", yscale="log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
    figure.legend(*figure.axes[0].get_legend_handles_labels(), frameon=False, loc="outside lower center", ncols=3)
    return _plain(figure)


def _plain(figure: Figure) -> Figure:
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def main() -> None:
    """Draw them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="?", type=Path, default=Path("results/reproduce"))
    parser.add_argument("--only", choices=("repair", "figures"))
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    with rc_context(FONTS):
        drawn = figures(asked.run) if asked.only != "repair" else {}
        if asked.only != "figures":
            from paper_tables import between

            drawn["paper-repair.png"], table = repair()
            between(PAGE, MARKS, table)
        for name, figure in drawn.items():
            figure.savefig(IMAGES / name, dpi=120)
            print(name, f"{(IMAGES / name).stat().st_size / 1000:.0f} kB", flush=True)


if __name__ == "__main__":
    main()
