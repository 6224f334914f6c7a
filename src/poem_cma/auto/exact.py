"""For functions without noise: quasi-Newton steps with gradients from differences.

Where F has the same value on every xi, there is nothing to average, and what earlier gradients say of the curvature
holds for good. Each step asks F a little along every axis (`slopes`), puts the change of the gradient into a quadratic
model (`quasi_newton`), and goes towards the minimum of that over the domain as far as values say (`line`). Stages:

CURVATURES  x, and a point on either side of it along every axis: the gradient, and a first model;
COMPARE     the minimum of this model, and of one with the same curvature everywhere: which is better?
SEARCH      two points on the way to the minimum: is F low enough there, and no longer falls?
SLOPES      x, and a point beside it along every axis: the gradient, and a better model;
CUTS        where slopes jump: the minimum of all planes that were seen below F, and the plane there (`cuts`, `turns`);
WITNESS     before the end: are other samples the same function, too (`witnesses`)?

What follows each of them, and when it ends, is in `exact_steps`.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, isfinite, nan
from typing import Any

import numpy as np

from poem_cma._types import Array
from poem_cma.arithmetic import distance
from poem_cma.auto import cuts, line
from poem_cma.auto.exact_state import COMPARE, CURVATURES, CUTS, DONE, SEARCH, WITNESS, ExactState
from poem_cma.auto.exact_steps import (
    EVEN,
    SEEN,
    after_curvatures,
    after_cut,
    after_slopes,
    after_trial,
    after_witnesses,
    first_model,
    on_the_way,
)
from poem_cma.auto.slopes import Steps, along_axes, places
from poem_cma.auto.state import AutoState
from poem_cma.auto.witnesses import PLACES, witness_points, witnesses
from poem_cma.core import Method, Run, Values

__all__ = ["EXACT", "Exact", "affordable", "begun"]

_MOST_DIMENSIONS = 2000  # H is a matrix
_FEWEST_GRADIENTS = 8  # that the calls must pay for
_FAR, _LEAST = 1e6, 1e-100  # of the first step, for the reach; and the least slope that is one


class Exact:
    """The algorithm, without any state of its own."""

    record = ExactState

    def randoms(self, method: Method, run: Run, seed: int) -> Steps:
        """No probe is at random."""
        return Steps()

    def begin(self, method: Method, run: Run) -> Any:
        """A run never begins with it: see `begun`."""
        raise AssertionError("a run without noise is begun by auto")

    def stage(self, method: Method, s: ExactState, steps: Steps) -> list[int]:
        """How many points the only probe has, or those of all witnesses; none when the run is over."""
        if s.stage == DONE:
            return []
        if s.stage == WITNESS:
            return [PLACES] * witnesses(s)
        size = _size(s)
        return [size] if size <= s.run.budget - s.nfev else []

    def points(self, method: Method, s: ExactState, i: int, steps: Steps) -> tuple[Iterable[Array], list[int]]:
        """The points of the probe, and the numbers of their xi's: one for all."""
        if s.stage == WITNESS:
            return witness_points(s), [s.samples + i] * PLACES
        numbers = [s.samples] * _size(s)
        if s.stage == SEARCH:
            return line.trial(s), numbers
        if s.stage == CUTS:
            return cuts.cut_points(s), numbers
        if s.stage == COMPARE:
            return [line.on_the_way(first_model(s, which), 1.0) for which in (SEEN, EVEN)], numbers
        return along_axes(s, steps(s)), numbers

    def advance(self, method: Method, s: ExactState, values: Values, steps: Steps, nfev: int) -> Any:
        """The next state, from the values of the stage."""
        if s.stage == WITNESS:
            n = len(values)
            return after_witnesses(s._replace(asked=s.asked + n, samples=s.samples + n, nfev=nfev), values)
        F = np.array(values[0])
        asked, s = s, s._replace(asked=s.asked + 1, samples=s.samples + 1, nfev=nfev)
        if s.stage == SEARCH:
            return after_trial(line.searched(s, float(F[0]), float(F[1])))
        if s.stage == CUTS:
            return after_cut(s, F)
        if s.stage == COMPARE:
            return on_the_way(first_model(s, SEEN if F[0] < F[1] else EVEN))
        after = after_curvatures if s.stage == CURVATURES else after_slopes
        return after(s, steps(asked), F)

    def told(self, method: Method, s: ExactState, values: Values, steps: Steps, nfev: int) -> Any:
        """No step is asked ahead."""
        raise AssertionError("no step is asked ahead")

    def landed(self, *_: Any) -> Any:
        """No step is asked ahead."""
        raise AssertionError("no step is asked ahead")

    def ahead(self, method: Method, s: ExactState, flight: list[ExactState]) -> None:
        """Every stage builds on the one before."""

    def base(self, method: Method) -> None:
        """What has failed would fail again."""

    def usable(self, method: Method, F: list[float]) -> bool:
        """Whether failures have left anything of a probe."""
        return any(map(isfinite, F))

    def output(self, s: ExactState) -> Array:
        """The point to use."""
        return s.average


def _size(s: ExactState) -> int:
    if s.stage in (COMPARE, SEARCH):
        return 2
    return cuts.places(s) if s.stage == CUTS else places(s)


def affordable(s: AutoState) -> bool:
    """Whether the calls that are left pay for enough gradients, and the model for its memory."""
    return (
        len(s.x) <= _MOST_DIMENSIONS
        and s.x.dtype == np.float64
        and not s.run.domain.inside
        and s.run.budget - s.nfev >= _FEWEST_GRADIENTS * (len(s.order) + 3)
    )


def begun(s: AutoState, method: Method, x: Array, value: float, radius: float, fall: float) -> ExactState:
    """From x, where F has this value, so far along a ray on which it falls by so much."""
    nothing, empty = np.zeros(len(x)), np.zeros((0, len(x)))
    slopes = np.maximum(np.abs(s.s) / s.weight, _LEAST)
    reach = np.minimum(fall / s.unit / slopes, _FAR * radius)
    samples = s.samples + len(s.values) + s.ray_values.shape[1]
    return ExactState(
        run=s.run._replace(method=method), stage=CURVATURES, t=s.t, x=x, value=value, first_value=float(s.values[0, 0]),
        r=distance(x, s.run.x0), unit=s.unit, eps=s.eps, fine=s.eps, rough_value=inf,
        axes=s.order, reach=reach, fall=fall / s.unit, steep=2.0 * fall / s.unit / radius**2, g=nothing,
        H=np.zeros((0, 0)), diagonal=slopes / reach, learned=False, s=nothing, expected=nothing, central=False, stuck=0,
        lower=x, lower_value=inf, walled=False,
        p=nothing, slope=0.0, apart=0.0, eta=0.0, low=0.0, low_value=nan, low_slope=0.0, high=inf, high_slope=nan,
        found=0.0, found_value=nan, found_slope=nan, trials=0, kinks=False,
        planes=empty, below=nothing[:0], weights=nothing[:0], walls=empty, slack=nothing[:0], squares=nothing, seen=0,
        trust=0.0, y=x, h=nothing[:0], held=x, held_value=inf, beside=x, beside_value=nan, beside_g=nothing,
        falls=np.full(2, inf), turn=0, turn_value=nan, hoped=inf, barren=0,
        mu=radius, g_norm=0.0, value_spread=0.0, asked=s.asked, samples=samples, nfev=s.nfev,
        converged=False,
    )  # fmt: skip


EXACT = Exact()
