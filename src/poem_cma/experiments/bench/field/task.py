"""A black box as a player of the field sees it: counted values, numbered samples, and a recommendation."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from math import inf, isfinite
from typing import Any

import numpy as np

from poem_cma.domains.sets import Box
from poem_cma.experiments.bench.task import Spent
from poem_cma.problems.black_box import BlackBox
from poem_cma.run.randomness import Stream, Streams

__all__ = ["REACH", "WORST", "FieldTask", "Spent"]

#: A recommendation that is not finite, or whose judged value is not, counts as so bad.
WORST = 1e300
#: Where there is no finite box, methods that need one search so far around x0, or |x0| in variables where it is more.
REACH = 2.0


class FieldTask:
    """One problem, one budget, one seed.

    Every call of F is counted. A request for more calls than are left raises `Spent` before any of them is made. If
    the problem shares its noise, sample number n is a function of the seed and n alone, so all players have the same
    samples. Otherwise every evaluation draws new noise.

    Parameters
    ----------
    problem : BlackBox
    budget : int
        The most calls of F.
    seed : int

    Examples
    --------
    >>> box = BlackBox(
    ...     "parabola", "rough", "an example", np.ones(2), None, lambda x, xi: float(x @ x) + xi,
    ...     lambda rng: rng.standard_normal(), lambda x: float(x @ x), (300, 1000),
    ... )
    >>> task = FieldTask(box, budget=10, seed=0)
    >>> values = task.values(np.zeros((4, 2)))
    >>> task.recommend(np.zeros(2))
    >>> task.nfev, task.judged()
    (4, 0.0)
    """

    def __init__(self, problem: BlackBox, budget: int, seed: int) -> None:
        self.problem, self.budget, self.seed = problem, budget, seed
        self.x0, self.d = np.array(problem.x0, dtype=float), problem.d
        self.nfev = 0
        self.refused = 0
        self.seconds_inside = 0.0
        self._streams = Streams(seed)
        self._noise = np.random.default_rng([seed, 1])
        self._next = 0
        self._lowest = inf
        self._samples: dict[int, Any] = {}
        self._point: Any = self.x0

    @property
    def unit(self) -> Any:
        """The scale that is told to those who need one: a quarter of the box in each variable, or 1."""
        box = self.problem.box
        return np.ones(self.d) if box is None else 0.25 * np.broadcast_to(box.upper - box.lower, self.d)

    @property
    def bounds(self) -> tuple[Any, Any]:
        """Finite bounds for methods that need a box: those of the problem, or x0 plus or minus max(`REACH`, |x0|)."""
        walls = self.walls
        if self.problem.box is not None and walls is not None:
            return walls
        reach = np.maximum(REACH, np.abs(self.x0))
        lower, upper = self.x0 - reach, self.x0 + reach
        return (lower, upper) if walls is None else (np.maximum(lower, walls[0]), np.minimum(upper, walls[1]))

    @property
    def walls(self) -> tuple[Any, Any] | None:
        """The bounds of the domain or of the box around it, possibly infinite ones; None if there are none."""
        domain = self.problem.box or self.problem.domain
        if not isinstance(domain, Box):
            return None
        return tuple(np.broadcast_to(side, self.d).astype(float) for side in (domain.lower, domain.upper))  # type: ignore[return-value]

    def project(self, x: Any) -> Any:
        """The nearest point of the domain."""
        return x if self.problem.domain is None else self.problem.domain.project(x)

    def fresh(self, count: int) -> list[int]:
        """The numbers of samples that nobody has seen yet."""
        first, self._next = self._next, self._next + count
        return list(range(first, self._next))

    def at(self, x: Any, number: int) -> float:
        """F at the nearest point of the domain, on the sample with this number; one call."""
        return self.asked(self.project(np.array(x, dtype=float)), self._sample(number))

    def value(self, x: Any) -> float:
        """F at the nearest point of the domain, on a new sample; one call."""
        return self.at(x, self.fresh(1)[0])

    def tried(self, x: Any) -> float:
        """As `value`; of the points that were tried, the one with the lowest value is recommended."""
        value = self.value(x)
        if value < self._lowest:
            self._lowest = value
            self.recommend(np.array(x))
        return value

    def values(self, X: Any, *, shared: bool = False) -> Any:
        """F at each row of X: on one new sample, or on a new one for each row."""
        self._allow(len(X))
        numbers = self.fresh(1) * len(X) if shared else self.fresh(len(X))
        return np.array([self.at(x, number) for x, number in zip(X, numbers, strict=True)])

    def mean(self, x: Any, numbers: Sequence[int]) -> float:
        """The mean of F at a point over some samples; each costs a call."""
        self._allow(len(numbers))
        return float(np.mean([self.at(x, number) for number in numbers]))

    def asked(self, x: Any, xi: Any = None) -> float:
        """F exactly where it is asked, on this sample; without shared noise, on one of its own."""
        self._allow(1)
        self.nfev += 1
        xi = xi if self.problem.shared else self.problem.sample(self._noise)
        started = time.process_time()
        value = float(self.problem.fun(x, xi))
        self.seconds_inside += time.process_time() - started
        return value

    def recommend(self, point: Any) -> None:
        """The point to use by now, or a function without arguments that returns it."""
        self._point = point

    def recommended(self) -> Any:
        """The last recommendation, moved into the domain."""
        point = np.asarray(self._point() if callable(self._point) else self._point, dtype=float)
        return self.project(point) if np.isfinite(point).all() else point

    def judged(self) -> float:
        """The judge's value of the recommendation."""
        point = self.recommended()
        return worth(self.problem.judge, point) if np.isfinite(point).all() else WORST

    def _allow(self, calls: int) -> None:
        if self.nfev + calls > self.budget:
            self.refused += 1
            raise Spent(f"the budget of {self.budget} evaluations is spent")

    def _sample(self, number: int) -> Any:
        if not self.problem.shared:
            return None
        if number not in self._samples:
            if len(self._samples) > 100:
                self._samples.clear()
            self._samples[number] = self.problem.sample(self._streams.at(Stream.SAMPLES, number))
        return self._samples[number]


def worth(judge: Callable[[Any], float], x: Any) -> float:
    """The judge's value of a point, a finite number."""
    with np.errstate(all="ignore"):
        value = float(judge(x))
    return min(value, WORST) if isfinite(value) else WORST
