"""The records that every run is made of, and what an algorithm is.

A run is a sequence of states. From one state a number of independent probes is asked (a *stage*); when all their values
are told, the algorithm gives the next state. A probe is a pure function of the state and its place in the stage, so it
can be asked again after a crash and answered in any order.

A run may ask some steps ahead. Then several states are asked from at a time, and the gradient of a step is that of a
state a few steps before the one it is taken from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from math import isfinite, nan
from operator import add
from typing import Any, NamedTuple, Protocol

import numpy as np

from poem_cma._types import Array, IntArray, Size, Unknown
from poem_cma.paper.differences import Difference
from poem_cma.paper.directions import Search

__all__ = [
    "Algorithm", "Learned", "Learning", "Method", "Probe", "Run", "Symbols", "Values", "mean_value", "smoothed",
    "smoothed_value",
]  # fmt: skip

#: How many recent steps the smoothed value remembers.
VALUE_MEMORY = 50


class Run(NamedTuple):
    """What does not change during a run. Only what the method needs is filled in; the rest is NaN."""

    method: Method
    x0: Array
    domain: Any
    budget: Size  # calls, or inf
    batch: int  # independent probes a step
    ahead: int  # steps that are asked before the one under way is complete
    paired: bool  # the points of a probe share their xi
    initial_distance: Size  # r_eps
    steps: Unknown  # T
    diameter: Unknown  # D_X
    lipschitz: Unknown  # L
    distance: Unknown  # s_0
    pairs: int  # M of Algorithm 2
    remark: str = ""  # what the user should know at the end
    sampled: bool = True  # whether there are xi's, as far as it is known

    @property
    def radius(self) -> float:
        """The mu of Algorithm 2."""
        return float(self.method.settings.get("radius") or self.initial_distance)


class Symbols:
    """The paper's symbols at step t: what the rules read. Scratch paper, on which a step notes them as they change."""

    __slots__ = ("G", "d", "mu", "r_bar", "run", "t", "unit")

    def __init__(self, run: Run, t: int, r_bar: float, G: float, unit: float, d: float, mu: float) -> None:
        self.run = run
        self.t = t
        self.r_bar = r_bar
        self.G = G
        self.unit = unit  # what G is measured in, squared; see `state.Gradients`
        self.d = d  # the dimension that is searched: d, or d*
        self.mu = mu


Rule = Callable[[Symbols], float]

#: The values of each probe's points. Lists: a probe has few, and Python's numbers are quicker than arrays of two.
Values = Sequence[list[float]]


@dataclass(frozen=True)
class Learning:
    """Algorithm 2 as a part of a method: estimate Sigma at x_0, filter it, search along it."""

    tol: float
    samples: int | None
    radius: float | None
    ridge: float
    whitening: str


@dataclass(frozen=True)
class Method:
    """A method with its settings, made by a constructor in `poem_cma.methods`."""

    name: str
    search: Callable[[int, Any], Search]  # from d and the domain
    difference: Difference
    smoothing: Rule
    step_size: Rule
    weight: Rule
    spacing: Rule | None = None  # h_t, for the differences that have one
    needs: tuple[str, ...] = ()  # constants of the run without which it cannot start
    learning: Learning | None = None
    algorithm: Algorithm | None = None  # what makes a run of the parts; None is `Descent`
    fallback: Method | None = None  # what takes over where the budget is too small for the algorithm
    box_units: bool = False  # whether the widths of a box are the units of its variables
    settings: dict[str, Any] = field(default_factory=dict)  # the constructor's arguments

    def __repr__(self) -> str:
        arguments = ", ".join(f"{k}={v!r}" for k, v in self.settings.items() if v is not None)
        return f"{self.name.replace('-', '_')}({arguments})"


class Probe(NamedTuple):
    """Points to evaluate together.

    Attributes
    ----------
    points : array (m, d)
    samples : array (m,) of int
        Names of the xi's: equal numbers mean the same xi. `numbers` is the same as a list.
    id : int
        Tells probes apart.
    """

    points: Array
    numbers: list[int]
    id: int

    @property
    def samples(self) -> IntArray:
        return np.array(self.numbers)


