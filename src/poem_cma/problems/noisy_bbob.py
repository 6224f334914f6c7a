"""COCO's noisy functions f101 to f130, and functions of its suite bbob with noise added, in 5 and 20 variables.

The functions without noise come from the package `coco-experiment`. The noise is drawn here from xi, because the
generator of the package cannot be reset: so equal xi give the equal value. The noise models are those of Hansen, Finck,
Ros and Auger (2009), "Real-parameter black-box optimization benchmarking 2009: noisy functions definitions". Only
instances 1 to 3 are used.

>>> from poem_cma.problems import noisy_bbob
>>> len(noisy_bbob.BLACK_BOXES), list(noisy_bbob.BLACK_BOXES)[:2]
(252, ['f101-gauss-sphere-d5-i1', 'f101-gauss-sphere-d5-i2'])
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from poem_cma._types import Array
from poem_cma.domains.sets import Box
from poem_cma.problems.black_box import BlackBox
from poem_cma.problems.packages import package

__all__ = ["BLACK_BOXES", "Noiseless", "cauchy", "gauss", "uniform"]

Xi = tuple[float, float, float, float]

DIMENSIONS = (5, 20)
INSTANCES = (1, 2, 3)
BUDGETS = (1000, 5000)

#: The number in the suite bbob of the function with the same least value, for every function of the noisy suite.
TWINS = {
    "sphere": 1, "rosenbrock": 8, "step-ellipsoid": 7, "ellipsoid": 10, "different-powers": 14, "schaffer": 17,
    "griewank-rosenbrock": 19, "gallagher": 21,
}  # fmt: skip

#: The functions under f101 to f103, f104 to f106 and so on; the first two groups have moderate noise.
GROUPS = ["sphere", "rosenbrock", *TWINS]

#: The noise of f101, f102 and f103, then again of f104, f105 and f106, and so on.
MODELS = ("gauss", "uniform", "cauchy")

#: The functions of the suite bbob that get additive noise.
ADDITIVE = (1, 2, 5, 6, 7, 8, 10, 13, 14, 15, 17, 21)


def gauss(f: float, xi: Xi, beta: float) -> float:
    """Multiplicative noise: f times a log-normal number."""
    return f * math.exp(beta * xi[0])


def uniform(f: float, xi: Xi, alpha: float, beta: float) -> float:
    """Multiplicative noise: f times two factors of uniform numbers, the second one larger where f is smaller."""
    larger = max(1.0, math.pow(1e9 / (f + 1e-99), alpha * xi[3]))
    return f * math.pow(xi[2], beta) * larger


def cauchy(f: float, xi: Xi, alpha: float, p: float) -> float:
    """Additive noise: a constant, and with probability p a Cauchy variable that is cut from below."""
    outlier = xi[0] / (abs(xi[1]) + 1e-199) if xi[2] < p else 0.0
    return f + alpha * max(0.0, 1000.0 + outlier)


def _noise(model: str, severe: bool, d: int) -> Callable[[float, Xi], float]:
    """A noise model with the published parameters of moderate or severe noise."""
    size = 1.0 if severe else 0.01
    if model == "gauss":
        return partial(gauss, beta=size)
    if model == "uniform":
        return partial(uniform, alpha=size * (0.49 + 1.0 / d), beta=size)
    return partial(cauchy, alpha=size, p=0.2 if severe else 0.05)


def penalty(x: Array) -> float:
    """100 times the squared distance to the box [-5, 5]^d: part of every noisy function."""
    out = np.maximum(np.abs(x) - 5.0, 0.0)
    return 100.0 * float(out @ out)


class Noiseless:
    """f(x) - min f of a function of the package, without noise.

    The noisy suite has no access to f itself. But the noise of a function with Cauchy noise is a constant in most
    evaluations, so a value that comes twice is f and that constant.

    Parameters
    ----------
    number : int
        1 to 24: a function of the suite bbob; 101 to 130: the function under one of the suite bbob-noisy.
    d, instance : int

    Attributes
    ----------
    optimum : float
        min f.
    best : array
        Where f is least.
    """

    def __init__(self, number: int, d: int, instance: int) -> None:
        cocoex = package("cocoex", "the noisy functions need COCO")
        self.of = number, d, instance
        group = (number - 101) // 3
        twin = cocoex.BareProblem("bbob", number if number <= 24 else TWINS[GROUPS[group]], d, instance)
        self.optimum = self.least = float(twin.best_value())
        self.best = np.array(twin.best_parameter())
        if number <= 24:
            self.value: Callable[[Array], float] = twin
        else:
            index = 3 * group + 3
            chosen = f"function_indices:{index} dimensions:{d} instance_indices:{instance}"
            self.suite = cocoex.Suite("bbob-noisy", "", chosen)  # owns the memory of the function
            self.noisy = self.suite.get_problem(0)
            self.least += 1.01e-8 + (1000.0 if group > 1 else 10.0)
            self.value = self._repeated

    def __call__(self, x: Any) -> float:
        return max(float(self.value(np.asarray(x, dtype=float))) - self.least, 0.0)

    def __reduce__(self) -> tuple[Any, ...]:
        return Noiseless, self.of

    def _repeated(self, x: Array) -> float:
        """The value that comes twice, if it is a number."""
        seen: set[float] = set()
        while (value := float(self.noisy(x))) not in seen and math.isfinite(value):
            seen.add(value)
        return value


def _sample(rng: np.random.Generator) -> Xi:
    """Two normal and two uniform numbers."""
    (a, b), (u, v) = rng.standard_normal(2).tolist(), rng.random(2).tolist()
    return a, b, u, v


def _box(
    name: str, source: str, f: Noiseless, fun: Callable[[Any, Any], float], sample: Callable[..., Any]
) -> BlackBox:
    return BlackBox(
        name=name,
        suite="noisy-bbob",
        source=source,
        x0=_start(*f.of),
        domain=Box(np.full(f.of[1], -5.0), 5.0),
        fun=fun,
        sample=sample,
        judge=f,
        budgets=BUDGETS,
        shared=False,
    )


def _start(number: int, d: int, instance: int) -> Array:
    return np.random.default_rng([number, d, instance]).uniform(-4.0, 4.0, d)


def _noisy(name: str, number: int, d: int, instance: int) -> BlackBox:
    """f101 to f130: the noise model is applied to f - min f inside the box; the penalty has no noise."""
    f = Noiseless(number, d, instance)
    group, model = divmod(number - 101, 3)
    noise = _noise(MODELS[model], group > 1, d)

    def fun(x: Any, xi: Xi) -> float:
        outside = penalty(np.asarray(x, dtype=float))
        value = max(f(x) - outside, 0.0)
        disturbed = value if value < 1e-8 else noise(value, xi) + 1.01e-8
        return disturbed + outside + f.optimum

    source = f"COCO bbob-noisy (coco-experiment), f{number} instance {instance}"
    return _box(name, source, f, fun, _sample)


def _additive(name: str, number: int, d: int, instance: int) -> BlackBox:
    """Normal noise whose standard deviation is a tenth of f(x0) - min f."""
    f = Noiseless(number, d, instance)
    sigma = 0.1 * f(_start(number, d, instance))
    source = f"COCO bbob (coco-experiment), f{number} instance {instance}, plus normal noise of {sigma:.3g}"
    return _box(name, source, f, lambda x, xi: f(x) + f.optimum + sigma * xi, lambda rng: float(rng.standard_normal()))


def _table() -> dict[str, Callable[[], BlackBox]]:
    table: dict[str, Callable[[], BlackBox]] = {}
    for number in (*range(101, 131), *ADDITIVE):
        group, model = divmod(number - 101, 3)
        kind = f"{MODELS[model]}-{GROUPS[group]}" if number > 100 else "additive"
        prefix, build = ("", _noisy) if number > 100 else ("bbob-", _additive)
        for d in DIMENSIONS:
            for instance in INSTANCES:
                name = f"{prefix}f{number}-{kind}-d{d}-i{instance}"
                table[name] = partial(build, name, number, d, instance)
    return table


BLACK_BOXES: dict[str, Callable[[], BlackBox]] = _table()
