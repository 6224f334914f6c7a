"""Table 1, measured: calls to an epsilon-solution against the ambient and against the effective dimension.

F(x; xi) = |a'(x - x*) - z| on the unit ball, a normal with covariance I/k on k of the d coordinates (so E|a|^2 = 1),
z normal: a non-smooth regression whose gradients have the effective dimension k, and whose mean has a closed form,
f(x) = sqrt(2/pi) sqrt(|(x - x*)_k|^2 / k + s^2), f* = sqrt(2/pi) s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil, inf, pi, sqrt
from typing import Any

import numpy as np

import poem_cma as pc
from poem_cma._types import Array, IntArray
from poem_cma.experiments.campaign.cells import Arrays, Cell
from poem_cma.experiments.reproduce.runs import Followed, call_grid, follow, make_method
from poem_cma.experiments.reproduce.scale import Scale
from poem_cma.run.arithmetic import products

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
        draw = self.draw(number)
        return abs(float(draw[: self.k] @ (x[: self.k] - self.star)) - float(draw[self.k]))

    def values(self, X: Any, draws: Any) -> Any:
        """F of each row on a xi of its own, the same bits as `value`."""
        return np.abs(products(draws[:, : self.k], X[:, : self.k] - self.star) - draws[:, self.k])

    def draw(self, number: int) -> Any:
        """The xi of that number."""
        block, row = divmod(number, 2048)
        if block != self._block:
            self._block = block
            self._draws = np.random.default_rng([self._seed, 5, block]).standard_normal((2048, self.k + 1))
            self._draws[:, : self.k] /= sqrt(self.k)
            self._draws[:, self.k] *= self.sd
        return self._draws[row]


def compute(seeds: Sequence[Mapping[str, Any]]) -> list[Arrays]:
    """For each seed the calls until f(output) - f* is a fraction of f(x0) - f*; infinite where that did not happen."""
    d = seeds[0]["d"]
    problems = [Regression(d, s["k"], s["seed"]) for s in seeds]
    found = (_over_horizons if seeds[0]["method"] in ("tpbco", "rsnso") else _along_the_runs)(problems, seeds)
    return [
        {
            "calls": calls,
            "epsilon": problems[0].gap(np.zeros(d)) * np.array(FRACTIONS),
            "d_star": spectrum.effective_dimension if spectrum else float(d),
            "kappa": spectrum.condition if spectrum else 1.0,
        }
        for calls, spectrum in found
    ]


Found = list[tuple[Any, pc.Spectrum | None]]
Look = Callable[[pc.Optimizer], bool]


def _follow(
    problems: Sequence[Regression], seeds: Sequence[Mapping[str, Any]], looks: Sequence[Look], budget: int,
    moments: Sequence[int],
) -> list[pc.Optimizer]:  # fmt: skip
    """A run for each seed."""
    d = problems[0].d
    method = make_method(seeds[0]["method"], lipschitz=LIPSCHITZ, d=d)

    def rows(X: Array, which: IntArray, numbers: IntArray) -> Array:
        draws = [problems[i].draw(n) for i, n in zip(which.tolist(), numbers.tolist(), strict=True)]
        values: Array = problems[0].values(X, np.array(draws))
        return values

    def run(problem: Regression, settings: Mapping[str, Any], look: Look) -> Followed:
        opt = pc.Optimizer(
            np.zeros(d), method=method, domain=pc.Ball(1.0, outside=True), budget=budget, seed=settings["seed"]
        )
        return Followed(opt, problem.value, look)

    runs = [run(*one) for one in zip(problems, seeds, looks, strict=True)]
    follow(runs, rows, moments)
    return [run.opt for run in runs]


def _along_the_runs(problems: Sequence[Regression], seeds: Sequence[Mapping[str, Any]]) -> Found:
    """For the methods that need no horizon: one run, looked at often."""
    calls = np.full((len(seeds), len(FRACTIONS)), inf)
    start = problems[0].gap(np.zeros(problems[0].d))

    def noting(problem: Regression, calls: Any) -> Look:
        def look(opt: pc.Optimizer) -> bool:
            reached = problem.gap(opt.result().x) <= start * np.array(FRACTIONS)
            calls[reached & np.isinf(calls)] = opt.nfev
            return bool(np.isfinite(calls).all())

        return look

    looks = [noting(*one) for one in zip(problems, calls, strict=True)]
    most = seeds[0]["most_calls"]
    opts = _follow(problems, seeds, looks, most, call_grid(most, per_decade=50))
    return [(own, opt.result().spectrum) for own, opt in zip(calls, opts, strict=True)]


def _over_horizons(problems: Sequence[Regression], seeds: Sequence[Mapping[str, Any]]) -> Found:
    """For the methods whose step needs the horizon: one run for each, doubled until the last epsilon is reached."""
    start = problems[0].gap(np.zeros(problems[0].d))
    goals = start * np.array(FRACTIONS)
    horizons, gaps = [16], [[start] for _ in seeds]
    left = list(range(len(seeds)))
    while left and 2 * horizons[-1] <= seeds[0]["most_calls"]:
        horizons.append(2 * horizons[-1])
        those, settings = [problems[i] for i in left], [seeds[i] for i in left]
        opts = _follow(those, settings, [lambda _: True] * len(left), horizons[-1], [horizons[-1] + 1])
        for i, opt in zip(left, opts, strict=True):
            gaps[i].append(problems[i].gap(opt.result().x))
        left = [i for i in left if gaps[i][-1] > goals.min()]
    return [(np.array([_crossing(horizons, own, goal) for goal in goals]), None) for own in gaps]


def _crossing(horizons: list[int], gaps: list[float], goal: float) -> float:
    """The horizon at which the gap is first below the goal, interpolated between two runs on log axes."""
    for j in range(1, len(gaps)):
        if gaps[j] <= goal:
            share = (np.log(gaps[j - 1]) - np.log(goal)) / (np.log(gaps[j - 1]) - np.log(gaps[j]))
            return float(2 * ceil(horizons[j - 1] * 2.0**share / 2))
    return inf
