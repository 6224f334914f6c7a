"""The picture of the first page: evaluations against the gap on a simulator, for `auto` and what people use today.

    python docs/figures_first.py            # runs and draws, under two minutes; prints the medians
    python docs/figures_first.py --draw     # draws again from docs/assets/first.json

The simulator is the queue of `poem_cma.problems`: how many servers to staff in six periods of a day, between 1 and 20.
The methods are played as in `poem-cma bench --suite rough`, and are told what they are told there: `auto` nothing,
pycma a quarter of the box as its first step. The gap is the judge's cost (the mean over 400 days that no run has seen)
above the best staffing known, in percent. The best staffing comes from a coordinate search with the judge.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from poem_cma import problems

ASSETS = Path(__file__).resolve().parent / "assets"
KEPT = ASSETS / "first.json"
PROBLEM = "queue"
SEEDS = 10
BUDGETS = (50, 100, 200, 400, 800)
#: What is played, its label, the largest budget, and its colour on light and on dark pages.
METHODS = {
    "auto": ("poem-cma", 800, "#1f5fa8", "#7db4f0"),
    "pycma": ("pycma", 800, "#c25a12", "#f0a060"),
    "optuna-tpe": ("Optuna TPE", 200, "#8a4f9e", "#cf9be0"),
    "random-search": ("random search", 800, "#2f7d4f", "#7fcf9d"),
    "nelder-mead": ("SciPy Nelder-Mead", 800, "#777777", "#a8a8a8"),
}
INK = {"light": "#333333", "dark": "#d5d8de"}


def best_staffing(queue: Any) -> tuple[list[int], float]:
    """The staffing that no change by one server in one period improves, and its cost by the judge."""
    x = np.array([4.0, 9.0, 14.0, 12.0, 8.0, 4.0])
    best, improved = queue.judge(x), True
    while improved:
        improved = False
        for change in (*np.eye(len(x)), *-np.eye(len(x))):
            value = queue.judge(x + change)
            if value < best:
                x, best, improved = x + change, value, True
    return [int(n) for n in x], best


def run() -> dict[str, Any]:
    """Play all cells; gaps in percent, by method, budget and seed."""
    from poem_cma.experiments.bench.field.play import play

    queue = problems.load(PROBLEM)
    staffing, best = best_staffing(queue)
    gaps = {}
    for method, (_, most, *_) in METHODS.items():
        cells = [
            [play({"suite": "rough", "problem": PROBLEM, "method": method, "budget": budget, "seed": seed})["value"]
             for seed in range(SEEDS)]
            for budget in BUDGETS if budget <= most
        ]  # fmt: skip
        gaps[method] = np.round(100.0 * (np.array(cells) / best - 1.0), 3).tolist()
    start = round(100.0 * (queue.judge(queue.x0) / best - 1.0), 3)
    return {"budgets": BUDGETS, "best": staffing, "cost": round(best, 3), "start": start, "gaps": gaps}


def draw(kept: dict[str, Any], page: str) -> Figure:
    """Medians as lines, quartiles as bands; without a background, for light or dark pages."""
    figure = Figure(figsize=(7.2, 3.7), layout="constrained")
    axes = figure.subplots()
    for method, (label, _, light, dark) in METHODS.items():
        colour = light if page == "light" else dark
        low, middle, high = np.percentile(kept["gaps"][method], [25, 50, 75], axis=1)
        budgets = kept["budgets"][: len(middle)]
        own = method == "auto"
        axes.plot(
            budgets, middle, "o-", ms=5 if own else 3.5, lw=2.6 if own else 1.5, color=colour, zorder=3 if own else 2
        )
        axes.fill_between(budgets, low, high, color=colour, alpha=0.18, lw=0)
        place = (9, 0) if budgets[-1] == max(kept["budgets"]) else (-6, 9)
        axes.annotate(
            label, (budgets[-1], middle[-1]), place, textcoords="offset points", va="center", color=colour,
            fontsize=10, fontweight="bold" if own else "normal",
        )  # fmt: skip
    axes.set(xscale="log", yscale="log", xlim=(46, 900), xlabel="evaluations of the simulator")
    axes.set_ylabel("cost above the best known")
    axes.set_xticks(kept["budgets"], [str(n) for n in kept["budgets"]])
    axes.set_yticks([1, 3, 10, 30, 100], [f"{n}%" for n in (1, 3, 10, 30, 100)])
    axes.minorticks_off()
    axes.grid(alpha=0.2)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def main(arguments: list[str]) -> None:
    """Run unless only the drawing is wanted, print the medians, draw both variants."""
    if "--draw" not in arguments:
        KEPT.write_text(json.dumps(run()) + "\n", encoding="utf-8")
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    print(f"{'median gap, percent':20}", *(f"{n:>7}" for n in kept["budgets"]))
    for method, (label, *_) in METHODS.items():
        print(f"{label:20}", *(f"{np.median(row):7.1f}" for row in kept["gaps"][method]))
    for page, ink in INK.items():
        names = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color", "grid.color")
        with rc_context({**dict.fromkeys(names, ink), "svg.hashsalt": "poem-cma", "font.size": 10}):
            draw(kept, page).savefig(ASSETS / f"first-{page}.svg", transparent=True, metadata={"Date": None})


if __name__ == "__main__":
    main(sys.argv[1:])
