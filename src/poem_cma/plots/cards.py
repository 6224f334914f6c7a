"""Cards for notebooks: a few numbers and a small curve, in the colours of the page around them."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from poem_cma._types import Array
from poem_cma.plots.panels import COLOURS

if TYPE_CHECKING:
    from poem_cma.paper.algorithm_2 import Spectrum
    from poem_cma.result import Result

__all__ = ["result_card", "spectrum_card"]

_WIDTH, _HEIGHT = 220, 60
_MOST_POINTS = 200
_LONGEST = 160  # characters of a point, or of a message


def result_card(result: Result) -> str:
    """A result in a notebook."""
    h = result.history
    state = "running" if result.status == -1 else "ended well" if result.success else "did not end well"
    rows = {
        "value": f"{result.fun:.6g} ± {result.fun_stderr:.2g}" if np.isfinite(result.fun) else "not measured",
        "gain over x0": str(result.gain),
        "calls": f"{result.nfev:,} in {result.nit:,} steps" + (f", {result.failures:,} failed" * bool(result.failures)),
        "x": _brief(result.x),
        "seed": str(result.seed),
        "end": result.message,
    }
    return _card(f"{result.method} — {state}", rows, _curve(h["nfev"], h["fun"]), "value against calls")


def spectrum_card(spectrum: Spectrum) -> str:
    """A spectrum in a notebook."""
    rows = {
        "effective dimension": f"{spectrum.effective_dimension:.4g} of {len(spectrum.vectors):,}",
        "condition": f"{spectrum.condition:.4g}",
        "rank": f"{spectrum.rank:,}",
        "made of": f"{spectrum.size:,} gradient estimates, {spectrum.nfev:,} calls",
    }
    return _card("Spectrum", rows, _bars(spectrum.all_eigenvalues), "eigenvalues")


def _card(title: str, rows: dict[str, str], picture: str, caption: str) -> str:
    cell = "padding:1px 10px 1px 0;border:0;text-align:left;vertical-align:top;background:none"
    table = "".join(
        f'<tr style="background:none"><td style="{cell};opacity:0.65;white-space:nowrap">{escape(name)}</td>'
        f'<td style="{cell};overflow-wrap:anywhere">{escape(_cut(value))}</td></tr>'
        for name, value in rows.items()
    )
    below = f'<div style="opacity:0.65">{escape(caption)}</div>'
    drawn = f'<div style="text-align:center">{picture}{below}</div>' if picture else ""
    return (
        '<div style="display:inline-block;max-width:44em;padding:8px 12px;border:1px solid rgba(122,129,140,0.5);'
        'border-radius:6px;font-size:13px;line-height:1.45;color:inherit;background:none">'
        f'<div style="font-weight:600;margin-bottom:4px;overflow-wrap:anywhere">{escape(_cut(title))}</div>'
        '<div style="display:flex;flex-wrap:wrap;gap:16px;align-items:flex-start">'
        f'<table style="border-collapse:collapse;margin:0;border:0;flex:1 1 20em;color:inherit">{table}</table>'
        f"{drawn}</div></div>"
    )


def _svg(content: str, width: float = _WIDTH) -> str:
    return (
        f'<svg width="{width:.0f}" height="{_HEIGHT}" viewBox="0 0 {width:.0f} {_HEIGHT}" role="img" '
        f'xmlns="http://www.w3.org/2000/svg">{content}</svg>'
    )


def _curve(x: Array, y: Array) -> str:
    seen = np.isfinite(y)
    x, y = x[seen], y[seen]
    if len(y) < 2:
        return ""
    kept = np.unique(np.linspace(0, len(y) - 1, _MOST_POINTS).astype(int))
    across = _scaled(x[kept].astype(float)) * (_WIDTH - 4) + 2
    up = (1.0 - _scaled(y[kept])) * (_HEIGHT - 4) + 2
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, up, strict=True))
    return _svg(f'<polyline fill="none" stroke="{COLOURS[0]}" stroke-width="1.6" points="{points}"/>')


def _bars(values: Array) -> str:
    values = values[:_MOST_POINTS]
    top = values.max(initial=0.0)
    if not top > 0.0:
        return ""
    width = min((_WIDTH - 4) / len(values), 12.0)
    return _svg(
        "".join(
            f'<rect x="{2 + n * width:.1f}" y="{_HEIGHT - size:.1f}" width="{0.8 * width:.1f}" height="{size:.1f}" '
            f'fill="{COLOURS[0]}"/>'
            for n, size in enumerate(np.maximum(values / top * (_HEIGHT - 4), 0.5))
        ),
        width * len(values) + 4,
    )


def _scaled(values: Array) -> Array:
    """From 0 to 1, also where the difference of the ends would overflow."""
    values = values / (np.abs(values).max() or 1.0)
    span = values.max() - values.min()
    scaled: Array = (values - values.min()) / (span if span > 0.0 else 1.0)
    return scaled


def _brief(x: object) -> str:
    if isinstance(x, np.ndarray):
        head = ", ".join(f"{v:.5g}" for v in x[:6])
        return f"[{head}, …] ({x.size:,} numbers)" if x.size > 6 else f"[{head}]"
    return " ".join(str(x).split())


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
