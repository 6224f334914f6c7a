"""A problem as a player sees it: values that cost calls, a budget, and a notebook of what was recommended when."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from math import isfinite, sqrt
from typing import Any

import numpy as np

from poem_cma.problems import Problem
from poem_cma.run.randomness import Stream, Streams

__all__ = ["WORST", "Spent", "Task", "call_grid"]

#: A recommendation that is not finite, or worse than this, counts as so bad.
WORST = 1e9
#: Pairs of values at x0 from which the size of gradient estimates is measured; they are not charged.
CALIBRATION = 50


class Spent(Exception):  # noqa: N818
    """The calls that are left do not suffice for what was asked."""


def call_grid(budget: int, per_decade: int = 16) -> list[int]:
    """Numbers of calls, evenly spaced on a log axis from 10 on; the last is the budget.

    Examples
    --------
    >>> call_grid(200, per_decade=3)
    [10, 22, 46, 100, 200]
    """
    count = int(per_decade * np.log10(budget / 10.0)) + 1
    return sorted({*(round(10.0 * 10.0 ** (j / per_decade)) for j in range(count)), budget})


class Task:
    """One problem, one budget, one seed.

    A player asks for values and says which point it would recommend by now. Before a request is answered that leads
    past a number of calls on the grid, the exact gap of the present recommendation is written down for it. xi number n
    is a function of the seed and n alone, so that all players see the same sequence.

    Parameters
    ----------
    problem : Problem
    budget : int
        Calls of F, one for every point and every xi.
    seed : int

    Examples
    --------
    >>> from poem_cma import problems
    >>> task = Task(problems.load("noisy-quadratic"), budget=30, seed=0)
    >>> task.values(np.zeros((4, 50)), batch=5).shape, task.nfev
    ((4,), 20)
    >>> task.recommend(task.x0)
    >>> task.finish()["gaps"]
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """

    def __init__(self, problem: Problem, budget: int, seed: int) -> None:
        self.problem, self.budget, self.seed = problem, budget, seed
        self.x0, self.d = problem.x0, problem.d
        self.nfev = 0
        self.shareable = problem.shareable
        self._streams = Streams(seed)
        self._next = 0  # the number of the next xi
        self._cache: dict[int, Any] = {}  # the xi's of the last request that named them
        self._point: Any = self.x0
        self._unit = problem.objective(problem.x0) - problem.optimum
        self._ahead = call_grid(budget)
        self.calls: list[int] = []
        self.gaps: list[float] = []
        self._started = time.process_time()
        self._oracle_seconds = 0.0
        self._notebook_seconds = 0.0

    # What a player may ask.

    def project(self, x: Any) -> Any:
        """The nearest point of the domain."""
        return x if self.problem.domain is None else self.problem.domain.project(x)

    def fresh(self, count: int) -> list[int]:
        """The numbers of xi's that nobody has seen yet."""
        first, self._next = self._next, self._next + count
        return list(range(first, self._next))

    def at(self, X: Any, numbers: Sequence[int]) -> Any:
        """The mean of F over these xi's at each row of X; every pair of a row and a xi is one call."""
        return self.charge(len(X) * len(numbers), lambda: self._mean(X, numbers))

    def charge(self, calls: int, evaluate: Callable[[], Any]) -> Any:
        """The result of `evaluate`, which makes so many calls of F; refused where they are not left."""
        if self.nfev + calls > self.budget:
            raise Spent
        self._note(self.nfev + calls)
        self.nfev += calls
        started = time.process_time()
        result = evaluate()
        self._oracle_seconds += time.process_time() - started
        return result

    def values(self, X: Any, *, shared: bool = True, batch: int = 1) -> Any:
        """The mean of F over `batch` new xi's at each row: the same ones for all rows, or each its own."""
        if shared:
            return self.at(X, self.fresh(batch))
        if self.nfev + len(X) * batch > self.budget:
            raise Spent
        return np.concatenate([self.at(x[None], self.fresh(batch)) for x in X])

    def gradient(self, x: Any, cost: int) -> Any:
        """A subgradient of F(.; xi) at x for a new xi, at the price of so many calls."""
        gradient = self.problem.gradient
        assert gradient is not None
        return self.charge(cost, lambda: gradient(x, self._sample(self.fresh(1)[0])))

    def recommend(self, point: Any) -> None:
        """The point to use by now; or a function without arguments that returns it, called when it is needed."""
        self._point = point

    def slope_size(self, smoothing: float, *, shared: bool = True) -> float:
        """The root mean square of d (F(x0 + mu v) - F(x0 - mu v)) / (2 mu), v on the sphere; not charged."""
        rng = np.random.default_rng([self.seed, 50])
        aside = Streams(self.seed + 2**32)
        squares = 0.0
        for n in range(CALIBRATION):
            v = rng.standard_normal(self.d)
            v *= smoothing / np.linalg.norm(v)
            numbers = (2 * n, 2 * n) if shared and self.shareable else (2 * n, 2 * n + 1)
            xi = [self.problem.sample(aside.at(Stream.SAMPLES, k)) for k in numbers]
            plus, minus = (self.problem.fun((self.x0 + s * v)[None], k)[0] for s, k in zip((1, -1), xi, strict=True))
            squares += (plus - minus) ** 2
        return self.d * sqrt(squares / CALIBRATION) / (2.0 * smoothing) or 1.0

    # What the arena does.

    def finish(self) -> dict[str, Any]:
        """Write down what is left of the grid, and return the notebook."""
        self._note(self.budget + 1)
        total = time.process_time() - self._started - self._notebook_seconds
        return {
            "calls": self.calls, "gaps": self.gaps, "nfev": self.nfev,
            "seconds": round(total, 4), "oracle_seconds": round(self._oracle_seconds, 4),
        }  # fmt: skip

    def _note(self, reached: int) -> None:
        """The gap of the recommendation that stands until so many calls are made."""
        if not self._ahead or self._ahead[0] >= reached:
            return
        started = time.process_time()
        gap = self.gap(self._point() if callable(self._point) else self._point)
        while self._ahead and self._ahead[0] < reached:
            self.calls.append(self._ahead.pop(0))
            self.gaps.append(gap)
        self._notebook_seconds += time.process_time() - started

    def gap(self, x: Any) -> float:
        """How far f is from its optimum at a point, or at the nearest of the domain; 1 at x0."""
        x = np.asarray(x, dtype=float)
        if not np.isfinite(x).all():
            return WORST
        with np.errstate(all="ignore"):  # a point far out may have no finite value
            gap = (self.problem.objective(self.project(x)) - self.problem.optimum) / self._unit
        return min(float(gap), WORST) if isfinite(gap) else WORST

    def _mean(self, X: Any, numbers: Sequence[int]) -> Any:
        values = np.zeros(len(X))
        if self.shareable:
            for xi in self._draw(numbers):
                values += self.problem.fun(X, xi)
        else:  # whatever was asked, every call has its own
            for j, x in enumerate(X):
                for n in self.fresh(len(numbers)):
                    values[j] += self.problem.fun(x[None], self._sample(n))[0]
        return values / len(numbers)

    def _draw(self, numbers: Sequence[int]) -> list[Any]:
        if any(n not in self._cache for n in numbers):
            self._cache = {n: self._sample(n) for n in numbers}
        return [self._cache[n] for n in numbers]

    def _sample(self, number: int) -> Any:
        return self.problem.sample(self._streams.at(Stream.SAMPLES, number))
