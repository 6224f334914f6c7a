"""The float parameters of an Optuna study as the unit cube, and the optimiser there."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log
from typing import Any

import numpy as np

from poem_cma._types import Array
from poem_cma.domains.sets import Box
from poem_cma.integrations._needs import needs
from poem_cma.integrations.points import Key, Points
from poem_cma.optimizer import Optimizer

with needs("Optuna", "optuna"):
    from optuna.distributions import BaseDistribution, FloatDistribution

__all__ = ["Axis", "Run", "Space"]

#: So many trials are planned for where nobody says how many there will be; then twice as many, and so on.
_FIRST_BUDGET = 250

Space = dict[str, BaseDistribution]


class Run:
    """One search space in the unit cube, and the optimiser there."""

    def __init__(self, name: str, space: Space, start: list[float | None], seed: int, settings: dict[str, Any]) -> None:
        self.name, self._seed, self._paired = name, seed, settings["paired"]
        self._axes = [Axis(d) for d in space.values()]
        self._names = list(space)
        x0 = [0.5 if value is None else axis.to_unit(value) for axis, value in zip(self._axes, start, strict=True)]
        budget = settings["budget"]
        settings = settings | {"budget": _FIRST_BUDGET if budget is None else budget}
        if settings["method"] is None:
            settings["method"] = "poem" if any(axis.step is not None for axis in self._axes) else "auto"
        opt = Optimizer(np.array(x0), domain=Box(0.0, 1.0, inside=True), seed=seed, **settings)
        self.points = Points(opt, open_end=budget is None)

    def tell(self, answers: Sequence[tuple[Key, float]]) -> None:
        """Values, in the order in which they were found."""
        for key, value in answers:
            self.points.tell(key, value)
        self.points.settle()

    def _rounding(self, key: Key) -> int:
        """What the rounding to a grid is drawn by: it belongs to the xi, or to the probe where no xi is shared."""
        return self.points.sample(key) if self._paired else key.probe >> 1

    def parameters(self, x: Array, key: Key | None = None) -> dict[str, float]:
        """A point in terms of the study; on a grid to the nearest value, or at random where a probe is named."""
        nearest = np.full(len(x), 0.5)
        dither = nearest if key is None else np.random.default_rng([self._seed, self._rounding(key)]).random(len(x))
        values = [axis.from_unit(float(u), float(t)) for axis, u, t in zip(self._axes, x, dither, strict=True)]
        return dict(zip(self._names, values, strict=True))


class Axis:
    """A range as the unit interval."""

    def __init__(self, distribution: BaseDistribution) -> None:
        assert isinstance(distribution, FloatDistribution)
        d = distribution
        self._low, self._high, self.step, self._log = d.low, d.high, d.step, d.log

    def to_unit(self, value: float) -> float:
        """Where a value lies."""
        if not self._low <= value <= self._high:
            raise ValueError(f"x0 has {value}, which is not between {self._low} and {self._high}")
        if self._log:
            return log(value / self._low) / log(self._high / self._low)
        return (value - self._low) / (self._high - self._low)

    def from_unit(self, u: float, dither: float) -> float:
        """The value at u; on a grid the one below u + dither, which in the mean of a uniform dither is u itself."""
        if self.step is not None:
            steps = round((self._high - self._low) / self.step)
            return float(self._low + min(int(u * steps + dither), steps) * self.step)
        value = (
            self._low * exp(u * log(self._high / self._low)) if self._log else self._low + u * (self._high - self._low)
        )
        return float(min(max(value, self._low), self._high))
