"""Independent runs of one method in step with each other, as one state with a row for each.

Joined are runs of projected descent that have all taken the same number of steps (`in_step`). The formulas are those
of the single run (`algorithm_1.descend`), so each row holds the same bits as if its run were alone. Whatever is out of
the ordinary, a failed call for example, dissolves the group: every run goes on by itself, and may be joined again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from itertools import groupby, repeat
from math import inf
from operator import add
from typing import Any, NamedTuple, final

import numpy as np

from poem_cma._types import Array
from poem_cma.domains import projections
from poem_cma.domains.convex import ConvexSet
from poem_cma.domains.fitting import moved_inside
from poem_cma.domains.sets import Ball, Box, Whole
from poem_cma.optimizer import Optimizer
from poem_cma.paper.algorithm_1 import DESCENT, descend, unit_of
from poem_cma.paper.directions import Anisotropic, Directions, Drawn, Search, drawn
from poem_cma.paper.state import Stage, State
from poem_cma.run.algorithm import Method
from poem_cma.run.joint_history import JointHistory

__all__ = ["WORTH_JOINING", "DomainOfRows", "JointRuns", "can_join", "in_step", "joint"]

#: From points (m of shape (n, d)) and the numbers of their xi's to values (m, n, 1).
Evaluate = Callable[[list[Array], list[int]], Array]

#: Fewer runs are quicker one after another.
WORTH_JOINING = 3

#: Where the squares of a step's values sum up to less than this, none has failed, and differences do not overflow.
_ORDINARY = 1e300

#: Fields of the state that are one and the same for all runs; the others are stacked.
_COMMON = ("run", "search", "stage", "t", "flat", "late", "asked", "samples", "nfev")
_VECTORS = ("x", "weighted_x", "best_average")


def can_join(opt: Optimizer) -> bool:
    """Whether a run can be advanced together with others that have taken as many steps."""
    s = opt._state
    return (
        opt._algorithm is DESCENT
        and opt._plain
        and s.stage == Stage.STEP
        and not (s.flat and s.t > 0)  # at the beginning all are
        and s.x.dtype == np.float64
    )


def in_step(opts: Sequence[Optimizer]) -> list[list[int]]:
    """The places of runs that can be advanced together and have taken the same number of steps; groups worth it."""

    def steps(i: int) -> tuple[int, ...]:
        s = opts[i]._state
        return s.t, s.asked, s.samples, s.nfev

    able = sorted((i for i, opt in enumerate(opts) if can_join(opt)), key=steps)
    groups = [list(group) for _, group in groupby(able, key=steps)]
    return [group for group in groups if len(group) >= WORTH_JOINING]


class JointRuns:
    """Runs in step with each other. Between two calls of `advance` each can be looked at by itself."""

    def __init__(self, opts: Sequence[Optimizer]) -> None:
        self._opts = list(opts)
        self._method = opts[0]._active
        states = [opt._state for opt in opts]
        self._directions = _Directions([opt._in_flight[0].randoms for opt in opts], [s.search for s in states])
        self._joined = _joined(states)
        self._states = states  # as the runs have them

    def holds(self, opts: Sequence[Optimizer]) -> bool:
        """Whether it is these runs that it has joined, and nobody has taken a step since."""
        ours = [*map(id, self._opts)] == [*map(id, opts)]
        return ours and all(opt._state is s for opt, s in zip(opts, self._states, strict=True))

    def advance(self, evaluate: Evaluate, until: float = inf) -> None:
        """Take steps until each has made so many calls, or the budget is spent, or something unusual happens.

        Then every run has its own state again.
        """
        method, s, directions = self._method, self._joined, self._directions
        history = JointHistory([opt.history for opt in self._opts])
        F: Array | None = None
        try:
            while s.nfev < until and DESCENT.stage(method, s, directions):  # type: ignore[arg-type]
                now = directions(s.asked)
                points = s.run.domain.inside(list(method.difference.points(s.x, s.mu, s.h, now.V)))
                F = evaluate(points, _numbers(s, len(points)))
                if not np.vdot(F, F) < _ORDINARY or (s.flat and not _all_slope(method, F)):
                    break
                with np.errstate(over="ignore"):  # as Python's numbers do
                    s = _step(method, s, F, now)
                    history.record(s)
                F = None
        finally:  # also where `evaluate` is interrupted
            history.split()
            self._joined = s
            self._states = _split(self._opts, s, F)


def joint(opts: Sequence[Optimizer], before: Iterable[JointRuns]) -> JointRuns:
    """The group of these runs: the one that has joined them before, or a new one."""
    return next((group for group in before if group.holds(opts)), None) or JointRuns(opts)


def _all_slope(method: Method, F: Any) -> bool:
    """Whether no run has seen the same value twice: at the first step it has no unit then to measure slopes in."""
    return bool(np.all(method.difference.change(F)))


def _numbers(s: State, m: int) -> list[int]:
    first = s.samples
    return [first] * m if s.run.paired else list(range(first, first + m))


def _step(method: Method, s: State, F: Any, now: Drawn) -> State:
    """As `Descent.advance`, row by row."""
    delta: Any = method.difference.change(F)
    span = method.difference.span(s.mu, s.h)
    unit: Any = s.gradients.unit
    steeper = np.abs(delta) > unit * span
    if np.count_nonzero(steeper):
        unit = unit.copy()
        spans = np.broadcast_to(span, unit.shape)
        for i in np.flatnonzero(steeper):
            unit[i] = unit_of(float(unit[i, 0]), float(delta[i, 0]), float(spans[i, 0]))
    slope = delta / unit / span
    mean: Any = reduce(add, F) / len(F)
    nfev = s.nfev + len(F)
    return descend(method, s, unit, slope * s.search.gain, now.w, np.abs(slope) * now.size, mean, 1, nfev)


class _Directions:
    """The directions of all runs: V (rows, n, d), w (n, d) and their sizes (n, 1), drawn in the blocks of each."""

    def __init__(self, each: list[Directions], searches: list[Search]) -> None:
        self._each = each
        self._searches = searches
        self._first = 0
        self._block: list[Drawn] = []
        self._alike = not any(isinstance(s, Anisotropic) for s in searches)
        if self._alike:
            self._Z = np.empty((len(each), each[0].size, each[0].rows, searches[0].width))

    def __call__(self, number: int) -> Drawn:
        at = number - self._first
        if not 0 <= at < len(self._block):
            block, at = divmod(number, self._each[0].size)
            V, W, sizes = self._draw(block)  # a row for each run
            columns = np.ascontiguousarray(sizes.swapaxes(0, 1))
            self._block = list(map(Drawn, V.transpose(1, 2, 0, 3), W.swapaxes(0, 1), columns))
            self._first = block * self._each[0].size
        return self._block[at]

    def _draw(self, block: int) -> tuple[Array, Array, Array]:
        if not self._alike:
            parts = [one.draw(s, block) for one, s in zip(self._each, self._searches, strict=True)]
            V, W, sizes = (np.stack(part) for part in zip(*parts, strict=True))
            return V, W, sizes
        for one, Z in zip(self._each, self._Z, strict=True):
            one.generator(block).standard_normal(out=Z)
        return drawn(self._searches[0], self._Z)


class _Searches(NamedTuple):
    """What a step reads of the distributions of all runs."""

    gain: float
    dimension: Any  # one number, or a column


def _joined(states: list[State]) -> State:
    """One state of rows and columns."""
    first, s = states[0], _stacked("state", states)
    dimensions: list[Any] = [own.search.dimension for own in states]
    dimension = dimensions[0] if len(set(dimensions)) == 1 else _stacked("dimension", dimensions)
    x0 = np.stack([own.run.x0 for own in states])
    run = first.run._replace(x0=x0, domain=DomainOfRows(first.run.domain))
    joined: State = s._replace(run=run, search=_Searches(first.search.gain, dimension))
    return joined


def _stacked(name: str, values: Sequence[Any]) -> Any:
    """The value of a field for all runs together; that of a record field by field."""
    first = values[0]
    if name in _COMMON:
        return first
    if hasattr(first, "_fields"):
        return type(first)(*map(_stacked, first._fields, zip(*values, strict=True)))
    return np.stack(values) if isinstance(first, np.ndarray) else np.array([[float(v)] for v in values])


def _split(opts: Sequence[Optimizer], s: State, F: Array | None) -> list[State]:
    """Give every run its row; and the values of the step that could not be taken together, if there are any."""
    each = _parted("state", s, len(opts))
    states = [own._replace(run=opt._state.run, search=opt._state.search) for own, opt in zip(each, opts, strict=True)]
    for i, (opt, own) in enumerate(zip(opts, states, strict=True)):
        opt._go_on_from(own)
        if F is not None:
            opt._take_alone([float(f[i, 0]) for f in F])
    return states


def _parted(name: str, value: Any, n: int) -> Iterable[Any]:
    """The value of a field for each of n runs."""
    if name in _COMMON:
        return repeat(value, n)
    if hasattr(value, "_fields"):
        parts = map(_parted, value._fields, value, repeat(n))
        return map(type(value), *parts)
    if name in _VECTORS:
        return [row.copy() for row in value]
    return value[:, 0].tolist() if isinstance(value, np.ndarray) else repeat(value, n)


@final
class DomainOfRows(ConvexSet):
    """A set for many vectors at once: the nearest point to each row."""

    domain: ConvexSet

    def __init__(self, domain: ConvexSet) -> None:
        vars(self).update(domain=domain, dimension=domain.dimension)

    def project(self, x: Array, weight: Array | None = None) -> Array:
        """As of a single set, without its checks."""
        return self.nearest(x, weight)

    def nearest(self, x: Array, weight: Array | None = None) -> Array:
        domain = self.domain
        if weight is not None:
            return np.array([domain.project(row, own) for row, own in zip(x, weight, strict=True)])
        if isinstance(domain, Whole | Box):  # whose formulas work on each coordinate by itself
            return domain.nearest(x)
        if isinstance(domain, Ball):
            return projections.balls(x, domain.radius, domain.center)
        return np.array([domain.nearest(row) for row in x])

    def inside(self, points: list[Array]) -> list[Array]:
        """The points of each run, moved into the set together."""
        if self.domain.outside:
            return points
        nearest = [self.nearest(X) for X in points]
        for i in np.flatnonzero(np.any([(X != Y).any(axis=1) for X, Y in zip(points, nearest, strict=True)], axis=0)):
            for Y, y in zip(nearest, list(moved_inside([X[i] for X in points], self.domain)), strict=True):
                Y[i] = y
        return nearest

    @property
    def diameter(self) -> float:
        return self.domain.diameter

    def fits(self, reach: float | Array) -> float:
        return self.domain.fits(reach)

    def _shrunk(self, reach: float | Array) -> ConvexSet:
        return self._with(domain=self.domain.shrunk(reach))
