"""What a run returns."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from poem_cma._types import Array
from poem_cma.paper.algorithm_2 import Spectrum

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Result", "Status"]


class Status:
    """Why a run ended."""

    RUNNING = -1
    BUDGET = 0
    TARGET = 1
    CALLBACK = 2
    TIME = 3
    INTERRUPTED = 4
    FAILURES = 5
    CONVERGED = 6

    SUCCESSES = (BUDGET, TARGET, CALLBACK, TIME, CONVERGED)


@dataclass(eq=False)
class Result:
    """The outcome of a run.

    Attributes
    ----------
    x : array, or a nest in the form of x0
        The point to use: the method's own choice among its averages.
    x_last, x_average : array
        The last iterate, and the weighted average of all of them.
    fun, fun_stderr : float
        The mean of F at `x` over fresh calls, and its standard error. NaN where no such calls were made.
    nfev, nit : int
        Oracle calls, everything counted, and steps.
    success : bool
        Whether the run ended as it was meant to: budget, target, callback or time limit.
    status, message : int, str
        Why it ended (see `Status`).
    failures : int
        Calls that raised, or returned no finite number.
    history : mapping of str to array
        nfev, fun, step_size, smoothing, distance, gradient_norm, effective_dimension; at most about 10,000 rows.
    method : str
        The method with its settings.
    seed : int
        The seed, whether it was given or not: the run can be repeated with it.
    spectrum : Spectrum or None
        What Algorithm 2 found, up to the unit of F, for the methods that use it.
    """

    x: Array
    x_last: Array
    x_average: Array
    fun: float
    fun_stderr: float
    nfev: int
    nit: int
    success: bool
    status: int
    message: str
    failures: int
    history: Mapping[str, Array]
    method: str
    seed: int
    spectrum: Spectrum | None = None

    def __repr__(self) -> str:
        width = max(len(f.name) for f in fields(self))
        lines = [f"{f.name:>{width}}: {_short(getattr(self, f.name))}" for f in fields(self)]
        return "\n".join(lines)

    def plot(self) -> Figure:
        """Four panels: value, distance and step size, smoothing, and the spectrum where there is one.

        Needs matplotlib (``pip install "poem-cma[plot]"``). Returns the figure.
        """
        from poem_cma.plots.figures import plot_result

        return plot_result(self)

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """The same as a page to zoom and to point at, in one file; needs plotly (``pip install "poem-cma[html]"``)."""
        from poem_cma.plots.pages import to_html

        return to_html(self, path)

    def _repr_html_(self) -> str:
        """A card, for notebooks."""
        from poem_cma.plots.cards import result_card

        return result_card(self)


def _short(value: Any) -> str:
    if hasattr(value, "shape") and value.size > 6:
        head = ", ".join(f"{v:.4g}" for v in value[:5])
        return f"[{head}, ...] ({value.size} numbers)"
    if isinstance(value, dict | list | tuple):
        text = " ".join(str(value).split())
        return text if len(text) <= 160 else text[:157] + "..."
    return f"{value:.6g}" if isinstance(value, float) else str(value)
