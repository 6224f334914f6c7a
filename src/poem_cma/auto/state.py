"""What a run of `auto` has come to."""

from __future__ import annotations

from math import nan, sqrt
from typing import NamedTuple

import numpy as np

from poem_cma._types import Array, IntArray
from poem_cma.core import Run
from poem_cma.records import quickly_replaced

__all__ = [
    "CHECK", "DECAYS", "DONE", "FURTHER", "HAAR", "PICK", "PROVE", "RACE", "RAY", "REPLAY", "START", "STEP", "WALK",
    "WORSE", "AutoState", "empty", "even", "has", "in_unit", "is_even", "size", "unknown",
]  # fmt: skip

START, RAY, PROVE, STEP = "start", "ray", "prove", "step"
RACE, CHECK, PICK, DONE = "race", "check", "pick", "done"

#: How a step estimates gradients: a walk along the axes, random directions, or an old sample asked again.
WALK, HAAR, REPLAY = "walk", "haar", "replay"

#: Why the average is compared once more.
WORSE, FURTHER = "worse", "further"

#: The averages that are kept weigh the k-th iterate like k to these powers (Shamir and Zhang 2013).
DECAYS = (1, 3, 8)


@quickly_replaced
class AutoState(NamedTuple):
    """Arrays and numbers only. Slopes and what follows from them are in units of `unit`, as in `descent.State`."""

    run: Run
    stage: str
    t: int
    x: Array
    centre: Array  # where probes are taken around: x, or the nearest point with room for them
    r: float  # |x - x_0|
    mu: float
    s: Array  # sum of weighted gradients
    G: Array  # sum of their squares, by coordinate
    late: float  # twice the sum of <g, gradients that have come in since g was asked>
    unit: float
    R: float  # the scale
    dual: bool  # dual averaging, or descent
    alike: int  # samples in a row, or nearly so, whose slopes were small multiples of one number:
    low: int  # the least of them, and
    high: int  # the largest
    radial: float  # sum of <g, x - x_0> since the scale was looked at
    radial_squares: float  # of its terms
    promised: float  # the same sum since x moves,
    promised_squares: float  # and of its terms
    check_at: float  # the calls after which the average is compared with x_0
    alarmed: str  # why it is compared once more, on more samples: it has seemed worse, or better further out
    lap: int  # of a race between two metrics; zero where there is none
    aside: Array  # (7, d) the path of the one that waits, and
    aside_numbers: Array  # its numbers; see `race`
    weight: float  # of all gradients
    path_weight: float  # of those since x moves
    last_weight: float
    rescale_at: float  # the weight at which the scale is looked at again
    grown: int  # how many looks in a row have found it too small
    averages: Array  # (3, d)
    # the metric and the order of the walks
    metric: Array
    by_units: bool  # whether every variable is measured by its slopes
    squares: Array  # sums of squared slopes, by axis
    tested: Array
    active: Array  # how often the slope was not zero
    order: IntArray
    # the estimator
    kind: str
    choice: str
    q: int
    trial: bool
    trial_calls: int
    step_calls: int  # calls of the step under way
    most_calls: float  # that it may take
    parallel: bool  # whether gradients at x_0 were
    active_trials: int
    costs: Array  # of recent full walks, in calls per axis
    gradients: Array  # full ones, of the trials
    subspace: Array  # (k, d), spanned by them
    shares: Array  # of a new gradient in the span of the earlier ones
    learning: bool  # whether walks come one after the other, until the subspace is known
    use_subspace: bool
    inside: float  # the energy of slopes seen there, since it is used, and
    outside: float  # beside it, at the same time
    agreed: int  # steps along random directions that confirm it; negative after one that does not
    turn: Array  # the last full gradient, of length 1
    turns: int  # pairs of such gradients, and
    overlap: float  # the sum of their squared cosines
    # samples that can be asked again
    memory: Array  # (most, d) their gradients, zero where the sample was flat
    numbers: IntArray  # which xi
    kept: int  # how many there are
    replayed: int
    ridges: bool  # whether samples depend on one direction only, by
    along: float  # the energy of replays in the directions known, and
    beside: float  # beside them
    before: Array  # the average before samples were asked again
    # what all samples have in common
    penalised: bool  # whether there is a penalty on the size of x, and
    penalty: Array  # (2,) how large it is: see `common`
    hinted: Array  # the same, as one sample has shown it
    looks: int  # for it that were in vain
    # the step under way
    eps: float  # to which values are rounded: float32's, until one is seen that is not
    absurd: int  # estimates in a row that were far steeper than any before
    sparse: bool  # whether a sample was flat, or a call failed, so far
    step: float  # the length of differences, in smoothing radii; the same until the estimate is complete
    values: Array  # (batch, size)
    still: bool  # whether F did not change at all over the last distance that was tried at x_0
    stairs: Array  # (2,) if it did over this one: the distance, and the least change; zero until then
    own: Array  # (xi's, d) gradients of the first estimates, which their own proof leaves out
    rays: Array  # (1 or 2, d) directions
    radii: Array  # of the points along them, x_0 first; those that are asked come last; for each ray in the proof
    ray_values: Array  # (1 or 2, radii that were asked) mean changes of F,
    ray_errors: Array  # and their standard errors, in the proof
    favoured: int  # the ray that its own samples prefer
    between: bool  # whether radii between the decades are asked
    exact: bool  # whether F has been the same on every xi so far
    settled: bool  # whether the scale was found by values, or has proved itself since
    picked: int  # which of the candidates is returned
    rival: int  # which other may be; -1 until it is known
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
        """The effective dimension of the gradients: one over the mean squared cosine between two of them."""
        return min(self.turns / self.overlap, float(len(self.x))) if self.overlap > 0.0 else float(len(self.x))

    @property
    def flat(self) -> bool:
        """Whether no slope was seen yet."""
        return self.unit == 0.0

    @property
    def extras(self) -> tuple[float, float, float, float]:
        """What the history tells beside: see `history.EXTRA_COLUMNS`."""
        used = self.use_subspace and len(self.shares) > 0
        share = float(self.shares.min()) if used else 0.0
        directions = 1.0 if self.kind == REPLAY and used else float(self.q)  # the known one
        return directions, float(len(self.subspace)) if used else 0.0, share, 1.2533 * self.value_spread

    @property
    def spectrum(self) -> None:
        """There is none."""
        return

    @property
    def average(self) -> Array:
        """The average that is returned unless values say otherwise."""
        average: Array = self.averages[0]
        return average


