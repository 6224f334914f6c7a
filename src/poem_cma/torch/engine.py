"""The step in numbers: which points to evaluate, and what their values say. No tensors here.

The weights only ever move by combinations of directions that are known by number, so one step is a function of the
state (a few numbers) and of the losses. Every rank of a data-parallel run, and every replay of a log, makes the same.
"""

from __future__ import annotations

from math import isfinite
from typing import NamedTuple, cast

from poem_cma.paper import rules
from poem_cma.run.algorithm import Run, Symbols, smoothed_value
from poem_cma.torch import scale, sight, watch
from poem_cma.torch.allocation import Allocation
from poem_cma.torch.state import Bend, Evaluate, Move, Point, State

__all__ = ["Engine"]

#: The radius that is tried first, in lengths of x_0.
_FIRST = 1e-3
#: No perturbation is smaller than this many spacings of numbers at a typical weight, or larger than this part of |x_0|.
_ROUNDING, _WIDE = 1.0, 0.3
#: Curvature seen at a radius says nothing of one so many times as large.
_FAR = 100.0
#: Directions of the scan before the first step, and the most distances that it looks at.
_SCAN, _DISTANCES = 8, 16
#: A test that does not trust its radius changes it by this factor.
_CHANGE = 2.0
#: Central pairs: steps between two looks at the scale.
_LOOK_EVERY = 8

Made = tuple[State, Point | None]  # the next state, and the move to make


