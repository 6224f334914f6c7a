"""Pictures as PNG and SVG files, by matplotlib, with nothing in them that changes from run to run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from poem_cma.experiments.campaign.picture import Panel, Picture

__all__ = ["draw"]

_DASHES = {"solid": "-", "dashed": "--", "dotted": ":"}
_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "poem-cma", "svg.fonttype": "path", "font.family": "DejaVu Sans", "font.size": 9,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.alpha": 0.25,
    "legend.frameon": False,    "legend.fontsize": 8, "axes.titlesize": 10,
}  # fmt: skip


def draw(picture: Picture, folder: Path) -> list[Path]:
    """Write a picture in both formats."""
    import matplotlib
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context(_STYLE):
        columns = len(picture.panels)
        figure = Figure(figsize=(6.2 * columns, 5.0), layout="constrained")
        for axes, panel in zip(figure.subplots(1, columns, squeeze=False)[0], picture.panels, strict=True):
            _panel(axes, panel)
        files = [folder / f"{picture.name}.{kind}" for kind in ("png", "svg")]
        figure.savefig(files[0], dpi=150, metadata={"Software": None})
        figure.savefig(files[1], metadata={"Date": None, "Creator": None})
    return files


def _panel(axes: Any, panel: Panel) -> None:
    for line in panel.lines:
        if line.points:
            axes.plot(line.x, line.y, "*", ms=11, color=line.colour, label=line.label, zorder=5)
            continue
        axes.plot(line.x, line.y, _DASHES[line.dash], color=line.colour, lw=1.6, label=line.label)
        if line.low is not None:
            axes.fill_between(line.x, line.low, line.high, color=line.colour, alpha=0.15, lw=0)
    for x, label in panel.marks:
        axes.axvline(x, color="#888888", lw=0.8, ls=":", label=label)
    for y, label in panel.levels:
        axes.axhline(y, color="#d55e00", lw=0.8, ls=(0, (1, 1)), label=label)
    axes.set(title=panel.title, xlabel=panel.x_label, ylabel=panel.y_label, xscale="log")
    axes.set(ylim=(0.0, 1.02)) if panel.shares else axes.set(yscale="log")
    _ticks(axes, panel)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2)


def _ticks(axes: Any, panel: Panel) -> None:
    """Plain numbers: at the values that occur, or at 1, 2 and 5 where an axis spans little more than a decade."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    plain = FuncFormatter(lambda value, _: f"{value:,.6g}")
    log_axes = [(axes.xaxis, axes.get_xlim())] + [(axes.yaxis, axes.get_ylim())] * (not panel.shares)
    for axis, limits in log_axes:
        if limits[1] / limits[0] < 40.0:
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(plain)
        axis.set_minor_formatter(NullFormatter())
    if panel.ticks:
        axes.set_xticks(panel.ticks)
        axes.xaxis.set_minor_locator(NullLocator())
