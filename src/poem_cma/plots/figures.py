"""Panels by matplotlib, in a style that reads on paper and on dark pages: no background, middle tones, line styles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from poem_cma.plots.panels import GREY, Curve, Panel, of_comparison, of_result, of_spectrum

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from poem_cma.paper.algorithm_2 import Spectrum
    from poem_cma.result import Result

__all__ = ["compare", "plot_result", "plot_spectrum"]

_STYLES = {"solid": "-", "dashed": (0, (5, 2)), "dotted": (0, (1.2, 1.4))}


def plot_result(result: Result) -> Figure:
    """Value, distance and step size, smoothing, the spectrum where there is one, and the sensitivity."""
    return _draw(*of_result(result))


def plot_spectrum(spectrum: Spectrum) -> Figure:
    """Two panels: the eigenvalues, and the share of the trace that the leading directions hold, with d*."""
    return _draw(*of_spectrum(spectrum))


def compare(results: Any, labels: Sequence[str] | None = None) -> Figure:
    """Value and distance of several runs side by side.

    Parameters
    ----------
    results : sequence of Result, or mapping of str to Result or to a sequence of them
        Runs with the same label are shown by their median, with a band from the lower to the upper quartile. Marks with
        error bars are the values measured at the end.
    labels : sequence of str, optional
        One for each result; by default the names of the methods.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import numpy as np, poem_cma as pc
    >>> def distance(x):
    ...     return float(np.abs(x - 1.0).sum())
    >>> runs = [pc.minimize(distance, np.zeros(3), method=m, budget=500, seed=0) for m in ("poem", "auto")]
    >>> figure = pc.plots.compare(runs)
    >>> [axes.get_title() for axes in figure.axes]
    ['Value', 'Distance from x0']
    """
    return _draw(*of_comparison(results, labels))


def _draw(title: str, panels: list[Panel]) -> Figure:
    try:
        import matplotlib as mpl

        from poem_cma.plots.picture import Picture
    except ImportError:
        raise ImportError('plots need matplotlib: pip install "poem-cma[plot]"') from None
    names: Any = ("text.color", "axes.edgecolor", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color")
    rows = (len(panels) + 1) // 2
    with mpl.rc_context({**dict.fromkeys(names, GREY), "font.size": 10, "axes.titlesize": 11}):
        figure = Picture(figsize=(10, 3.6 * rows), layout="constrained", facecolor="none")
        places = figure.subplots(rows, 2, squeeze=False).ravel().tolist()
        for axes, panel in zip(places, panels, strict=False):
            _panel(axes, panel)
        for axes in places[len(panels) :]:
            axes.remove()
        figure.suptitle(title if len(title) <= 90 else title[:87] + "...", fontsize=12)
    return figure


def _panel(axes: Any, panel: Panel) -> None:
    shown = panel.shown
    if panel.log and any(len(curve.y) for curve in shown):
        axes.set_yscale("log")
    for curve in shown:
        _curve(axes, curve)
    axes.set(title=panel.title, xlabel=panel.x_label, ylabel=panel.y_label, facecolor="none")
    if panel.ticks:
        axes.set_xticks(range(len(panel.ticks)), panel.ticks, rotation=30 if max(map(len, panel.ticks)) > 4 else 0)
    axes.grid(color=GREY, alpha=0.25, lw=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if any(curve.label for curve in shown):
        axes.legend(frameon=False, labelcolor=GREY, fontsize=9)


def _curve(axes: Any, curve: Curve) -> None:
    label = curve.label or None
    if curve.kind == "bars":
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.bar(curve.x, curve.y, color=curve.colour, label=label)
    elif curve.kind == "points":
        assert curve.low is not None
        assert curve.high is not None
        # Lists: matplotlib takes an array of one number for a number, of which NumPy before 2.4 warns.
        error = [np.subtract(curve.y, curve.low).tolist(), np.subtract(curve.high, curve.y).tolist()]
        axes.errorbar(curve.x, curve.y, error, fmt="o", ms=4, capsize=2, lw=1, color=curve.colour, label=label)
    else:
        axes.plot(curve.x, curve.y, ls=_STYLES[curve.dash], color=curve.colour, lw=1.6, label=label)
        if curve.low is not None:
            axes.fill_between(curve.x, curve.low, curve.high, color=curve.colour, alpha=0.2, lw=0)
