"""What a run with pairs far apart has come to."""

from __future__ import annotations

from typing import NamedTuple

from poem_cma._types import Array
from poem_cma.core import Run
from poem_cma.records import quickly_replaced

__all__ = ["CHECK", "DONE", "HUGE", "LOOK", "MEASURE", "PICK", "REPEAT", "STEP", "ApartState"]

REPEAT, LOOK, MEASURE, STEP, CHECK, PICK, DONE = "repeat", "look", "measure", "step", "check", "pick", "done"

#: In units of `unit`: beyond, squares overflow.
HUGE = 1e100


@quickly_replaced
class ApartState(NamedTuple):
    """Arrays and numbers only. Slopes and what follows from them are in units of `unit`."""

    run: Run
    stage: str
    t: int
    x: Array
    centre: Array  # where probes are taken around: x, or the nearest point with room for them
    r: float  # |x - x_0|
    mu: float  # how far from it: h in the text
    s: Array  # sum of gradients
    G: float  # sum of their squares
    late: float  # twice the sum of <g, gradients that have come in since g was asked>
    unit: float
    R: float  # the scale
    dual: bool  # dual averaging, or descent
    radial: float  # sum of <g, x - x_0> since the scale was looked at
    radial_squares: float  # of its terms
    rescale_at: float  # the step since then at which it is looked at again
    average: Array
    begun: int  # the step at which the run has begun, again
    check_at: float  # the calls after which the average is compared with x_0
    own: bool  # whether noise is each value's own; else pairs share it, and F has steps,
    within: bool  # whether samples differ more than the values of one of them: then each is compared with itself
    grain: float  # of this size, as far as it is known: they count as noise
    noise: float  # the standard deviation of values at x_0, on one xi where these are shared; before, what was seen
    slope: float  # the gradient's length there; while it is looked for, the last odd change
    changes: Array  # (pairs, 2) odd and even parts of F's change over the first distances
    recent: float  # the mean square of recent gradients
    # is h too large?
    bias: Array  # sum of the differences D between gradients at h and at the other distance that is asked,
    bias_squares: float  # and of their squares
    tests: int  # such differences at this h,
    all_tests: int  # at any,
    grow_after: int  # and how many it takes before h may grow
    least: float  # h is no less than this part of R,
    most: float  # and was not seen to be too large up to this
    # for the reader
    eta: float
    g_norm: float
    value: float
    value_spread: float
    asked: int
    samples: int
    nfev: int

    @property
    def dimension(self) -> float:
        """Nothing is learned of it: d."""
        return float(len(self.x))

    @property
    def flat(self) -> bool:
        """Whether no slope was seen yet."""
        return self.unit == 0.0

    @property
    def extras(self) -> tuple[float, float, float, float]:
        """What the history tells beside: see `history.EXTRA_COLUMNS`."""
        return 4.0, 0.0, 0.0, self.noise * self.unit

    @property
    def spectrum(self) -> None:
        """There is none."""
        return
