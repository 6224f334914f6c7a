"""Table 1, measured: calls to an epsilon-solution against the ambient and against the effective dimension.

F(x; xi) = |a'(x - x*) - z| on the unit ball, a normal with covariance I/k on k of the d coordinates (so E|a|^2 = 1),
z normal: a non-smooth regression whose gradients have the effective dimension k, and whose mean has a closed form,
f(x) = sqrt(2/pi) sqrt(|(x - x*)_k|^2 / k + s^2), f* = sqrt(2/pi) s.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, inf, pi, sqrt
from typing import Any

import numpy as np

import poem_cma as pc
from poem_cma.campaign.cells import Arrays, Cell
from poem_cma.reproduce.runs import call_grid, follow, make_method
from poem_cma.reproduce.scale import Scale

__all__ = ["FIXED_D", "FIXED_K", "FRACTIONS", "METHODS", "compute", "plan"]

METHODS = ("poem-cma", "poem", "tpbco", "tpge", "rsnso")
FIXED_K = 4  # the structure's dimension where d varies
FIXED_D = 64  # d where the structure's dimension varies
LENGTH = 0.5  # of x*
NOISE = 0.3  # of z, relative to the signal at x0
#: epsilon, as fractions of f(x0) - f*.
FRACTIONS = (0.5, 0.25, 0.1)
LIPSCHITZ = 1.0  # the root mean square of the slopes


def plan(scale: Scale) -> list[Cell]:
    """A cell for each method, pair (d, k) and seed."""
    pairs = [(d, FIXED_K) for d in scale.ambient] + [(FIXED_D, k) for k in scale.intrinsic]
    return [
        Cell(
            "table1",
            {"method": m, "d": d, "k": k, "seed": s, "most_calls": scale.most_calls},
            seconds=0.05 + d * k / 3000,
        )
        for m in METHODS
        for d, k in dict.fromkeys(pairs)
        for s in range(scale.table_seeds)
    ]


class Regression:
    """The problem, with xi drawn by number."""

    def __init__(self, d: int, k: int, seed: int) -> None:
        self.d, self.k = d, k
        self.sd = NOISE * LENGTH / sqrt(k)
        self.star = np.full(k, LENGTH / sqrt(k))
        self._seed = seed
        self._block = -1
        self._draws = np.empty((0, 0))

    def gap(self, x: Any) -> float:
        """f(x) - f*, exactly."""
        z = x[: self.k] - self.star
        return sqrt(2.0 / pi) * (sqrt(float(z @ z) / self.k + self.sd**2) - self.sd)

    def value(self, x: Any, number: int) -> float:
        """F(x; xi) on the xi of that number."""
        block, row = divmod(number, 2048)
        if block != self._block:
            self._block = block
            self._draws = np.random.default_rng([self._seed, 5, block]).standard_normal((2048, self.k + 1))
            self._draws[:, : self.k] /= sqrt(self.k)
            self._draws[:, self.k] *= self.sd
        draw = self._draws[row]
        return abs(float(draw[: self.k] @ (x[: self.k] - self.star)) - float(draw[self.k]))


def compute(settings: Mapping[str, Any]) -> Arrays:
    """Calls until f(output) - f* is a given fraction of f(x0) - f*; infinite where that did not happen."""
    problem = Regression(settings["d"], settings["k"], settings["seed"])
    if settings["method"] in ("tpbco", "rsnso"):
        calls, spectrum = _over_horizons(problem, settings), None
    else:
        calls, spectrum = _along_the_run(problem, settings)
    start = problem.gap(np.zeros(problem.d))
    return {
        "calls": calls,
        "epsilon": start * np.array(FRACTIONS),
        "d_star": spectrum.effective_dimension if spectrum else float(problem.d),
        "kappa": spectrum.condition if spectrum else 1.0,
    }


def _optimizer(problem: Regression, settings: Mapping[str, Any], budget: int) -> pc.Optimizer:
    method = make_method(settings["method"], lipschitz=LIPSCHITZ, d=problem.d)
    return pc.Optimizer(np.zeros(problem.d), method=method, domain=pc.Ball(1.0), budget=budget, seed=settings["seed"])


def _along_the_run(problem: Regression, settings: Mapping[str, Any]) -> tuple[Any, pc.Spectrum | None]:
    """For the methods that need no horizon: one run, looked at often."""
    calls = np.full(len(FRACTIONS), inf)
    start = problem.gap(np.zeros(problem.d))

    def look(opt: pc.Optimizer) -> bool:
        reached = problem.gap(opt.result().x) <= start * np.array(FRACTIONS)
        calls[reached & np.isinf(calls)] = opt.nfev
        return bool(np.isfinite(calls).all())

    opt = _optimizer(problem, settings, settings["most_calls"])
    follow(opt, problem.value, call_grid(settings["most_calls"], per_decade=50), look)
    return calls, opt.result().spectrum


def _over_horizons(problem: Regression, settings: Mapping[str, Any]) -> Any:
    """For the methods whose step needs the horizon: one run for each, doubled until the last epsilon is reached."""
    horizons, gaps = [16], [problem.gap(np.zeros(problem.d))]
    goals = gaps[0] * np.array(FRACTIONS)
    while gaps[-1] > goals.min() and 2 * horizons[-1] <= settings["most_calls"]:
        horizons.append(2 * horizons[-1])
        opt = _optimizer(problem, settings, horizons[-1])
        follow(opt, problem.value, [horizons[-1] + 1], lambda _: True)
        gaps.append(problem.gap(opt.result().x))
    return np.array([_crossing(horizons, gaps, goal) for goal in goals])


def _crossing(horizons: list[int], gaps: list[float], goal: float) -> float:
    """The horizon at which the gap is first below the goal, interpolated between two runs on log axes."""
    for j in range(1, len(gaps)):
        if gaps[j] <= goal:
            share = (np.log(gaps[j - 1]) - np.log(goal)) / (np.log(gaps[j - 1]) - np.log(gaps[j]))
            return float(2 * ceil(horizons[j - 1] * 2.0**share / 2))
    return inf
