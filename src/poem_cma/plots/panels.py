"""What is to be seen, before anybody draws it: panels of curves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from poem_cma._types import Array

if TYPE_CHECKING:
    from poem_cma.paper.algorithm_2 import Spectrum
    from poem_cma.result import Result

__all__ = ["COLOURS", "GREY", "Curve", "Panel", "of_comparison", "of_result", "of_spectrum"]

#: Bright enough for a dark page, dark enough for paper; neighbours differ in lightness too, for prints in grey.
COLOURS = ("#2f7fd0", "#e07b1a", "#1f9e77", "#c2569b", "#8272d6", "#a8851c")
GREY = "#7a818c"

_DASHES = ("solid", "dashed", "dotted")
_SPAN = 30.0  # a positive quantity that varies by more is drawn on a logarithmic axis
_GRID = 400  # points of a curve that sums up several runs
_MOST_BARS = 60
_MOST_VARIABLES = 20  # names side by side can be read


@dataclass(frozen=True)
class Curve:
    """A line, bars, or points with their errors."""

    x: NDArray[Any]
    y: NDArray[Any]
    label: str
    colour: str
    kind: str = "line"  # or "bars", "points"
    dash: str = "solid"
    low: Array | None = None  # a band around a line, the error bars of points
    high: Array | None = None


@dataclass(frozen=True)
class Panel:
    """Curves in one pair of axes."""

    title: str
    x_label: str
    curves: tuple[Curve, ...]
    y_label: str = ""
    log: bool = False
    ticks: tuple[str, ...] = ()  # the names of bars, in place of numbers

    @property
    def shown(self) -> tuple[Curve, ...]:
        """Without what a logarithmic axis cannot show, and what is no number."""
        return tuple(_visible(curve, self.log) for curve in self.curves)


def of_result(result: Result) -> tuple[str, list[Panel]]:
    """Title and panels: value, distance and step size, smoothing, the spectrum where there is one, the sensitivity."""
    h = result.history
    calls = h["nfev"]
    value = [Curve(calls, h["fun"], "smoothed value of recent probes", COLOURS[0])]
    if np.isfinite(result.fun):
        value.append(_level(calls, result.fun, result.fun_stderr, f"at the returned point: {result.fun:.4g}"))
    moves = (
        Curve(calls, h["distance"], "distance |x - x0|", COLOURS[0]),
        Curve(calls, h["step_size"], "step size", COLOURS[1], dash="dashed"),
    )
    panels = [
        Panel("Value", "oracle calls", tuple(value)),
        Panel("Distance and step size", "oracle calls", moves, log=True),
        Panel("Smoothing", "oracle calls", (Curve(calls, h["smoothing"], "smoothing radius", COLOURS[0]),), log=True),
    ]
    if result.spectrum is not None:
        panels.append(_eigenvalues(result.spectrum))
    else:
        size = Curve(calls, h["gradient_norm"], "norm of the gradient estimate", COLOURS[0])
        panels.append(Panel("Gradient estimates", "oracle calls", (size,), log=True))
    if result.sensitivity is not None:
        panels.append(_sensitivity(result))
    return f"{result.method}: {result.nfev} calls", panels


def _sensitivity(result: Result) -> Panel:
    """The variables that matter most, in their order."""
    found = list(enumerate(result.by_variable()))
    kept = sorted(sorted(found, key=lambda each: -each[1][2])[:_MOST_VARIABLES])
    share = 100.0 * np.array([share for _, (_, _, share) in kept])
    curve = Curve(np.arange(len(kept)), share, "", COLOURS[0], kind="bars")
    title = "Sensitivity" if len(kept) == len(found) else f"Sensitivity: {len(kept)} of {len(found)} variables"
    return Panel(title, "variable", (curve,), "share in %", ticks=tuple(name for _, (name, _, _) in kept))


def of_spectrum(spectrum: Spectrum) -> tuple[str, list[Panel]]:
    """Title and panels: the eigenvalues, and how much of the trace the leading ones hold."""
    lam = spectrum.all_eigenvalues
    number = np.arange(1, len(lam) + 1)
    share = np.cumsum(lam) / lam.sum() if len(lam) and lam.sum() > 0.0 else np.ones(len(lam))
    d_star = spectrum.effective_dimension
    curves = (
        Curve(number, share, "share of the trace", COLOURS[0]),
        Curve(np.full(2, d_star), np.array([0.0, 1.0]), f"d* = {d_star:.3g}", COLOURS[1], dash="dashed"),
    )
    panels = [_eigenvalues(spectrum), Panel("Leading directions", "how many directions", curves)]
    return f"Spectrum of {spectrum.size} gradient estimates: {spectrum.nfev} calls", panels


def of_comparison(results: Any, labels: Sequence[str] | None = None) -> tuple[str, list[Panel]]:
    """Title and panels: value and distance of several runs; runs with one label are summed up by their quartiles."""
    groups = _groups(results, labels)
    value, distance = [], []
    for n, (label, runs) in enumerate(groups.items()):
        style = {"colour": COLOURS[n % len(COLOURS)], "dash": _DASHES[(n // len(COLOURS) + n) % len(_DASHES)]}
        name = label if len(runs) == 1 else f"{label} ({len(runs)} runs)"
        value.append(_summary(runs, "fun", name, style))
        distance.append(_summary(runs, "distance", name, style))
        value += _ends(runs, style["colour"])
    log = _spans_decades(np.concatenate([curve.y for curve in value]))
    panels = [
        Panel("Value", "oracle calls", tuple(value), log=log),
        Panel("Distance from x0", "oracle calls", tuple(distance), log=True),
    ]
    return f"{sum(map(len, groups.values()))} runs", panels


def _groups(results: Any, labels: Sequence[str] | None) -> dict[str, list[Result]]:
    """Runs by label: of a mapping its keys, else those given, else the names of the methods."""
    groups: dict[str, list[Result]] = {}
    if isinstance(results, Mapping):
        for label, runs in results.items():
            groups[str(label)] = list(runs) if isinstance(runs, Iterable) else [runs]
    else:
        results = list(results)
        if labels is not None and len(labels) != len(results):
            raise ValueError(f"there are {len(results)} results, but {len(labels)} labels")
        for n, result in enumerate(results):
            label = result.method.split("(")[0] if labels is None else labels[n]
            groups.setdefault(str(label), []).append(result)
    if not any(groups.values()):
        raise ValueError("there is nothing to compare: give a list of results, or a dictionary of them by label")
    return {label: runs for label, runs in groups.items() if runs}


def _summary(runs: list[Result], column: str, label: str, style: dict[str, Any]) -> Curve:
    if len(runs) == 1:
        return Curve(runs[0].history["nfev"], runs[0].history[column], label, **style)
    stepped = [r for r in runs if len(r.history["nfev"])]
    if not stepped:
        return Curve(np.zeros(0), np.zeros(0), label, **style)
    first = max(r.history["nfev"][0] for r in stepped)
    calls = np.linspace(first, max(r.history["nfev"][-1] for r in stepped), _GRID)
    rows = np.array([_held(r.history["nfev"], r.history[column], calls) for r in stepped])
    low, middle, high = np.quantile(rows, [0.25, 0.5, 0.75], axis=0)
    return Curve(calls, middle, label, low=low, high=high, **style)


def _held(calls: Array, values: Array, at: Array) -> Array:
    """The last value known at a number of calls."""
    held: Array = values[np.maximum(np.searchsorted(calls, at, side="right") - 1, 0)]
    return held


def _ends(runs: list[Result], colour: str) -> list[Curve]:
    """What was measured at the returned points."""
    found = [r for r in runs if np.isfinite(r.fun)]
    if not found:
        return []
    x, y = np.array([float(r.nfev) for r in found]), np.array([r.fun for r in found])
    error = np.nan_to_num(np.array([r.fun_stderr for r in found]))
    return [Curve(x, y, "", colour, kind="points", low=y - error, high=y + error)]


def _eigenvalues(spectrum: Spectrum) -> Panel:
    lam = spectrum.all_eigenvalues
    title = f"Spectrum: d* = {spectrum.effective_dimension:.3g}, kappa = {spectrum.condition:.3g}, rank {spectrum.rank}"
    relative = lam / lam.max() if len(lam) and lam.max() > 0.0 else lam
    kind = "bars" if len(lam) <= _MOST_BARS else "line"
    curve = Curve(np.arange(1, len(lam) + 1), relative, "", COLOURS[0], kind=kind)
    return Panel(title, "direction", (curve,), "eigenvalue / largest", log=_spans_decades(relative))


def _level(calls: Array, value: float, error: float, label: str) -> Curve:
    ends = np.array([calls[0], calls[-1]]) if len(calls) else np.array([0.0, 1.0])
    error = error if np.isfinite(error) else 0.0
    y = np.full(2, value)
    return Curve(ends, y, label, COLOURS[1], dash="dashed", low=y - error, high=y + error)


def _spans_decades(values: Array) -> bool:
    values = values[np.isfinite(values)]
    return bool(len(values) and values.min() > 0.0 and values.max() > _SPAN * values.min())


def _visible(curve: Curve, log: bool) -> Curve:
    seen = np.isfinite(curve.y) & ((curve.y > 0.0) if log else True)
    low, high = (None if side is None else side[seen] for side in (curve.low, curve.high))
    if log and low is not None:
        low = np.maximum(low, 1e-3 * curve.y[seen])  # an error bar down to 0 has no end on this axis
    return Curve(curve.x[seen], curve.y[seen], curve.label, curve.colour, curve.kind, curve.dash, low, high)
