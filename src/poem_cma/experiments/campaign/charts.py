"""Pictures as interactive charts, by plotly: one chart for each panel, as data for the page's script."""

from __future__ import annotations

from math import ceil, floor, log10
from typing import Any

import numpy as np

from poem_cma.experiments.campaign.picture import Line, Panel

__all__ = ["chart", "plotly_script"]

_DASHES = {"solid": "solid", "dashed": "dash", "dotted": "dot"}


def plotly_script() -> str:
    """The library, to be put into the page."""
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


def chart(panel: Panel) -> str:
    """A figure as JSON; the page adds the colours of its theme."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for line in panel.lines:
        for trace in _traces(line):
            figure.add_trace(go.Scatter(**trace))
    (left, right), (bottom, top) = _extent(panel, "x"), _extent(panel, "y")
    for y, label in panel.levels:
        figure.add_trace(go.Scatter(**_rule([left, right], [y, y], label, "#d55e00")))
    for x, label in panel.marks:
        figure.add_trace(go.Scatter(**_rule([x, x], [bottom, top], label, "#888888")))
    levels = [y for y, _ in panel.levels]
    figure.update_layout(
        template="none",
        xaxis={"title": {"text": panel.x_label}} | _axis(list(panel.ticks) or _ticks(left, right)),
        yaxis={"title": {"text": panel.y_label}}
        | ({"range": [0, 1.02]} if panel.shares else _axis(_ticks(min([bottom, *levels]), max([top, *levels])))),
        legend={"orientation": "h", "y": -0.26, "yanchor": "top", "x": 0.0},
        margin={"l": 64, "r": 12, "t": 36, "b": 165},
        hovermode="x unified",
        height=480,
    )
    return str(figure.to_json(engine="json")).replace("</", "<\\/")


def _axis(ticks: list[float]) -> dict[str, Any]:
    return {"type": "log", "tickvals": ticks, "ticktext": [f"{t:,.6g}" for t in ticks], "automargin": True}


def _ticks(low: float, high: float) -> list[float]:
    """Powers of ten, with 2 and 5 times them where there would be few."""
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    steps = (1.0,) if high / low > 100.0 else (1.0, 2.0, 5.0) if high / low > 3.0 else (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9)
    return [float(f"{step * 10.0**n:.6g}") for n in decades for step in steps]


def _extent(panel: Panel, axis: str) -> tuple[float, float]:
    values = [np.asarray(getattr(line, axis), dtype=float) for line in panel.lines]
    every = np.concatenate([*values, np.ones(0)])
    every = every[np.isfinite(every)]
    return (float(every.min()), float(every.max())) if len(every) else (1.0, 10.0)


def _traces(line: Line) -> list[dict[str, Any]]:
    x, y = _numbers(line.x), _numbers(line.y)
    if line.points:
        marker = {"symbol": "star", "size": 12, "color": line.colour}
        return [{"x": x, "y": y, "mode": "markers", "name": line.label, "marker": marker}]
    style = {"color": line.colour, "dash": _DASHES[line.dash], "width": 2}
    drawn = {"x": x, "y": y, "mode": "lines", "name": line.label, "line": style, "legendgroup": line.label}
    if line.low is None:
        return [drawn]
    band = {
        "x": x + x[::-1], "y": _numbers(line.high) + _numbers(line.low)[::-1], "mode": "lines", "line": {"width": 0},
        "fill": "toself", "fillcolor": _faint(line.colour), "hoverinfo": "skip", "showlegend": False,
        "legendgroup": line.label,
    }  # fmt: skip
    return [band, drawn]


def _rule(x: list[float], y: list[float], label: str, colour: str) -> dict[str, Any]:
    style = {"color": colour, "width": 1, "dash": "dot"}
    return {"x": x, "y": y, "mode": "lines", "name": label, "line": style, "hoverinfo": "skip"}


def _numbers(values: Any) -> list[float | None]:
    """Six digits are plenty for the eye; NaN leaves a hole."""
    return [float(f"{v:.6g}") if np.isfinite(v) else None for v in np.asarray(values, dtype=float)]


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.15)"