def has(run: Run, part: str) -> bool:
    """Whether a part of the method is switched on."""
    return bool(run.method.settings.get(part, True))


def in_unit(s: AutoState, unit: float) -> AutoState:
    """The same state with slopes in another unit, which must be a power of two: exact."""
    if unit == s.unit:
        return s
    if s.unit == 0.0:
        return s._replace(unit=unit)
    c = s.unit / unit
    squares = s.squares if s.tested.strides == (0,) else c * c * s.squares  # never tested: all are zero
    return s._replace(
        unit=unit, s=c * s.s, G=c * c * s.G, radial=c * s.radial, radial_squares=c * c * s.radial_squares,
        promised=c * s.promised, promised_squares=c * c * s.promised_squares, late=c * c * s.late,
        squares=squares,
        gradients=c * s.gradients, own=c * s.own, along=c * c * s.along, beside=c * c * s.beside,
        inside=c * c * s.inside, outside=c * c * s.outside,
    )  # fmt: skip


def size(v: Array, metric: Array) -> float:
    """The length of a vector in the metric."""
    squares = metric * v
    squares *= v
    return sqrt(float(squares.sum()))


def even(value: float, like: Array) -> Array:
    """A vector of equal numbers, which takes no memory until it is changed."""
    return np.ndarray(like.shape, like.dtype, like.dtype.type(value), strides=(0,))


def is_even(metric: Array) -> bool:
    """Whether all numbers of a vector are equal."""
    if metric.ndim > 1:
        return False  # of many runs together
    return metric.strides == (0,) or bool(metric[0] == metric[-1] and (metric == metric[0]).all())


def unknown(probes: int, size: int) -> Array:
    """Values that are to be asked: NaN."""
    values = np.empty((probes, size))
    values.fill(nan)
    return values


def empty(*shape: int) -> Array:
    """An array of zeros."""
    return np.zeros(shape)
