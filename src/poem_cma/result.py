"""What a run returns."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from poem_cma._types import Array
from poem_cma.estimate import UNKNOWN, Estimate
from poem_cma.paper.algorithm_2 import Spectrum
from poem_cma.run.algorithm import Learned

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Result", "Status", "shares"]


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
    NOT_BETTER = 7  # x is not better than x0
    UNMOVED = 8  # the search did not leave x0
    CONSTANT = 9  # no value depends on x
    UNBOUNDED = 10  # F falls without bound

    SUCCESSES = (BUDGET, TARGET, CALLBACK, TIME, CONVERGED)
    #: A run with one of these is complete.
    ENDS = (BUDGET, CONVERGED, NOT_BETTER, UNMOVED, CONSTANT, UNBOUNDED)


@dataclass(eq=False)
class Result:
    """The outcome of a run.

    Attributes
    ----------
    x : array, or a nest in the form of x0
        The point to use, as chosen by the method.
    x_last, x_average : array
        The last iterate, and the weighted average of all of them.
    value : Estimate
        The mean of F at `x` over fresh evaluations, with its standard error and 95% interval; NaN if there were none.
    gain : Estimate
        f(x0) - f(x), from evaluations of both points on common samples, with its 95% interval. With ``maximize=True``,
        f(x) - f(x0).
    sensitivity : array, or a nest in the form of x0, or None
        How much each variable matters: its share of the root mean square slopes in the run, in units of `scale` (of the
        widths of a box). The shares sum to one. A share of 0 means that no effect was seen. None if there was no slope,
        and for methods of the paper that learn no spectrum.
    nfev, nit : int
        The number of evaluations, all counted, and the number of steps.
    status, message : int, str
        Why the run ended (see `Status`).
    failures : int
        The number of evaluations that raised or returned no finite number.
    history : mapping of str to array
        nfev, fun, step_size, smoothing, distance, gradient_norm, effective_dimension; at most about 10,000 rows.
    method : str
        The method with its settings.
    seed : int
        The seed, given or drawn. It can be used to repeat the run.
    learned : Learned or None
        What a warm start needs: ``minimize(fun, x0=result)``.
    """

    x: Array
    x_last: Array
    x_average: Array
    nfev: int
    nit: int
    status: int
    message: str
    failures: int
    history: Mapping[str, Array]
    method: str
    seed: int
    value: Estimate = UNKNOWN
    gain: Estimate = UNKNOWN
    sensitivity: Any = None
    learned: Learned | None = field(default=None, repr=False)

    @property
    def fun(self) -> float:
        """The mean of F at `x` over fresh evaluations."""
        return self.value.mean

    @property
    def fun_stderr(self) -> float:
        """The standard error of `fun`."""
        return self.value.stderr

    @property
    def success(self) -> bool:
        """Whether the run ended normally, with a point that is better than x0."""
        return self.status in Status.SUCCESSES

    @property
    def spectrum(self) -> Spectrum | None:
        """The spectrum of Algorithm 2, up to the unit of F, for methods that use it; otherwise None."""
        return None if self.learned is None else self.learned.spectrum

    def by_variable(self) -> list[tuple[str, float, float]]:
        """The name of each variable, its value in `x`, and its share of the sensitivity (NaN if it is not known).

        >>> import numpy as np, poem_cma as pc
        >>> result = pc.minimize(lambda x: float(9 * x[0] ** 2 + x[1] ** 2), np.ones(2), budget=300, seed=0)
        >>> [name for name, _, _ in result.by_variable()]
        ['x[0]', 'x[1]']
        """
        from poem_cma.parameters.nest import structure_of

        form = structure_of(self.x)
        x = self.x if form is None else form.flatten(self.x)
        names = [f"x[{i}]" for i in range(len(x))] if form is None else form.names()
        if self.sensitivity is None:
            known = np.full(len(x), np.nan)
        else:
            known = self.sensitivity if form is None else form.flatten(self.sensitivity)
        return list(zip(names, x.tolist(), known.tolist(), strict=True))

    def to_dict(self) -> dict[str, Any]:
        """The attributes by name, as in SciPy's results."""
        return {name: getattr(self, name) for name in _NAMES}

    def __repr__(self) -> str:
        width = max(map(len, _NAMES))
        return "\n".join(f"{name:>{width}}: {_short(value)}" for name, value in self.to_dict().items())

    def plot(self) -> Figure:
        """Plot value, distance and step size, smoothing, the spectrum if there is one, and the sensitivity.

        Needs matplotlib (``pip install "poem-cma[plot]"``). Returns the figure.
        """
        from poem_cma.plots.figures import plot_result

        return plot_result(self)

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """The same as an interactive page in one file; needs plotly (``pip install "poem-cma[html]"``)."""
        from poem_cma.plots.pages import to_html

        return to_html(self, path)

    def _repr_html_(self) -> str:
        """A card, for notebooks."""
        from poem_cma.plots.cards import result_card

        return result_card(self)


_NAMES = (
    "x", "fun", "fun_stderr", "value", "gain", "sensitivity", "success", "status", "message", "nfev", "nit", "failures",
    "x_last", "x_average", "method", "seed", "spectrum", "history",
)  # fmt: skip


def _short(value: Any) -> str:
    if hasattr(value, "shape") and value.size > 6:
        head = ", ".join(f"{v:.4g}" for v in value[:5])
        return f"[{head}, ...] ({value.size} numbers)"
    if isinstance(value, dict | list | tuple) and not isinstance(value, Estimate):
        text = " ".join(str(value).split())
        return text if len(text) <= 160 else text[:157] + "..."
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def shares(sizes: Array | None) -> Array | None:
    """Sizes as shares that sum to one; None where all are zero or none is known."""
    if sizes is None or not np.isfinite(sizes).all() or not sizes.any():
        return None
    relative: Array = sizes / sizes.max()
    relative /= relative.sum()
    return relative
