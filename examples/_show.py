"""What the examples of the gallery share: two options, a table, a picture. Nothing here is needed to use poem-cma."""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

NAME = pathlib.Path(sys.argv[0]).stem
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#56b4e9"]  # told apart by most eyes
DASHES = ["-", "--", "-.", ":", (0, (5, 1, 1, 1)), (0, (3, 2))]  # and in print


def _say_what_to_install(kind: Any, error: Any, trace: Any) -> None:
    """A package that is missing is no reason for a page of text."""
    if issubclass(kind, ModuleNotFoundError):
        print(f'{error}: pip install "poem-cma[gallery]"', file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


sys.excepthook = _say_what_to_install


def options(text: str | None) -> argparse.Namespace:
    """`--quick`: a small setting that takes seconds; `--out`: where the table and the picture go."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small setting, within seconds")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("results/gallery"), help="a folder")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    return chosen


def spread(values: Sequence[float], digits: int = 3) -> str:
    """The median and the range; a single value as it is."""
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    middle, least, most = (f"{v:.{digits}f}" for v in (np.median(values), min(values), max(values)))
    return f"{middle} ({least} to {most})"


def table(chosen: argparse.Namespace, about: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print it, and keep it as NAME.json."""
    widths = [max(len(line[j]) for line in (columns, *rows)) for j in range(len(columns))]
    print(f"{about}\n")
    for line in (columns, ["-" * w for w in widths], *rows):
        print("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip())
    kept = {"quick": chosen.quick, "about": about, "columns": list(columns), "rows": [list(row) for row in rows]}
    (chosen.out / f"{NAME}.json").write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def picture(width: float = 9.0, height: float = 3.8, columns: int = 2, **ratios: Any) -> tuple[Figure, Any]:
    """A figure on white, which reads on light and dark pages and in print, and its axes."""
    figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    axes = figure.subplots(1, columns, squeeze=False, gridspec_kw=ratios)[0]
    for one in axes:
        one.grid(alpha=0.25)
        one.spines[["top", "right"]].set_visible(False)
    return figure, axes


def save(chosen: argparse.Namespace, figure: Figure) -> None:
    place = chosen.out / f"{NAME}.png"
    figure.savefig(place, dpi=130)
    print(f"\nthe picture is {place}")


def strips(axes: Any, values: Mapping[str, Sequence[float]], names: bool = True) -> None:
    """One line for each method: a dot a seed, a bar at the median."""
    for row, v in enumerate(values.values()):
        colour = COLOURS[row] if row < len(COLOURS) else "0.4"
        axes.plot(v, np.full(len(v), row), "o", color=colour, alpha=0.6, ms=6, mec="none")
        axes.plot([np.median(v)], [row], "|", color=colour, ms=22, mew=3)
    axes.set_yticks(range(len(values)), list(values) if names else [""] * len(values))
    axes.set_ylim(len(values) - 0.4, -0.6)


def successes(axes: Any, calls: Mapping[str, Sequence[float]], most: int, **labels: str) -> None:
    """For each method the percentage of runs that succeeded, over the calls they took."""
    for (name, needed), colour, dashes in zip(calls.items(), COLOURS, DASHES, strict=False):
        percent = [100.0 * np.mean(np.array(needed) <= n) for n in range(most + 1)]
        axes.step(range(most + 1), percent, color=colour, ls=dashes, lw=1.8, label=name)
    axes.set(ylim=(0, 100), **labels)
    axes.legend(frameon=False)
