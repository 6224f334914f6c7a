"""The step in numbers: which points to evaluate, and what their values say. No tensors here.

The weights only ever move by combinations of directions that are known by number, so one step is a function of the
state (a few numbers) and of the losses. Every rank of a data-parallel run, and every replay of a log, makes the same.
"""

from __future__ import annotations

from math import isfinite, nan
from typing import cast

from poem_cma.paper import rules
from poem_cma.run.algorithm import Run, Symbols, smoothed_value
from poem_cma.torch import scale
from poem_cma.torch.allocation import Allocation
from poem_cma.torch.state import Evaluate, Move, Point, State

__all__ = ["Engine"]

_REACH = 0.1  # the smoothing radius, in lengths of the last step
_FIRST = 1e-3  # and before the first step, in lengths of x_0
_ROUNDING = 1.0  # no perturbation is smaller than this many spacings of numbers at a typical weight
_FAR = 100.0  # curvature seen at a radius says nothing of one so many times as large
_LOOK_EVERY = 8  # central pairs: steps between two looks at the scale
_UNDO = 4  # steps that can be taken back


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
        look, place = scale.look(s, self.floor) if self._looks(s) else ([], nan)
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
        if s.moves and self.by_values and scale.suspicious(s, loss, rest, place):
            last = s.moves[-1]
            (before,) = evaluate([last.point.times(-1.0)])
            s = s._replace(forwards=s.forwards + 1)
            if scale.misled(s, last, loss, before):
                return scale.undone(s), last.point.times(-1.0)
        kept = [m for m in slopes if isfinite(m)]
        if not isfinite(loss) or not kept:
            return s._replace(skipped=s.skipped + 1), None  # nothing was learned
        slopes = [m if isfinite(m) else 0.0 for m in slopes]
        s = self._with_bend(s, values, loss)
        value, spread = smoothed_value(s.value, s.spread, s.t, [loss])
        s = s._replace(value=value, spread=spread)
        if look:
            s = scale.stretched(s, (rest[1] - rest[0]) / place, place)
        return self._moved(s, slopes, len(kept), probes[0].first, evaluate, loss)

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
        evaluate: Evaluate,
        loss: float,
    ) -> tuple[State, Point | None]:
        """x_{t+1} = x_t - eta_t g_t."""
        shape, length = s.allocation.whitened() if s.allocation else ((), 1.0)
        if s.allocation:
            s = s._replace(allocation=s.allocation.told(first, slopes))
        # g_t = d/q sum_j slope_j v_j; of shaped directions, Σ⁻¹ v_j
        g = Point(first, tuple(self.d / count * m * length for m in slopes), shape)
        if g.length == 0.0:
            return s._replace(t=s.t + 1), None  # a flat batch
        if self.by_values:
            s, g = scale.shortened(s, g)
            s = scale.settled(s, g)
        s = s._replace(G=s.G + g.length**2)  # G_t = G_{t-1} + ‖g_t‖²
        if self.by_values and s.r_bar == 0.0:
            s = scale.first(s, g, loss, evaluate)
        eta = rules.distance_over_gradients(self._symbols(s))  # η_t = r̄_t / √G_t
        if self.by_values:
            leap = min(1.0, scale.far(s, self.size) / (eta * g.length))
            eta = leap * eta
            s = s._replace(r_bar=leap * s.r_bar, way=s.way + (eta * g.length) ** 2)
        move = Move(g.times(-eta), eta * sum(c * m for c, m in zip(g.coefficients, slopes, strict=True)))
        fall = s.fall + 0.2 * (move.fall - s.fall) if s.moves else move.fall
        s = s._replace(t=s.t + 1, eta=eta, moves=(*s.moves, move)[-_UNDO:], fall=fall)
        if self.by_values:
            s = s._replace(mu=max(self.floor, _REACH * eta * g.length))
        return s, move.point

    def _looks(self, s: State) -> bool:
        """Whether this step looks at the scale."""
        return self.by_values and bool(s.moves) and (self.q > 1 or s.t % _LOOK_EVERY == 0)

    # The curvature that forward differences carry

    def _bend(self, s: State) -> float:
        """What former steps say of it (so that nothing is biased), unless they were made with a far smaller radius."""
        return s.mu * s.bend if s.mu <= _FAR * s.reach else 0.0

    def _with_bend(self, s: State, values: list[float], loss: float) -> State:
        rises = [(f - loss) / s.mu**2 for f in values if isfinite(f)]
        share = max(1.0 / (s.t + 1), 0.05) if s.mu <= _FAR * s.reach else 1.0
        bend = s.bend + share * (sum(rises) / len(rises) - s.bend)
        return s._replace(bend=bend, reach=s.mu) if self.q > 1 else s
