"""A queue with a number of servers in each period of a day: a simulator that counts.

Customers arrive as a Poisson process whose rate differs between the periods, are served in the order of arrival, and
need an exponential time. A customer starts as soon as fewer servers are busy than are on duty. A server whose duty
ends first completes the customer at hand. After the last period its servers stay until the last customer has started.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from heapq import heappop, heappush
from typing import Any

import numpy as np

from poem_cma.domains.sets import Box
from poem_cma.problems.black_box import BlackBox, mean_over

__all__ = ["BLACK_BOXES", "customers", "queue", "waiting_times"]

#: The length of a period and the mean time that a customer needs, in hours.
PERIOD, SERVICE = 2.0, 1.0 / 3.0

#: How many servers the customers of each period keep busy on average.
LOADS = (2.0, 8.0, 13.0, 10.0, 6.0, 2.0)

#: The cost of an hour of a server, and of an hour that a customer waits.
WAGE, IMPATIENCE = 1.0, 2.0


def queue(name: str = "queue", shared: bool = True) -> BlackBox:
    """The cost of staff and of waiting over a day; the variables are numbers of servers and are rounded."""
    return BlackBox(
        name=name,
        suite="rough",
        source="a queue with time-varying Poisson arrivals and the number of servers in six periods of a day",
        x0=np.full(6, 10.0),
        domain=Box(np.full(6, 1.0), np.full(6, 20.0), integer=True),
        fun=_cost,
        sample=_seed,
        judge=mean_over(_cost, _seed, 400),
        budgets=(300, 1000),
        shared=shared,
    )


def waiting_times(servers: Any, seed: int) -> list[float]:
    """The hours that each customer of a simulated day waits.

    Parameters
    ----------
    servers : sequence of int
        The number of servers in each period, at least one.
    seed : int
        The seed of the arrivals and of the times that the customers need; both are the same for all `servers`.

    Examples
    --------
    >>> few, many = waiting_times([5] * 6, seed=1), waiting_times([50] * 6, seed=1)
    >>> len(few) == len(many), max(few) > 1.0, max(many)
    (True, True, 0.0)
    """
    last = len(LOADS) - 1
    busy: list[float] = []  # when each busy server is free, as a heap
    waits = []
    now = 0.0
    for arrival, service in customers(seed):
        now = max(now, arrival)
        while True:
            while busy and busy[0] <= now:
                heappop(busy)
            period = min(int(now / PERIOD), last)
            if len(busy) < servers[period]:
                break
            now = busy[0] if period == last else min(busy[0], (period + 1) * PERIOD)
        heappush(busy, now + service)
        waits.append(now - arrival)
    return waits


@lru_cache(maxsize=512)
def customers(seed: int) -> list[tuple[float, float]]:
    """When each customer of a simulated day arrives, in hours, and the time that the customer needs."""
    rng = np.random.default_rng(seed)
    numbers = rng.poisson(np.array(LOADS) * PERIOD / SERVICE)
    times = [PERIOD * (i + np.sort(rng.random(number))) for i, number in enumerate(numbers)]
    arrivals = np.concatenate(times)
    return list(zip(arrivals.tolist(), rng.exponential(SERVICE, len(arrivals)).tolist(), strict=True))


def _cost(x: Any, xi: int) -> float:
    servers = [int(n) for n in np.clip(np.floor(np.asarray(x) + 0.5), 1.0, 1e6)]
    return WAGE * PERIOD * sum(servers) + IMPATIENCE * sum(waiting_times(servers, xi))


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31))


BLACK_BOXES: dict[str, Callable[[], BlackBox]] = {
    "queue": queue,
    "queue-own": partial(queue, "queue-own", shared=False),
}
