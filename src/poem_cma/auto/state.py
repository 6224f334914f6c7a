"""What a run of `auto` has come to: a few small records, each of which is made and replaced by one module."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np

from poem_cma._types import Array, Size, Unknown, Value
from poem_cma.auto.averages import Averages
from poem_cma.auto.far.noise import Noise
from poem_cma.auto.far.state import Far, Shape
from poem_cma.auto.gate import Gate
from poem_cma.auto.judge import Judge
from poem_cma.auto.near.state import Evidence, Memory, Near, Walk
from poem_cma.auto.noiseless.state import MINIMUM, Exact, Line
from poem_cma.auto.progress import Progress
from poem_cma.auto.scan import Scan
from poem_cma.auto.sensitivity import Slopes
from poem_cma.run.algorithm import Run

__all__ = [
    "AXES", "CHECK", "DONE", "EXACT", "FAR", "GATE", "JUDGE", "KINDS", "NEAR", "SCAN", "TRIAL", "AutoState",
    "Clock", "Shown",
]  # fmt: skip

#: The phases; TRIAL is a comparison of what a look along the axes has found.
SCAN, GATE, NEAR, FAR, EXACT = "scan", "gate", "near", "far", "exact"
CHECK, AXES, TRIAL, JUDGE, DONE = "check", "axes", "trial", "judge", "done"


class Clock(NamedTuple):
    """What has been used so far."""

    t: int  # steps
    asked: int  # requests
    samples: int  # xi's
    nfev: int  # evaluations
    unit: Size = 0.0  # of values, a power of two; zero until values differ


class Shown(NamedTuple):
    """What the history records of the last step; values and slopes in the unit of the clock."""

    value: Value  # smoothed over recent steps
    spread: Unknown
    step: float
    distance: float  # of differences
    slope: float  # the norm of the gradient, or of the change along the pairs


class AutoState(NamedTuple):
    """A run at a moment."""

    run: Run
    phase: str
    clock: Clock
    scan: Scan
    gate: Gate
    search: Near | Far | Exact
    averages: Averages
    progress: Progress
    former: tuple[Array, ...]  # results of earlier searches
    judge: Judge
    shown: Shown
    slopes: Slopes
    lowest: float = inf  # value where quasi-Newton steps have ended last at a kink
    behind: int = 0  # evaluations of the run whose result x0 is

    # What the loop and the history read.

    @property
    def t(self) -> int:
        """Steps so far."""
        return self.clock.t

    @property
    def asked(self) -> int:
        """Requests so far."""
        return self.clock.asked

    @property
    def samples(self) -> int:
        """Samples so far."""
        return self.clock.samples

    @property
    def nfev(self) -> int:
        """Evaluations so far."""
        return self.clock.nfev

    @property
    def x(self) -> Array:
        """The last iterate."""
        x: Array = self.search.x.astype(self.run.x0.dtype, copy=False)
        return x

    @property
    def converged(self) -> bool:
        """Whether the run has ended at a minimum, to the precision of the values."""
        return self.phase == DONE and isinstance(self.search, Exact) and self.search.end == MINIMUM

    @property
    def average(self) -> Array:
        """The average that is returned unless values speak against it."""
        x: Array = self.averages.points[0].astype(self.run.x0.dtype, copy=False)
        return x

    @property
    def r(self) -> float:
        """The distance from x0."""
        return float(np.sqrt(((self.search.x - self.run.x0) ** 2).sum()))

    @property
    def mu(self) -> float:
        """The distance of differences."""
        return self.shown.distance

    @property
    def eta(self) -> float:
        """The step size."""
        return self.shown.step

    @property
    def g_norm(self) -> float:
        """The norm of the last gradient."""
        return self.shown.slope * (self.clock.unit or 1.0)

    @property
    def value(self) -> float:
        """The smoothed value."""
        return self.shown.value * (self.clock.unit or 1.0)

    @property
    def value_spread(self) -> float:
        """How far values are from it."""
        return self.shown.spread * (self.clock.unit or 1.0)

    @property
    def unit(self) -> float:
        """Slopes are in units of F over x."""
        return 1.0

    @property
    def flat(self) -> bool:
        """Slopes need no unit."""
        return True

    @property
    def dimension(self) -> float:
        """The number of variables."""
        return float(len(self.search.x))

    @property
    def spectrum(self) -> None:
        """There is none."""
        return

    @property
    def constant(self) -> bool:
        """Whether no difference of values was seen so far."""
        return not self.clock.unit

    @property
    def sensitivity(self) -> Array:
        """Root mean square slopes along the variables, up to a common factor."""
        typical: Array = np.sqrt(np.maximum(self.slopes.squares, 0.0))
        return typical

    @property
    def extras(self) -> tuple[float, ...]:
        """Further columns of the history."""
        return ()


#: The records that a state may hold, by name.
KINDS: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        Averages, Clock, Evidence, Exact, Far, Gate, Judge, Line, Memory, Near, Noise, Progress, Scan, Shape, Shown,
        Slopes, Walk,
    )
}  # fmt: skip
