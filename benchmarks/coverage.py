"""How often the 95% intervals of `result.value` and `result.gain` hold the truth.

    python benchmarks/coverage.py [seeds]

Three problems, each with four budgets: the newsvendor with four goods of the quickstart, whose mean has a formula; a
queue with six numbers of servers, whose mean is taken over many days that no run sees; and SimOpt's newsvendor with one
order, where F is the same number on nearly all samples as long as the order is small. By default there are 200 seeds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import gamma

import poem_cma as pc
from poem_cma.problems import load_black_box

BUDGETS = (60, 100, 300, 1000)
#: Days that tell the mean of the queue: its error is a fifth of the error of the longest measurement.
DAYS = 1500
#: Values that agree to this part of themselves are equal: rounding.
ROUNDING = 1e-9


class Case(NamedTuple):
    """A problem, and the mean of F at a point."""

    name: str
    solve: Callable[..., pc.Result]
    x0: Any
    mean: Callable[[Any], float]


def newsvendor() -> Case:
    """Four goods: a piece costs 2 and is sold for 5; demand is Gamma(4)."""
    size, x0 = np.array([5.0, 10.0, 15.0, 20.0]), np.full(4, 25.0)

    def loss(stock: Any, demand: Any) -> float:
        return float(2.0 * stock.sum() - 5.0 * np.minimum(stock, demand).sum())

    def mean(x: Any) -> float:
        positive = np.maximum(x, 0.0)  # a negative stock is always sold out
        sold = 4.0 * size * gamma.cdf(positive, 5.0, scale=size) + positive * gamma.sf(positive, 4.0, scale=size)
        return float(2.0 * x.sum() - 5.0 * (sold + np.minimum(x, 0.0)).sum())

    def solve(**settings: Any) -> pc.Result:
        return pc.minimize(loss, x0, sample=lambda rng: rng.gamma(4.0, size), **settings)

    return Case("newsvendor", solve, x0, mean)


def queue() -> Case:
    """Six periods of a day."""
    box = load_black_box("queue")

    @cache
    def mean(servers: tuple[float, ...]) -> float:
        rng = np.random.default_rng([2026, 29])
        return float(np.mean([box.fun(np.array(servers), box.sample(rng)) for _ in range(DAYS)]))

    rounded = lambda x: tuple(np.clip(np.floor(x + 0.5), 1.0, 1e6))  # noqa: E731 - as the queue does
    return Case("queue", box.solve, box.x0, lambda x: mean(rounded(x)))


def one_order() -> Case:
    """SimOpt's newsvendor."""
    box = load_black_box("cntnews-1")
    return Case("one order", box.solve, box.x0, box.judge)


def holds(estimate: Any, truth: float) -> bool:
    """Whether the interval holds the truth, up to rounding."""
    slack = ROUNDING * abs(truth)
    return bool(estimate.low - slack <= truth <= estimate.high + slack)


def main(seeds: int) -> None:
    """Print a row for each problem and budget."""
    print("problem     evaluations  samples  value in its interval  gain in its interval  better than x0")
    for case in (newsvendor(), queue(), one_order()):
        start = case.mean(case.x0)
        for budget in BUDGETS:
            counts = np.zeros(3)
            for seed in range(seeds):
                result = case.solve(budget=budget, seed=seed)
                found = case.mean(result.x)
                counts += [holds(result.value, found), holds(result.gain, start - found), found < start]
            shares = "  ".join(f"{share:>20.1f}%" for share in 100.0 * counts / seeds)
            print(f"{case.name:<10}  {budget:>11}  {result.value.samples:>7}  {shares}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
