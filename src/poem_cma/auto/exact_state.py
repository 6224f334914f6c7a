"""What a run without noise has come to."""

from __future__ import annotations

from typing import NamedTuple

from poem_cma._types import Array, IntArray
from poem_cma.core import Run
from poem_cma.records import quickly_replaced

__all__ = ["COMPARE", "CURVATURES", "CUTS", "DONE", "SEARCH", "SLOPES", "WITNESS", "ExactState"]

CURVATURES, COMPARE, SLOPES, SEARCH = "curvatures", "compare", "slopes", "search"
CUTS, WITNESS, DONE = "cuts", "witness", "done"


@quickly_replaced
class ExactState(NamedTuple):
    """Arrays and numbers only. Slopes and what follows from them are in units of `unit`."""

    run: Run
    stage: str
    t: int
    x: Array
    value: float  # F there,
    first_value: float  # and at x_0
    r: float  # |x - x_0|
    unit: float
    eps: float  # to which values are believed,
    fine: float  # and to which they are rounded
    rough_value: float  # F where fewer digits were believed at first
    # the model
    axes: IntArray  # that are free
    reach: Array  # how far along each of them F may change by as much as it fell along the first ray
    fall: float  # how far F fell there, and
    steep: float  # the curvature along it
    g: Array  # the gradient at x
    H: Array  # (d, d) the inverse of the second derivatives,
    diagonal: Array  # and the diagonal of these
    learned: bool  # whether they were seen, not guessed
    s: Array  # the last step,
    expected: Array  # and by how much the model expects the next one, p, to change the gradient; or the last one, s
    central: bool  # whether slopes are seen from both sides
    stuck: int  # models in a row whose promise was empty
    lower: Array  # a point beside x,
    lower_value: float  # and F there, if it is lower
    walled: bool  # whether calls have failed on the last way
    # the way to its minimum, and where F was asked along it
    p: Array
    slope: float  # of F along it, at x
    apart: float  # how far from each other two of its points must be, lest they are one
    eta: float  # how far it is asked now
    low: float  # as far as this F falls enough, and still does so,
    low_value: float
    low_slope: float
    high: float  # and as far as this it has risen again, or not fallen enough
    high_slope: float  # NaN where it is not known
    found: float  # as far as this is far enough; zero until that is known
    found_value: float
    found_slope: float
    trials: int
    kinks: bool  # whether slopes jump at corners
    # where it has kinks: planes below F
    planes: Array  # (n, d) their slopes,
    below: Array  # (n,) how far each is below F at x,
    weights: Array  # (n,) and what each had to say about p
    walls: Array  # (m, d) half-spaces around the domain: their normals,
    slack: Array  # (m,) and how far x is from them, times the length of the normal
    squares: Array  # of the slopes along each axis, summed over
    seen: int  # gradients
    trust: float  # t: how far the planes are believed
    y: Array  # where the next plane is asked,
    h: Array  # and how far from there, along the axes
    held: Array  # the best point, while the quadratic model is tried from
    held_value: float
    beside: Array  # the last point beside it, which lies on no kink,
    beside_value: float
    beside_g: Array  # and the gradient there
    # and which of the two models is better
    falls: Array  # (2,) how far F fell per gradient, when last the one or the other was used; zero where nothing helps
    turn: int  # gradients since the present one began,
    turn_value: float  # and F then
    hoped: float  # what the planes promised then
    barren: int  # turns in which they have not come nearer to F
    # for the reader
    mu: float  # the longest difference
    g_norm: float
    value_spread: float
    asked: int
    samples: int
    nfev: int
    converged: bool  # whether no decrease is left that values could show

    @property
    def size(self) -> float:
        """The size of F, to whose last digit it is rounded: of its value, or of what it was made of."""
        return max(abs(self.value), abs(self.first_value - self.value))

    @property
    def average(self) -> Array:
        """The best point so far."""
        return self.held if self.held_value < self.value else self.x

    @property
    def dimension(self) -> float:
        """Nothing is learned of it: d."""
        return float(len(self.x))

    @property
    def flat(self) -> bool:
        """Whether no slope was seen yet."""
        return False

    @property
    def extras(self) -> tuple[float, float, float, float]:
        """What the history tells beside: see `history.EXTRA_COLUMNS`."""
        return float(len(self.axes)), 0.0, 0.0, 0.0

    @property
    def spectrum(self) -> None:
        """There is none."""
        return
