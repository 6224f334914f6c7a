"""What the tests of `auto` share: runs that are driven by hand, and problems with many samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from inside import state_of

import poem_cma as pc
from poem_cma.auto.request import Draws

__all__ = ["Draws", "begun", "classification", "drive", "numbered", "regression"]

#: The value at x on the sample of a number.
Objective = Callable[[np.ndarray, int], float]


def drive(opt: pc.Optimizer, f: Objective, until: Callable[[Any], bool] = lambda s: False) -> pc.Optimizer:
    """Ask and tell until the state is as it should be, or to the end."""
    while not until(state_of(opt)) and (probe := opt.ask()) is not None:
        opt.tell(probe, [f(x, n) for x, n in zip(probe.points, probe.numbers, strict=True)])
    return opt


def begun(x0: Any, method: Any = "auto", **options: Any) -> tuple[Any, Draws]:
    """The state before the first evaluation, and random numbers."""
    opt = pc.Optimizer(np.asarray(x0, dtype=float), method=method, **({"budget": 2000, "seed": 0} | options))
    return state_of(opt), Draws(opt.seed, state_of(opt).run)


def numbered(n: int, seed: int = 0) -> np.random.Generator:
    """The generator of sample n."""
    return np.random.default_rng([seed, n])


def regression(power: Callable[[Any], Any], d: int, seed: int, noise: float = 0.1) -> Objective:
    """A loss of the residual of a linear model on random examples."""
    best = np.random.default_rng(seed).normal(size=d)

    def f(x: np.ndarray, n: int) -> float:
        rng = numbered(n, seed)
        a = rng.normal(size=d)
        return float(power(a @ (x - best) + noise * rng.normal()))

    return f


def classification(loss: Callable[[Any], Any], d: int, seed: int) -> Objective:
    """A loss of the margin of a linear model on random examples; one label in ten is wrong."""
    best = np.random.default_rng(seed).normal(size=d)

    def f(x: np.ndarray, n: int) -> float:
        rng = numbered(n, seed)
        a = rng.normal(size=d)
        label = np.sign(a @ best) * (1.0 if rng.random() < 0.9 else -1.0)
        return float(loss(label * (a @ x)))

    return f
