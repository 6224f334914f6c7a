"""What a run of Algorithm 1 has come to at step t."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from poem_cma._types import Array, Size, Unknown, Value
from poem_cma.paper.algorithm_2 import Spectrum
from poem_cma.paper.directions import Anisotropic, Search
from poem_cma.run.algorithm import Run

__all__ = ["KINDS", "Gradients", "LastStep", "Stage", "State", "Weights"]


class Stage:
    """The kinds of stage."""

    LEARN = "learn"  # Algorithm 2 at x_0
    STEP = "step"  # one iteration of Algorithm 1


class Gradients(NamedTuple):
    """The sum of the squares of all gradients, which the step size is divided by.

    Gradients and what follows from them (G, eta, g_norm) are measured in units of `unit`, the power of two next to the
    steepest slope seen. It cancels from every step, exactly, and lets F have values of 1e-300 or 1e300.
    """

    G: Size
    late: float  # twice the sum of <g, gradients that have come in since g was asked>; see `_behind`
    unit: Size  # zero until a slope is not
    flat: bool  # whether G is zero


class Weights(NamedTuple):
    """The sums that averages of the iterates are made of, and the best average so far."""

    unit: Size  # a power of two next to r_eps: without it weighted points near 1e-300 would be zero
    weight: Size  # of x_t in the average, in units of it
    weight_sum: Size  # over k < t
    weighted_x: Array  # sum of weight times x_k, k < t
    best_score: float  # of the averages that were overtaken
    best_average: Array


class LastStep(NamedTuple):
    """What the history records of a step, and what values have been lately."""

    eta: Unknown
    g_norm: Unknown
    value: Value  # smoothed over recent steps
    spread: Unknown  # how far values are from it


class State(NamedTuple):
    """All that a run has come to at step t; what must survive a crash is here."""

    run: Run
    search: Search
    stage: str
    t: int
    x: Array
    r: Size  # |x_t - x_0|
    r_bar: Size  # the largest so far, and at least r_eps
    mu: Size
    h: Size  # the distance that differences are taken over, where it is not mu
    gradients: Gradients
    weights: Weights
    last: LastStep
    asked: int  # probes
    samples: int  # xi's
    nfev: int

    # What the loop and the history read.

    @property
    def dimension(self) -> float:
        """The dimension that is searched: d, or d*."""
        return self.search.dimension

    @property
    def unit(self) -> float:
        """What slopes are measured in; zero until one is not."""
        return self.gradients.unit

    @property
    def flat(self) -> bool:
        """Whether all gradients were zero so far."""
        return self.gradients.flat

    @property
    def eta(self) -> float:
        """The size of the last step."""
        return self.last.eta

    @property
    def g_norm(self) -> float:
        """The norm of the last gradient."""
        return self.last.g_norm

    @property
    def value(self) -> float:
        """The value, smoothed over recent steps."""
        return self.last.value

    @property
    def value_spread(self) -> float:
        """How far values are from it."""
        return self.last.spread

    @property
    def spectrum(self) -> Spectrum | None:
        """What Algorithm 2 found."""
        return self.search.spectrum if isinstance(self.search, Anisotropic) else None

    @property
    def constant(self) -> bool:
        """Whether no difference of values was seen so far."""
        return not self.gradients.unit

    @property
    def sensitivity(self) -> Array | None:
        """Root mean square slopes along the variables as Algorithm 2 found them, up to a common factor.

        Along random directions v the second moment of d <g, v> v is d / (d + 2) (2 S + tr(S) I), with S = E g g'.
        """
        if self.spectrum is None:
            return None
        d, moment = len(self.x), self.spectrum.vectors**2 @ self.spectrum.eigenvalues
        squares = (d + 2.0) / d * moment - moment.sum() / d
        slopes: Array = np.sqrt(np.maximum(squares, 0.0))
        return slopes

    @property
    def score(self) -> float:
        """sum_{k<t} r_bar_k / r_bar_t, which the output maximises over t."""
        return self.weights.weight_sum / self.weights.weight

    @property
    def average(self) -> Array:
        """x_bar_t, the weighted mean of x_k, k < t; x_0 before the first step."""
        return self.weights.weighted_x / self.weights.weight_sum if self.t > 0 else self.run.x0


#: The records that a state holds, by name.
KINDS: dict[str, type] = {kind.__name__: kind for kind in (Gradients, LastStep, Weights)}