class Seen(NamedTuple):
    """The values of a step on its batch."""

    loss: float  # at x
    slopes: list[float]  # along the directions, over mu
    rises: list[float]  # of forward differences; none of central ones
    last: float | None  # the slope along the last step, if it was looked at


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
        self.widest = max(self.floor, _WIDE * (size or 1.0))

    def restored(self, size: float) -> Engine:
        """The same for a run that began with weights of another length."""
        return Engine(self.d, size, self.q, self.by_values, self.epsilon)

    def begin(self, allocation: Allocation | None) -> State:
        """The state before the first step."""
        if self.by_values:
            return State(mu=max(self.floor, _FIRST * (self.size or 1.0)), allocation=allocation)
        s = State(r_bar=1e-2 * (1.0 + self.size), allocation=allocation)  # r_eps
        return s._replace(mu=rules.poem_smoothing(self._symbols(s)))

    def step(self, s: State, evaluate: Evaluate) -> Made:
        """The next state and the move to make, if any.

        Where `undone` has grown by k, the last k moves of the state before are to be taken back.
        """
        if self.by_values and s.sight.tests == 0:
            s = self._scanned(s, evaluate)
        number, mu = s.number, s.mu
        s, seen = self._seen(s, evaluate)
        if self.by_values and s.moves and scale.suspicious(s, seen.loss, seen.last):
            last = s.moves[-1]
            (before,) = evaluate([last.point.times(-1.0)])
            s = s._replace(forwards=s.forwards + 1)
            if scale.misled(s, last, seen.loss, before):
                return scale.undone(s, 1), None
        kept = [m for m in seen.slopes if isfinite(m)]
        if not isfinite(seen.loss) or not kept:
            return s._replace(skipped=s.skipped + 1), None  # nothing was learned
        value, spread = smoothed_value(s.watch.value, s.watch.spread, s.t, [seen.loss])
        s = s._replace(watch=watch.seen(s.watch._replace(value=value, spread=spread), seen.loss))
        if self.by_values and (steps := watch.rising(s.watch)):
            return scale.undone(s, min(steps, len(s.moves))), None
        slopes = [m - self._bend(s, mu) if isfinite(m) else 0.0 for m in seen.slopes]
        s = s._replace(bend=self._bent(s, mu, seen.rises))
        if seen.last is not None:
            s = scale.stretched(s, seen.last)
        return self._moved(s, slopes, len(kept), number, evaluate, seen.loss)

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

    def _seen(self, s: State, evaluate: Evaluate) -> tuple[State, Seen]:
        """All values of a step in one round: the base, the probes, a look at the last step, and a test of mu."""
        shape = s.allocation.shape if s.allocation else ()
        probes = [Point(s.number + j, (s.mu,), shape) for j in range(self.q)]
        central = self.q == 1
        look, places = scale.look(s) if self._looks(s) else ([], [])
        sides = 2 if central else 1
        tested = self.by_values and sight.due(s.sight, s.forwards, sides)
        far = [probes[0].times(sign * sight.FAR) for sign in (1.0, -1.0)[:sides]] if tested else []
        base = [Point(s.number, ())] if not central or (look and places[-1] == 0.0) else []
        ends = [probes[0], probes[0].times(-1.0)] if central else probes
        F = evaluate([*base, *ends, *look, *far])
        at, values = F[: len(base)], F[len(base) : len(base) + len(ends)]
        looked, away = F[len(base) + len(ends) : len(F) - len(far)], F[len(F) - len(far) :]
        loss = 0.5 * (values[0] + values[1]) if central else at[0]
        rises = [] if central else [f - loss for f in values]
        slopes = [(values[0] - values[1]) / (2.0 * s.mu)] if central else [r / s.mu for r in rises]
        last = scale.rise(places, [*looked, *at][:2]) if look else None
        s = s._replace(forwards=s.forwards + len(F), number=s.number + -(-self.q // 4) * 4)
        if tested:
            wide = (away[0] - away[1]) / 2.0 if central else away[0] - loss
            s = self._tested(s, slopes[0], wide / (sight.FAR * s.mu))
        return s, Seen(loss, slopes, rises, last)

    def _moved(self, s: State, slopes: list[float], count: int, first: int, evaluate: Evaluate, loss: float) -> Made:
        """x_{t+1} = x_t - eta_t g_t."""
        shape, length = s.allocation.whitened() if s.allocation else ((), 1.0)
        if s.allocation:
            s = s._replace(allocation=s.allocation.told(first, slopes))
        # g_t = d/q sum_j slope_j v_j; of shaped directions, Σ⁻¹ v_j
        g = Point(first, tuple(self.d / count * m * length for m in slopes), shape)
        if g.length == 0.0:
            return s._replace(t=s.t + 1), None  # a flat batch
        if self.by_values:
            pace, g = scale.shortened(s.pace, g)
            s = scale.settled(s._replace(pace=pace), g)
        s = s._replace(G=s.G + g.length**2)  # G_t = G_{t-1} + ‖g_t‖²
        if self.by_values and s.r_bar == 0.0:
            s = scale.first(s, g, loss, evaluate)
        eta = rules.distance_over_gradients(self._symbols(s))  # η_t = r̄_t / √G_t
        s = s._replace(t=s.t + 1, eta=eta)
        return self._guarded(s, g, slopes) if self.by_values else (s, g.times(-eta))

    def _guarded(self, s: State, g: Point, slopes: list[float]) -> Made:
        """The move by values: no leap, and as much of it as there is signal in the slopes."""
        leap = min(1.0, scale.far(s, self.size) / (s.eta * g.length))
        eta = leap * s.eta
        signal = sight.share(s.sight) * eta
        if signal == 0.0:
            return s, None
        move = Move(g.times(-signal), signal * sum(c * m for c, m in zip(g.coefficients, slopes, strict=True)))
        fall = s.pace.fall + 0.2 * (move.fall - s.pace.fall) if s.moves else move.fall
        pace = s.pace._replace(fall=fall, way=s.pace.way + move.point.length**2)
        s = s._replace(eta=eta, r_bar=leap * s.r_bar, moves=(*s.moves, move)[-watch.HELD :], pace=pace)
        return s, move.point

    def _looks(self, s: State) -> bool:
        """Whether this step looks at the scale."""
        return self.by_values and bool(s.moves) and (self.q > 1 or s.t % _LOOK_EVERY == 0)

    # The distance of differences

    def _scanned(self, s: State, evaluate: Evaluate) -> State:
        """Before the first step: the distance at which slopes are trusted, by forward differences."""
        shape = s.allocation.shape if s.allocation else ()

        def slopes(mu: float) -> list[float]:
            values = evaluate([Point(s.number + j, (mu,), shape) for j in range(_SCAN)])
            return [(f - loss) / mu for f in values]

        (loss,) = evaluate([Point(s.number, ())])
        if not isfinite(loss):
            return s._replace(forwards=s.forwards + 1)
        known, k = {k: slopes(s.mu * sight.FAR**k) for k in (0, 1)}, 0
        while True:
            found = sight.told(sight.Sight(), known[k], known[k + 1])
            way = sight.wish(found)
            inside = self.floor <= s.mu * sight.FAR ** (k + way) <= self.widest
            if way == 0 or (k and way * k < 0) or not inside or len(known) >= _DISTANCES:
                spent = 1 + _SCAN * len(known)
                return s._replace(mu=s.mu * sight.FAR**k, sight=found, forwards=s.forwards + spent)
            k += way
            known |= {j: slopes(s.mu * sight.FAR**j) for j in (k, k + 1) if j not in known}

    def _tested(self, s: State, near: float, far: float) -> State:
        """After a test, perhaps with another radius."""
        known = sight.told(s.sight, [near], [far])
        mu = max(self.floor, min(s.mu * _CHANGE ** sight.wish(known), self.widest))
        return s._replace(mu=mu, sight=sight.changed(known, mu / s.mu) if mu != s.mu else known)

    # The curvature that forward differences carry

    def _bend(self, s: State, mu: float) -> float:
        """What former steps say of it (so that nothing is biased), unless they were made with a far smaller radius."""
        return mu * s.bend.value if self.q > 1 and mu <= _FAR * s.bend.reach else 0.0

    def _bent(self, s: State, mu: float, rises: list[float]) -> Bend:
        kept = [r / mu**2 for r in rises if isfinite(r)]
        if not kept:
            return s.bend
        share = max(1.0 / (s.t + 1), 0.05) if mu <= _FAR * s.bend.reach else 1.0
        return Bend(s.bend.value + share * (sum(kept) / len(kept) - s.bend.value), mu)
