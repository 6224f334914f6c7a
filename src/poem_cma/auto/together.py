"""Independent runs of `auto` advanced together, as one state with a row for each.

Joined are runs whose steps go along random directions, as nearly all do where axes are many and samples are not sparse.
The formulas are those of the single run (`steps.stepped`), so each row holds the same bits as if its run were alone.
The runs need not have made equally many steps or calls. One that looks at its scale does so by itself, in between. One
that meets with anything else (a walk that is due, a failed call, a slope steeper than ever) leaves the others, and goes
on by itself until it can be joined again. When half have left, the rest do so, too: the next group will be larger.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress, groupby
from math import nan
from typing import Any, NamedTuple, Protocol

import numpy as np

from poem_cma._types import Array, IntArray
from poem_cma.arithmetic import length
from poem_cma.auto.algorithm import AUTO
from poem_cma.auto.choose import affordable, on_axes, prefers_walks, trial_at
from poem_cma.auto.directions import FIRST, many_differences, many_gradients, worked_out
from poem_cma.auto.estimators import around, stretch_of
from poem_cma.auto.pick import pick_calls
from poem_cma.auto.scale import rescaled
from poem_cma.auto.state import HAAR, STEP, AutoState, has, is_even
from poem_cma.auto.steps import MOST_GROWTH, at_scale, ready, stepped, weight
from poem_cma.auto.subspace import watching
from poem_cma.auto.walks import DRAWN_AT_ONCE, slopes_of
from poem_cma.core import smoothed
from poem_cma.joint_history import JointHistory
from poem_cma.optimizer import Optimizer
from poem_cma.randomness import Stream
from poem_cma.together import WORTH_JOINING, Rows

__all__ = ["AutoTogether", "can_join", "in_step"]

_MOST_DIMENSIONS = 2000  # runs in more have enough to do by themselves
_MOST_HELD = 2**21  # random numbers, of all runs
_ORDINARY = 1e150  # smaller values do not overflow, whatever is made of them

#: Fields of the state that steps change. The others are each run's own, and stay as they are while it is joined.
_NUMBERS = (
    "t", "r", "mu", "unit", "R", "radial", "radial_squares", "promised", "promised_squares", "weight",
    "path_weight", "last_weight", "rescale_at", "eta", "g_norm", "value", "value_spread", "asked", "samples", "nfev",
)  # fmt: skip
_WHOLE = ("t", "asked", "samples", "nfev")
_VECTORS = ("x", "s", "G", "averages")


class Evaluate(Protocol):
    """From points (m, n, d) of some runs, and the number of the xi of each, to values (m, n)."""

    def __call__(self, points: Array, numbers: list[int], runs: IntArray) -> Array: ...


def can_join(opt: Optimizer) -> bool:
    """Whether a run is at a step that can be taken together with others."""
    s = opt._state
    return (
        opt._algorithm is AUTO
        and opt._plain
        and s.stage == STEP
        and s.kind == HAAR
        and not (on_axes(s.run, len(s.order)) and prefers_walks(s))
        and not s.use_subspace
        and not (s.agreed >= 0 and watching(s))
        and s.t > 0
        and s.eta > 0.0
        and s.settled
        and s.eps < 1e-10  # values in single precision may turn out not to be
        and not s.run.domain.inside
        and s.x.dtype == np.float64
        and has(s.run, "base")
        and has(s.run, "flat")
        and not s.penalised
        and not s.absurd
        and len(s.x) <= _MOST_DIMENSIONS
        and bool(np.isnan(s.values).all())
        and s.nfev < _until(s)
    )


def in_step(opts: Sequence[Optimizer]) -> list[list[int]]:
    """The places of runs that can be advanced together; groups worth it."""

    def kind(i: int) -> tuple[Any, ...]:
        s, history = opts[i]._state, opts[i].history
        even = is_even(s.metric)
        thinned = (history.stride, history.seen) if history.seen >= history.most else (0, 0)
        return s.q, s.eps, even, float(s.metric[0]) if even else 0.0, thinned

    able = sorted((i for i, opt in enumerate(opts) if can_join(opt)), key=kind)
    groups = [list(group) for _, group in groupby(able, key=kind)]
    return [group for group in groups if len(group) >= WORTH_JOINING]


def _until(s: AutoState) -> float:
    """The calls before which a step along random directions is followed by another such step."""
    n, end = len(s.order), min(s.run.budget - pick_calls(s.run) - s.values.size, s.check_at)
    if on_axes(s.run, n) and affordable(s, n) and (due := trial_at(s)) > s.nfev:  # else it is not taken
        end = min(end, due)
    return end - s.values.size


class AutoTogether:
    """Runs that are advanced together; when `advance` returns, each has a state of its own again."""

    def __init__(self, opts: Sequence[Optimizer]) -> None:
        self._opts = list(opts)
        self._places = np.arange(len(opts))  # of the runs that are still here, among all
        self._own: list[AutoState] = [opt._state for opt in opts]
        self._joined = _joined(self._own)
        self._about = _about(self._own)
        self._directions = _Directions(self._opts)
        self._history = JointHistory([opt.history for opt in self._opts])

    def advance(self, evaluate: Evaluate) -> None:
        """Take steps until half of the runs have left, because they have something else to do."""
        least = max(WORTH_JOINING, (len(self._opts) + 1) // 2)
        self._leave(self._due())
        while len(self._opts) >= least and not self._history.full:
            asked = self._ask(evaluate)
            slopes = self._slopes(asked)
            unusual = ~(asked.ordinary & (np.abs(slopes) < 1.0).all(axis=0))
            if unusual.any():
                self._leave(unusual, asked)
                asked, slopes = asked.of(~unusual), slopes[:, ~unusual]
            if self._opts:
                changed = self._step(asked, slopes)
                self._history.record(_Shown(self._joined, self._about.dimension), self._joined.extras)
                self._leave(changed | self._due())
        self._leave(np.ones(len(self._opts), bool))

    def _due(self) -> Any:
        """Which runs have something else to do."""
        return (self._joined.nfev >= self._about.until)[:, 0]

    def _leave(self, which: Any, asked: _Asked | None = None) -> None:
        """Give these runs their rows, and the values of a step that each has to take by itself, if there are any."""
        if not np.count_nonzero(which):
            return
        self._history.split()
        for i in np.flatnonzero(which).tolist():
            opt = self._opts[i]
            opt._go_on_from(self._row(i))
            for F in asked.told(i) if asked else []:
                opt._take_alone(F)
        stay = ~which
        self._opts, self._own = list(compress(self._opts, stay)), list(compress(self._own, stay))
        self._places = self._places[stay]
        self._joined, self._about = _some(self._joined, stay), _About(*(column[stay] for column in self._about))
        self._directions.keep(stay)
        if self._opts:
            self._history = JointHistory([opt.history for opt in self._opts])

    def _ask(self, evaluate: Evaluate) -> _Asked:
        """The values of a step. Runs whose samples may be flat ask the first places before the others."""
        s, n, sparse = self._joined, len(self._own), self._about.sparse
        W, sizes, V = self._directions(s.samples)
        stretch = stretch_of(s.metric)
        h: Any = s.step * s.mu
        points = np.empty((1 + s.q, n, s.x.shape[1]))
        points[0] = around(s.x, s.mu, stretch, self._own[0].run.domain.tangent, W, sizes)
        np.multiply(h / stretch, V.swapaxes(0, 1), out=points[1:])
        points[1:] += points[0]
        numbers = _whole(s.samples)
        if not sparse.any():
            return _Asked(evaluate(points, numbers, self._places), ~sparse, sparse, V, h, stretch)
        F = np.full((len(points), n), nan)

        def ask(places: slice, which: Array) -> None:
            rows = np.flatnonzero(which)
            if len(rows) and len(F[places]):
                F[places, rows] = evaluate(points[places, rows], [numbers[i] for i in rows], self._places[rows])

        ask(slice(None), ~sparse)
        ask(slice(FIRST), sparse)
        seen = many_differences(F[:FIRST], s.eps).any(axis=0) & np.isfinite(F[:FIRST]).all(axis=0)
        ask(slice(FIRST, None), sparse & seen)
        return _Asked(F, ~sparse | seen, sparse & (len(F) > FIRST), V, h, stretch)

    def _slopes(self, asked: _Asked) -> Array:
        s = self._joined
        unit: Any = s.unit
        slopes: Array = slopes_of(many_differences(asked.F, s.eps), asked.h[:, 0], unit[:, 0])
        return slopes

    def _step(self, asked: _Asked, slopes: Array) -> Any:
        """Whose metric has changed: these cannot go on with the others."""
        s, domain = self._joined, self._own[0].run.domain
        g = many_gradients(slopes, asked.V, domain.hull_dimension(s.x.shape[1]), asked.stretch)
        value: Any = asked.F[0][:, None]
        with np.errstate(over="ignore"):  # as Python's numbers do
            w = np.minimum(weight(s), MOST_GROWTH * s.last_weight)
            s = stepped(s, g, w, *smoothed(s.value, s.value_spread, s.t, value), s.x)
            self._joined = s._replace(asked=s.asked + asked.stages, nfev=s.nfev + asked.calls)
            self._about = self._about._replace(sparse=self._about.sparse | ~slopes.any(axis=0))
            changed = self._rescale()
            self._joined = ready(self._joined, 1)
        return changed

    def _rescale(self) -> Any:
        """Look at the scale of those runs for which it is time; whose metric has changed."""
        s, changed = self._joined, np.zeros(len(self._own), bool)
        for i in np.flatnonzero(s.weight >= s.rescale_at).tolist():
            after = at_scale(rescaled(self._row(i)))
            changed[i] = after.metric is not self._own[i].metric
            self._own[i] = after
            for name in _NUMBERS:
                getattr(s, name)[i, 0] = getattr(after, name)
            s.x[i] = after.x
        return changed

    def _row(self, i: int) -> AutoState:
        """The state of one run."""
        s = self._joined
        numbers: dict[str, Any] = {name: float(getattr(s, name)[i, 0]) for name in _NUMBERS}
        numbers |= {name: int(numbers[name]) for name in _WHOLE}
        vectors = {name: getattr(s, name)[i].copy() for name in _VECTORS}
        return self._own[i]._replace(**numbers, **vectors, centre=vectors["x"], sparse=bool(self._about.sparse[i]))


def _joined(own: Sequence[AutoState]) -> AutoState:
    """One state with a row for each run; what steps do not change is that of the first."""
    first = own[0]
    fields: dict[str, Any] = {name: np.array([[float(getattr(s, name))] for s in own]) for name in _NUMBERS}
    fields |= {name: np.stack([getattr(s, name) for s in own]) for name in _VECTORS}
    if not is_even(first.metric):
        fields["metric"] = np.stack([s.metric for s in own])
    if len({s.dual for s in own}) > 1:
        fields["dual"] = np.array([[s.dual] for s in own])
    x0 = np.stack([s.run.x0 for s in own])
    run = first.run._replace(x0=x0, domain=Rows(first.run.domain))
    return first._replace(run=run, centre=fields["x"], **fields)


def _some(s: AutoState, which: Any) -> AutoState:
    """Some of the rows."""
    fields = {name: getattr(s, name)[which] for name in (*_NUMBERS, *_VECTORS)}
    if s.metric.ndim > 1:
        fields["metric"] = s.metric[which]
    dual: Any = s.dual
    if isinstance(dual, np.ndarray):
        fields["dual"] = dual[which]
    return s._replace(run=s.run._replace(x0=s.run.x0[which]), centre=fields["x"], **fields)


class _About(NamedTuple):
    """What else is known of the runs: a number for each."""

    sparse: Any  # (n,)
    dimension: Array  # (n, 1)
    until: Array  # (n, 1) the calls after which it has something else to do


def _about(own: Sequence[AutoState]) -> _About:
    return _About(
        np.array([s.sparse for s in own]), np.array([[s.dimension] for s in own]), np.array([[_until(s)] for s in own])
    )


class _Asked(NamedTuple):
    """A step's points and values, as far as they were asked."""

    F: Array  # (places, n)
    further: Any  # which runs have asked more than the first places,
    staged: Any  # and which of all make it two stages
    V: Array
    h: Array
    stretch: Array | float

    @property
    def ordinary(self) -> Any:
        """Of which runs no call has failed, and differences do not overflow."""
        sound = np.abs(self.F) < _ORDINARY  # false for NaN
        sound[FIRST:, ~self.further] = True  # they were not asked
        return sound.all(axis=0)

    @property
    def stages(self) -> Any:
        return 1.0 + (self.staged & self.further)[:, None]

    @property
    def calls(self) -> Any:
        return np.where(self.further, len(self.F), min(FIRST, len(self.F)))[:, None]

    def told(self, i: int) -> list[list[float]]:
        """The values of one run, stage by stage."""
        F: list[float] = self.F[:, i].tolist()
        stages = [F[:FIRST], F[FIRST:]] if self.staged[i] else [F]
        return stages if self.further[i] else stages[:1]

    def of(self, which: Any) -> _Asked:
        """Of some runs."""
        stretch = self.stretch[which] if isinstance(self.stretch, np.ndarray) else self.stretch
        return _Asked(self.F[:, which], self.further[which], self.staged[which], self.V[which], self.h[which], stretch)


