"""Pictures of a run (matplotlib)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from poem_cma.result import Result

__all__ = ["plot_result"]

_BLUE, _ORANGE, _GREY = "#2f6db3", "#d9822b", "#8a8f98"


def plot_result(result: Result) -> Figure:
    """Four panels: value, distance and step size, smoothing, and the spectrum where there is one."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError('plots need matplotlib: pip install "poem-cma[plot]"') from None

    h = result.history
    figure = Figure(figsize=(10, 7), layout="constrained")
    (value, steps), (smoothing, last) = figure.subplots(2, 2)
    _line(value, h["nfev"], h["fun"], _BLUE, "smoothed value of recent probes")
    if np.isfinite(result.fun):
        value.axhline(result.fun, color=_ORANGE, ls="--", label=f"at the returned point: {result.fun:.4g}")
    value.set(title="Value", xlabel="oracle calls")
    _line(steps, h["nfev"], h["distance"], _BLUE, "distance |x - x0|", log=True)
    _line(steps, h["nfev"], h["step_size"], _ORANGE, "step size", log=True)
    steps.set(title="Distance and step size", xlabel="oracle calls")
    _line(smoothing, h["nfev"], h["smoothing"], _BLUE, "smoothing radius", log=True)
    smoothing.set(title="Smoothing", xlabel="oracle calls")
    if result.spectrum is not None:
        lam = result.spectrum.all_eigenvalues
        last.bar(np.arange(1, len(lam) + 1), lam / lam.max(), color=_BLUE)
        last.set(
            title=f"Spectrum: d* = {result.spectrum.effective_dimension:.3g}, "
            f"kappa = {result.spectrum.condition:.3g}, rank {result.spectrum.rank}",
            xlabel="direction",
            ylabel="eigenvalue / largest",
        )
    else:
        _line(last, h["nfev"], h["gradient_norm"], _BLUE, "norm of the gradient estimate", log=True)
        last.set(title="Gradient estimates", xlabel="oracle calls")
    for axes in (value, steps, smoothing, last):
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(frameon=False, labelcolor=_GREY)
    figure.suptitle(f"{result.method}: {result.nfev} calls")
    return figure


def _line(axes: Any, x: Any, y: Any, color: str, label: str, log: bool = False) -> None:
    """A curve; on a log axis only where it is positive."""
    if log:
        seen = np.isfinite(y) & (y > 0)
        x, y = x[seen], y[seen]
        if len(y):
            axes.set_yscale("log")
    axes.plot(x, y, color=color, lw=1.3, label=label)
