"""The step in numbers: which points to evaluate, and what their values say. No tensors here.

The weights only ever move by combinations of directions that are known by number, so one step is a function of the
state (a few numbers) and of the losses. Every rank of a data-parallel run, and every replay of a log, makes the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, isfinite, nan, sqrt
from typing import NamedTuple, cast

from poem_cma import rules
from poem_cma.core import Run, Symbols, smoothed_value
from poem_cma.torch.allocation import Allocation

__all__ = ["Engine", "Point", "State"]

_REACH = 0.1  # the smoothing radius, in lengths of the last step
_FIRST = 1e-3  # and before the first step, in lengths of x_0
_ROUNDING = 1.0  # no perturbation is smaller than this many spacings of numbers at a typical weight
_BACK = 0.5  # the scale is judged by the loss this part of the last step back
_NEW = 0.2, 0.05  # the share of the latest look in the estimate of the right scale, early and late
_EARLY = 100  # looks
_SETTLING = 10  # steps during which the step size follows the looks alone, whatever G does
_CLIP = 2.0  # typical lengths: a gradient longer than this is shortened to it
_TYPICAL = 0.1  # the share of the latest gradient in the typical length
_LEAP = 0.3  # a step is at most this part of the length of the weights and of the way so far
_GAIN = 1.5  # how much of that estimate is taken over, in logarithms, in units of the share
_MOST, _LEAST = 3.0, 0.1  # what it may ask for
_MOST_TAKEN = 10.0  # of the fall
_FAR = 100.0  # curvature seen at a radius says nothing of one so many times as large
_RAY = 60  # doublings
_LOOK_EVERY = 8  # central pairs: steps between two looks at the scale
_UNDO = 4  # steps that can be taken back
_RISE = 0.25  # of the fall that was predicted: a loss higher by more than this takes a step back
_STEEP = 2.0  # falls: a slope up, along the last step, that makes it suspicious
_FAR_OFF = 4.0  # mean deviations of the loss that make a step suspicious


class Point(NamedTuple):
    """x + sum_j coefficients[j] v_(first + j), the directions having unit length and the given shape."""

    first: int
    coefficients: tuple[float, ...]
    shape: tuple[float, ...] = ()  # by tensor; empty: all alike

    @property
    def length(self) -> float:
        return sqrt(sum(c * c for c in self.coefficients))

    def times(self, factor: float) -> Point:
        return self._replace(coefficients=tuple(factor * c for c in self.coefficients))


class Move(NamedTuple):
    """A step that was made."""

    point: Point
    fall: float  # how much lower the slopes said that F would be, were it linear


class State(NamedTuple):
    """All that must survive a crash, beside the weights."""

    t: int = 0  # steps
    number: int = 0  # directions so far; a multiple of four
    r_bar: float = 0.0  # the scale R, or POEM's largest distance
    G: float = 0.0
    mu: float = 0.0
    bend: float = 0.0  # F's mean curvature along a direction, a half of it,
    reach: float = 0.0  # and the radius at which it was last seen
    typical: float = 0.0  # the usual length of a gradient
    way: float = 0.0  # the sum of all squared steps: |x - x_0|², of steps that are all but orthogonal
    moves: tuple[Move, ...] = ()  # the last few, the latest last
    stiffness: float = nan  # one over the step size that looks right
    looks: int = 0  # at the scale
    fall: float = 0.0  # the usual fall of a step
    value: float = nan  # the smoothed loss
    spread: float = 0.0
    eta: float = 0.0
    skipped: int = 0  # steps without a usable loss
    undone: int = 0
    forwards: int = 0
    allocation: Allocation | None = None


Evaluate = Callable[[Sequence[Point]], list[float]]


class Engine:
    """What stays the same during a run.

    Parameters
    ----------
    dimension : int
        d.
    size : float
        |x_0|.
    directions : int
        q: one takes a central pair, more are forward differences from one base.
    by_values : bool
        Whether the scale follows the losses (or, as in POEM, the distance from x_0).
    epsilon : float
        The relative spacing of the weights' numbers.
    """

    def __init__(self, dimension: int, size: float, directions: int, by_values: bool, epsilon: float) -> None:
        self.d, self.size, self.q, self.by_values = dimension, size, directions, by_values
        self.epsilon, self.floor = epsilon, _ROUNDING * epsilon * size

    def restored(self, size: float) -> Engine:
        """The same for a run that began with weights of another length."""
        return Engine(self.d, size, self.q, self.by_values, self.epsilon)

    def begin(self, allocation: Allocation | None) -> State:
        """The state before the first step."""
        if self.by_values:
            return State(mu=max(self.floor, _FIRST * (self.size or 1.0)), allocation=allocation)
        s = State(r_bar=1e-2 * (1.0 + self.size), allocation=allocation)  # r_eps
        return s._replace(mu=rules.poem_smoothing(self._symbols(s)))

    def step(self, s: State, evaluate: Evaluate) -> tuple[State, Point | None]:
        """The next state and the move to make, if any."""
        shape = s.allocation.shape if s.allocation else ()
        probes = [Point(s.number + j, (s.mu,), shape) for j in range(self.q)]
        look, place = self._look(s)
        base = [Point(s.number, ())]
        if self.q == 1:
            pair = [probes[0], probes[0].times(-1.0)]
            F = evaluate(pair + (base + look if look else []))
            values, rest = F[:2], F[2:]
            loss = 0.5 * (F[0] + F[1])
            slopes = [(F[0] - F[1]) / (2.0 * s.mu)]
        else:
            F = evaluate(base + probes + look)
            values, rest = F[1 : self.q + 1], [F[0], *F[self.q + 1 :]]
            loss = F[0]
            slopes = [(f - loss) / s.mu - self._bend(s) for f in values]
        s = s._replace(forwards=s.forwards + len(F), number=s.number + -(-self.q // 4) * 4)
        if s.moves and self.by_values and self._suspicious(s, loss, rest, place):
            last = s.moves[-1]
            (before,) = evaluate([last.point.times(-1.0)])
            s = s._replace(forwards=s.forwards + 1)
            if isfinite(before) and not loss - before <= _RISE * max(last.fall, s.fall):
                return self._undo(s), last.point.times(-1.0)
        kept = [m for m in slopes if isfinite(m)]
        if not isfinite(loss) or not kept:
            return s._replace(skipped=s.skipped + 1), None  # nothing was learned
        slopes = [m if isfinite(m) else 0.0 for m in slopes]
        s = self._with_bend(s, values, loss)
        value, spread = smoothed_value(s.value, s.spread, s.t, [loss])
        s = s._replace(value=value, spread=spread)
        if look:
            s = self._rescaled(s, (rest[1] - rest[0]) / place, place)
        return self._moved(s, slopes, len(kept), probes[0].first, shape, evaluate, loss)

    def arrived(self, s: State, distance: float) -> State:
        """POEM: after a move, |x - x_0| is known."""
        r_bar = max(s.r_bar, distance)  # r̄_{t+1} = max{r̄_t, ‖x_{t+1} − x_0‖}
        s = s._replace(r_bar=r_bar)
        return s._replace(mu=max(self.floor, rules.poem_smoothing(self._symbols(s))))

    def weight(self, s: State) -> float:
        """POEM: how much x_t counts in the average."""
        return rules.distance_weight(self._symbols(s))

    def _symbols(self, s: State) -> Symbols:
        run = cast(Run, None)  # POEM's rules read no constants
        return Symbols(run, s.t, s.r_bar, s.G, 1.0, self.d, s.mu)

    def _moved(
        self,
        s: State,
        slopes: list[float],
        count: int,
        first: int,
        shape: tuple[float, ...],
        evaluate: Evaluate,
        loss: float,
    ) -> tuple[State, Point | None]:
        """x_{t+1} = x_t - eta_t g_t."""
        if s.allocation:
            s = s._replace(allocation=s.allocation.told(first, slopes))
        g = Point(first, tuple(self.d / count * m for m in slopes), shape)  # g_t = d/q sum_j slope_j v_j
        if g.length == 0.0:
            return s._replace(t=s.t + 1), None  # a flat batch
        if self.by_values:
            s, g = self._shortened(s, g)
        if self.by_values and s.G and s.t < _SETTLING:
            s = s._replace(r_bar=s.r_bar * sqrt(1.0 + g.length**2 / s.G))
        s = s._replace(G=s.G + g.length**2)  # G_t = G_{t-1} + ‖g_t‖²
        if self.by_values and s.r_bar == 0.0:
            s = self._ray(s, g, loss, evaluate)
        eta = rules.distance_over_gradients(self._symbols(s))  # η_t = r̄_t / √G_t
        if self.by_values:
            far = _LEAP * sqrt(self.size**2 + s.way) if s.way else inf  # the first step was measured along its way
            leap = min(1.0, far / (eta * g.length))
            eta = leap * eta
            s = s._replace(r_bar=leap * s.r_bar, way=s.way + (eta * g.length) ** 2)
        move = Move(g.times(-eta), eta * sum(c * m for c, m in zip(g.coefficients, slopes, strict=True)))
        fall = s.fall + 0.2 * (move.fall - s.fall) if s.moves else move.fall
        s = s._replace(t=s.t + 1, eta=eta, moves=(*s.moves, move)[-_UNDO:], fall=fall)
        if self.by_values:
            s = s._replace(mu=max(self.floor, _REACH * eta * g.length))
        return s, move.point

    # The scale by values

    def _shortened(self, s: State, g: Point) -> tuple[State, Point]:
        """Slopes along few random directions have heavy tails: one long gradient must not undo many steps."""
        typical = s.typical or g.length
        g = g.times(min(1.0, _CLIP * typical / g.length))
        return s._replace(typical=typical + _TYPICAL * (g.length - typical)), g

    def _ray(self, s: State, g: Point, loss: float, evaluate: Evaluate) -> State:
        """The first scale: go down along -g, twice as far each time, as long as the loss falls on this batch."""
        r, best = s.mu, loss
        for _ in range(_RAY):
            (value,) = evaluate([g.times(-r / g.length)])
            s = s._replace(forwards=s.forwards + 1)
            if not value < best:
                break
            best, r = value, 2.0 * r
        return s._replace(r_bar=r / 4.0 if r > s.mu else r)

    def _look(self, s: State) -> tuple[list[Point], float]:
        """A second point on the last step's line, and where it lies (in steps, from its end).

        On a batch that the step has not seen, is the loss half a step back lower than here? If F is quadratic, the two
        are equal for a step 4/3 as long as the one that ends lowest: what pays over many steps is longer than what pays
        at once. Where half a step is too short for the weights' numbers, the point lies ahead, as far as it must.
        """
        if not self.by_values or not s.moves or (self.q == 1 and s.t % _LOOK_EVERY):
            return [], nan
        last = s.moves[-1].point
        least = self.floor / last.length
        place = -_BACK if least <= _BACK else least
        return [last.times(place)], place

    def _rescaled(self, s: State, slope: float, place: float) -> State:
        """Move R towards the scale at which the mean slope between the two points would vanish.

        The slope at the start of the step was -fall; curvature, and what the batch before had by itself, took away
        slope + fall, in proportion to the step size.
        """
        fall = s.moves[-1].fall
        took = min(_MOST_TAKEN, max(-2.0, 1.0 + slope / fall)) if isfinite(slope) else _MOST_TAKEN
        took *= (1.0 - 0.5 * _BACK) / (1.0 + 0.5 * place)
        share = max(_NEW[1], _NEW[0] / max(1.0, 2.0 * s.looks / _EARLY))
        before = s.stiffness if isfinite(s.stiffness) else took / s.eta
        stiffness = before + share * (took / s.eta - before)
        wish = 1.0 / (stiffness * s.eta) if stiffness > 0.0 else _MOST
        r_bar = s.r_bar * min(_MOST, max(_LEAST, wish)) ** (_GAIN * share)
        return s._replace(r_bar=r_bar, stiffness=stiffness, looks=s.looks + 1)

    def _suspicious(self, s: State, loss: float, rest: list[float], place: float) -> bool:
        if not isfinite(loss) or (s.t > 5 and loss > s.value + _FAR_OFF * s.spread):
            return True
        return len(rest) > 1 and not (rest[1] - rest[0]) / place <= _STEEP * max(s.moves[-1].fall, s.fall)

    def _undo(self, s: State) -> State:
        """Take the last step back: it led up, on a batch that it has not seen, by more than it was to lead down."""
        return s._replace(r_bar=0.5 * s.r_bar, moves=s.moves[:-1], stiffness=nan, undone=s.undone + 1)

    # The curvature that forward differences carry

    def _bend(self, s: State) -> float:
        """What former steps say of it (so that nothing is biased), unless they were made with a far smaller radius."""
        return s.mu * s.bend if s.mu <= _FAR * s.reach else 0.0

    def _with_bend(self, s: State, values: list[float], loss: float) -> State:
        rises = [(f - loss) / s.mu**2 for f in values if isfinite(f)]
        share = max(1.0 / (s.t + 1), 0.05) if s.mu <= _FAR * s.reach else 1.0
        bend = s.bend + share * (sum(rises) / len(rises) - s.bend)
        return s._replace(bend=bend, reach=s.mu) if self.q > 1 else s