class _Shown:
    """What the history tells of a step."""

    flat = False

    def __init__(self, s: AutoState, dimension: Array) -> None:
        self.nfev, self.value, self.eta, self.unit = s.nfev, s.value, s.eta, s.unit
        self.mu, self.r, self.g_norm, self.dimension = s.mu, s.r, s.g_norm, dimension


class _Directions:
    """What the runs draw, each from its own number on: w (n, d + 2), |w| (n, 1) and directions V (n, q, d)."""

    def __init__(self, opts: Sequence[Optimizer]) -> None:
        s = opts[0]._state
        self._streams = [opt._lanes[0].randoms.streams for opt in opts]
        self._tangent, self._q = s.run.domain.tangent, s.q
        d = len(s.x)
        self._size = d + 2 + s.q * d
        self._steps = max(1, min(DRAWN_AT_ONCE // ((s.q + 1) * d), _MOST_HELD // (len(opts) * self._size)))
        self._at = self._steps

    def __call__(self, samples: Any) -> tuple[Array, Array, Array]:
        if self._at == self._steps:
            self._draw(_whole(samples))
        self._at += 1
        W = self._W[self._at - 1]
        return W, length(W), self._V[self._at - 1]

    def _draw(self, samples: list[int]) -> None:
        all_numbers = np.empty((self._steps, len(samples), self._size))
        for i, (streams, sample) in enumerate(zip(self._streams, samples, strict=True)):
            for step, numbers in enumerate(all_numbers[:, i]):
                streams.block(Stream.DIRECTIONS, sample + step).standard_normal(out=numbers)
        self._W, self._V = worked_out(all_numbers, self._q, self._tangent)
        self._at = 0

    def keep(self, which: Any) -> None:
        """Of these runs only."""
        self._streams = list(compress(self._streams, which))
        if self._at < self._steps:
            self._W, self._V = self._W[:, which], self._V[:, which]


def _whole(column: Any) -> list[int]:
    numbers: list[int] = column[:, 0].astype(int).tolist()
    return numbers
