"""Exact means of simulators: a newsvendor's profit, a log-likelihood, the duration of a project."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from scipy import special

__all__ = ["duration", "log_likelihood", "profit"]


def profit(factors: dict[str, Any], order: float) -> float:
    """The mean profit of a newsvendor whose demand has the Burr distribution P(D > t) = (1 + t^c)^-k.

    The mean number of units sold, the integral of P(D > t) from 0 to the order, is an incomplete beta function of
    t^c / (1 + t^c).
    """
    c, k = factors["Burr_c"], factors["Burr_k"]
    sold = order
    if order > 0.0:
        a, b = 1.0 / c, k - 1.0 / c
        power = math.pow(order, c)
        sold = float(special.beta(a, b) * special.betainc(a, b, power / (1.0 + power))) / c
    salvage = factors["salvage_price"]
    return float((factors["sales_price"] - salvage) * sold - (factors["purchase_price"] - salvage) * order)


def log_likelihood(truth: Sequence[float], x: Any) -> float:
    """The mean log-likelihood of x for two numbers from gamma distributions of scale 1.

    y_2 has the shape truth[1], and y_1 the shape truth[0] y_2. The mean over y_1 has a formula. The mean over y_2 is a
    Gauss-Laguerre quadrature, whose error is below 1e-7.
    """
    nodes, weights = special.roots_genlaguerre(100, truth[1] - 1.0)
    weights = weights / weights.sum()
    logs = special.psi(truth[0] * nodes)  # E log y_1 given y_2
    inner = weights @ ((x[0] * nodes - 1.0) * logs - special.gammaln(x[0] * nodes))
    outer = (x[1] - 1.0) * special.psi(truth[1]) - special.gammaln(x[1])
    return float(inner + outer - truth[1] * (truth[0] + 1.0))


def duration(arcs: Sequence[tuple[int, int]]) -> Callable[[Any], float]:
    """The mean duration of a project whose tasks have exponential durations, as a function of their means.

    A task (i, j) starts when all tasks that end in i are done. The set of tasks that are done is a Markov chain without
    cycles (Kulkarni and Adlakha, 1986, "Markov and Markov-regenerative PERT networks"): the mean time to go is found
    backwards, from the state in which all tasks are done.

    Examples
    --------
    >>> duration([(1, 2), (1, 2)])([1.0, 1.0])
    1.5
    """
    needed = [sum(1 << k for k, (_, end) in enumerate(arcs) if end == start) for start, _ in arcs]
    steps: dict[int, list[tuple[int, int]]] = {}
    reached = [0]
    for done in reached:
        if done not in steps:
            able = [k for k in range(len(arcs)) if not done >> k & 1 and needed[k] & ~done == 0]
            steps[done] = [(k, done | 1 << k) for k in able]
            reached.extend(after for _, after in steps[done])
    backwards = sorted(steps, key=int.bit_count, reverse=True)

    def mean(means: Any) -> float:
        rates = [1.0 / float(m) for m in means]
        to_go = {backwards[0]: 0.0}
        for done in backwards[1:]:
            moves = steps[done]
            total = sum(rates[k] for k, _ in moves)
            to_go[done] = (1.0 + sum(rates[k] * to_go[after] for k, after in moves)) / total
        return to_go[0]

    return mean
