"""The parameters of an Optuna study that are numbers as variables of ours, and the optimiser of these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from poem_cma._types import Array
from poem_cma.domains.named import Declared, Integer, Real
from poem_cma.domains.product import product
from poem_cma.integrations._needs import needs
from poem_cma.integrations.points import Key, Points
from poem_cma.optimizer import Optimizer
from poem_cma.run.checks import widths

with needs("Optuna", "optuna"):
    from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution

__all__ = ["Axis", "Run", "Space"]

#: So many trials are planned for where nobody says how many there will be; then twice as many, and so on.
_FIRST_BUDGET = 250

Space = dict[str, BaseDistribution]


class Run:
    """One search space, and the optimiser there."""

    def __init__(self, name: str, space: Space, start: list[float | None], seed: int, settings: dict[str, Any]) -> None:
        self.name = name
        self._axes = {parameter: Axis(distribution) for parameter, distribution in space.items()}
        axes = list(self._axes.values())
        x0 = np.array([axis.start(value) for axis, value in zip(axes, start, strict=True)])
        domain = product([(i, i + 1, axis.variable) for i, axis in enumerate(axes)])
        budget = settings["budget"]
        settings = settings | {"budget": _FIRST_BUDGET if budget is None else budget, "scale": widths(domain, x0)}
        self.points = Points(Optimizer(x0, domain=domain, seed=seed, **settings), open_end=budget is None)

    def tell(self, answers: Sequence[tuple[Key, float]]) -> None:
        """Values, in the order in which they were found."""
        for key, value in answers:
            self.points.tell(key, value)
        self.points.settle()

    def parameters(self, x: Array) -> dict[str, float]:
        """A point in terms of the study."""
        return {name: axis.value(float(v)) for (name, axis), v in zip(self._axes.items(), x, strict=True)}


class Axis:
    """A range of an Optuna study as a variable: the values of a grid are numbered."""

    def __init__(self, distribution: BaseDistribution) -> None:
        assert isinstance(distribution, FloatDistribution | IntDistribution)
        d = self._range = distribution
        self._grid = d.step is not None and d.step != 1
        whole = isinstance(d, IntDistribution)
        if self._grid:
            self.variable: Declared = Integer(0, round((d.high - d.low) / d.step))  # type: ignore[operator]
        else:
            self.variable = (Integer if whole else Real)(d.low, d.high, log=d.log)
        self._number = int if whole else float

    def start(self, value: float | None) -> float:
        """Where a run starts: at a value of the study, or in the middle."""
        if value is None:
            return self.variable.start
        low, high = self._range.low, self._range.high
        if not low <= value <= high:
            raise ValueError(f"x0 has {value}, which is not between {low} and {high}")
        return round((value - low) / self._range.step) if self._grid else value  # type: ignore[operator]

    def value(self, v: float) -> float:
        """The value of the study that a number stands for."""
        low, high = self._range.low, self._range.high
        return self._number(min(low + v * self._range.step, high) if self._grid else v)  # type: ignore[operator]
