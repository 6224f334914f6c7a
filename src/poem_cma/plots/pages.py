"""Panels by plotly, as one HTML file with everything in it: no network is needed, light and dark alike."""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from poem_cma.plots.panels import GREY, Curve, Panel, of_comparison, of_result, of_spectrum

__all__ = ["to_html"]

_DASHES = {"solid": "solid", "dashed": "dash", "dotted": "dot"}
_BUTTONS = ["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d", "toImage"]
_STYLE = f"""
:root {{ color-scheme: light dark; }}
body {{ font-family: system-ui, sans-serif; margin: 1rem auto; max-width: 76rem; padding: 0 1rem;
  background: Canvas; color: CanvasText; }}
h1 {{ font-size: 1.1rem; font-weight: 600; overflow-wrap: anywhere; }}
main {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(min(26rem, 100%), 1fr)); gap: 1rem; }}
figure {{ margin: 0; min-width: 0; }}
figcaption {{ color: {GREY}; text-align: center; font-size: 0.95rem; }}
"""


def to_html(
    what: Any, path: str | os.PathLike[str] | None = None, *, labels: Sequence[str] | None = None
) -> str:  # fmt: skip
    """An interactive page with the curves of a result, of a spectrum, or of several results.

    Parameters
    ----------
    what : Result, Spectrum, or what `compare` takes
    path : path, optional
        Where to write the page; it needs no other file and no network.
    labels : sequence of str, optional
        As in `compare`.

    Returns
    -------
    str
        The page.
    """
    from poem_cma.paper.algorithm_2 import Spectrum
    from poem_cma.result import Result

    if isinstance(what, Result):
        title, panels = of_result(what)
    elif isinstance(what, Spectrum):
        title, panels = of_spectrum(what)
    else:
        title, panels = of_comparison(what, labels)
    page = _page(title, panels)
    if path is not None:
        Path(path).write_text(page, encoding="utf-8")
    return page


def _page(title: str, panels: list[Panel]) -> str:
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise ImportError('pages need plotly: pip install "poem-cma[html]"') from None
    charts = "\n".join(
        f"<figure><figcaption>{escape(panel.title)}</figcaption>{_chart(panel, f'chart-{n}')}</figure>"
        for n, panel in enumerate(panels)
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<link rel="icon" href="data:,">
<style>{_STYLE}</style>
<script>{get_plotlyjs()}</script>
</head>
<body>
<h1>{escape(title)}</h1>
<main>
{charts}
</main>
<script>addEventListener("load", () => dispatchEvent(new Event("resize")));  // all charts are there: fit them
</script>
</body>
</html>
"""


def _chart(panel: Panel, name: str) -> str:
    import plotly.graph_objects as go

    figure = go.Figure()
    for curve in panel.shown:
        for trace in _traces(curve):
            figure.add_trace(trace)
    line = {"gridcolor": "rgba(122,129,140,0.25)", "linecolor": GREY, "zeroline": False, "automargin": True}
    y_axis = {"type": "log", "exponentformat": "power", "dtick": None} if panel.log else {}
    ticks = {"tickvals": list(range(len(panel.ticks))), "ticktext": list(panel.ticks)} if panel.ticks else {}
    figure.update_layout(
        template="none", paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)", font={"color": GREY, "size": 12},
        xaxis=line | ticks | {"title": {"text": panel.x_label, "standoff": 6}},
        yaxis=line | y_axis | {"title": {"text": panel.y_label, "standoff": 6}},
        modebar={"bgcolor": "rgba(0,0,0,0)", "color": GREY, "activecolor": "#2f7fd0"},
        legend={"orientation": "h", "y": -0.22, "x": 0.0}, margin={"l": 60, "r": 10, "t": 10, "b": 70},
        hovermode="x unified", hoverlabel={"bgcolor": "#2b3038", "font": {"color": "#f2f4f7"}}, height=340,
        showlegend=any(curve.label for curve in panel.curves),
    )  # fmt: skip
    config = {"displaylogo": False, "responsive": True, "modeBarButtons": [_BUTTONS]}
    return str(figure.to_html(full_html=False, include_plotlyjs=False, div_id=name, config=config))


def _traces(curve: Curve) -> list[Any]:
    import plotly.graph_objects as go

    x, y, named = curve.x.tolist(), curve.y.tolist(), {"name": curve.label, "showlegend": bool(curve.label)}
    if curve.kind == "bars":
        return [go.Bar(x=x, y=y, marker={"color": curve.colour}, **named)]
    if curve.kind == "points":
        assert curve.low is not None
        assert curve.high is not None
        error = {"type": "data", "array": (curve.high - curve.y).tolist(), "arrayminus": (curve.y - curve.low).tolist()}
        named["name"] = "measured at the end"
        return [go.Scatter(x=x, y=y, mode="markers", marker={"color": curve.colour}, error_y=error, **named)]
    style = {"color": curve.colour, "dash": _DASHES[curve.dash], "width": 2}
    drawn = [go.Scatter(x=x, y=y, mode="lines", line=style, legendgroup=curve.label, **named)]
    if curve.low is not None and curve.high is not None:
        red, green, blue = (int(curve.colour[i : i + 2], 16) for i in (1, 3, 5))
        band = {"fill": "toself", "fillcolor": f"rgba({red},{green},{blue},0.2)", "line": {"width": 0}}
        around = {"x": x + x[::-1], "y": curve.high.tolist() + curve.low.tolist()[::-1]}
        drawn.insert(
            0, go.Scatter(**around, **band, mode="lines", hoverinfo="skip", showlegend=False, legendgroup=curve.label)
        )
    return drawn