class Learned(NamedTuple):
    """What a run has learned, for another one that continues from its result.

    Attributes
    ----------
    method : str
        The method that was at work; only this one can use the rest.
    scale : float, array or None
        The units of the variables in which it has searched.
    distance : float
        The distance over which it has looked at its end; not positive if there was none.
    search : object
        What else the algorithm wants to know, a record of its own.
    spectrum : Spectrum or None
        What Algorithm 2 found.
    used : tuple of int
        The numbers of probes and of xi's that are used up.
    domain : ConvexSet
        The user's domain, with its integers and logarithms.
    """

    method: str
    scale: Any
    distance: float
    search: Any
    spectrum: Any
    used: tuple[int, int]
    domain: Any

    def fits(self, method: Method, scale: Any) -> bool:
        """Whether a run of this method, in these units, can use it."""
        return self.method == repr(method) and np.array_equal(self.scale, scale)


class Algorithm(Protocol):
    """What turns a method into a run. It has no state of its own: states are immutable records that it makes.

    A state has at least the attributes that the caller records and shows: run, t, x, r, mu, eta, g_norm, unit, value,
    value_spread, average, dimension, spectrum, asked, nfev.
    """

    @property
    def record(self) -> Any:
        """The type of its states."""

    @property
    def kinds(self) -> Any:
        """The nested records of a state, by name."""

    def randoms(self, method: Method, run: Run, seed: int) -> Any:
        """What turns random numbers into probes; a cache of pure functions of (seed, number).

        It has a method `another`, which makes one for another step in flight.
        """

    def begin(self, method: Method, run: Run, learned: Learned | None = None) -> Any:
        """The state before the first call; with `learned` it continues from the result of another run."""

    def learned(self, method: Method, s: Any) -> tuple[float, Any]:
        """The distance over which the run has looked at its end, and what else a run that continues needs."""

    def stage(self, method: Method, s: Any, randoms: Any) -> list[int]:
        """How many points each probe of the stage has; none when the run is over."""

    def points(self, method: Method, s: Any, i: int, randoms: Any) -> tuple[Iterable[Array], list[int]]:
        """The points of probe i of the stage, and the numbers of their xi's."""

    def advance(self, method: Method, s: Any, values: Values, randoms: Any, nfev: int) -> Any:
        """The next state, from the values of all probes of the stage, after `nfev` calls in all."""

    # Where steps are asked before the one under way is complete: each from a state of its own, and taken in order.

    def ahead(self, method: Method, s: Any, flight: list[Any]) -> Any:
        """Where the step after those in flight begins, if the run is at s; None if it must wait for them."""

    def told(self, method: Method, s: Any, values: Values, randoms: Any, nfev: int) -> tuple[Any, bool]:
        """A step in flight with the values of its stage, and whether it has all that it needs."""

    def landed(self, method: Method, s: Any, asked: Any, values: Values, randoms: Any, nfev: int, alone: bool) -> Any:
        """The state after s by a complete step that was asked from an earlier one; `alone`: the only one in flight."""

    def output(self, s: Any) -> Array:
        """The point to use."""

    def with_budget(self, method: Method, s: Any, budget: float, randoms: Any) -> Any:
        """The state of a run that goes on with another budget."""

    def base(self, method: Method) -> int | None:
        """The point of a probe that is asked again when it fails, because all differences share it."""

    def usable(self, method: Method, F: list[float]) -> bool:
        """Whether failures have left anything of a probe."""


def mean_value(F: list[float]) -> float:
    """The mean of the values that are finite; NaN where none is."""
    mean = reduce(add, F) / len(F) if F else nan  # `sum` rounds Python's floats and NumPy's differently since 3.12
    if isfinite(mean):
        return mean
    finite = [v for v in F if isfinite(v)]
    return reduce(add, [v / len(finite) for v in finite]) if finite else nan


def smoothed_value(value: float, spread: float, t: int, F: list[float]) -> tuple[float, float]:
    """The running mean with the values of one more step; as it was if all of them failed."""
    mean = mean_value(F)
    return smoothed(value, spread, t, mean) if isfinite(mean) else (value, spread)


def smoothed(value: Any, spread: Any, t: Any, mean: Any) -> tuple[Any, Any]:
    """The running mean of the values of about the last VALUE_MEMORY steps, and their mean distance from it."""
    if type(t) is not int:  # of many together, which have all begun
        share: Any = 1.0 / np.minimum(t + 1, VALUE_MEMORY)
    elif t == 0:
        return mean, 0.0
    else:
        share = 1.0 / (t + 1 if t < VALUE_MEMORY else VALUE_MEMORY)
    off = mean - value
    return value + share * off, spread + share * (abs(off) - spread)
