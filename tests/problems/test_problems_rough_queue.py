"""The simulator of a queue: its customers, its order of service, and what more servers change."""

from __future__ import annotations

import numpy as np
import pytest

from poem_cma.problems.rough import BLACK_BOXES, queue


def test_more_servers_let_no_customer_wait_longer() -> None:
    rng = np.random.default_rng(8)
    for seed in range(30):
        few = rng.integers(1, 15, size=6)
        more = few + rng.integers(0, 4, size=6)
        waits = np.array([queue.waiting_times(few, seed), queue.waiting_times(more, seed)])
        assert waits.min() >= 0.0
        assert np.all(waits[1] <= waits[0])
        assert (waits[0].sum() > waits[1].sum()) == (not np.array_equal(waits[0], waits[1]))


def test_one_server_follows_the_recursion_of_lindley() -> None:
    """W_(n+1) = max(W_n + S_n - T_n, 0) with service times S and times T between arrivals."""
    for seed in range(5):
        arrivals, services = np.array(queue.customers(seed)).T
        wait, expected = 0.0, []
        for service, between in zip(services, np.diff(arrivals, append=np.inf), strict=True):
            expected.append(wait)
            wait = max(wait + service - between, 0.0)
        assert queue.waiting_times([1] * 6, seed) == pytest.approx(expected)
        assert np.mean(expected) > 5.0


def test_no_customer_starts_before_a_server_is_free_or_waits_beside_an_idle_one() -> None:
    rng = np.random.default_rng(15)
    for seed in range(10):
        servers = rng.integers(1, 12, size=6)
        arrivals, services = np.array(queue.customers(seed)).T
        starts = arrivals + queue.waiting_times(servers, seed)
        ends = starts + services
        assert np.all(np.diff(starts) >= 0.0)
        for n, start in enumerate(starts):
            busy = np.count_nonzero(ends[:n] > start + 1e-9)
            assert busy < servers[min(int((start + 1e-9) / queue.PERIOD), 5)]
            before = start - 1e-6
            if before > max(arrivals[n], starts[n - 1] if n else 0.0):
                busy = np.count_nonzero(ends[:n] > before)
                assert busy >= servers[min(int(before / queue.PERIOD), 5)]


def test_customers_arrive_at_the_rates_and_need_the_times_that_are_given() -> None:
    days = [np.array(queue.customers(seed)).T for seed in range(400)]
    arrivals, services = np.concatenate(days, axis=1)
    numbers = np.histogram(arrivals, bins=queue.PERIOD * np.arange(7))[0]
    means = 400.0 * np.array(queue.LOADS) * queue.PERIOD / queue.SERVICE
    assert np.abs((numbers - means) / np.sqrt(means)).max() < 3.5
    assert services.mean() == pytest.approx(queue.SERVICE, rel=4.0 / np.sqrt(len(services)))
    assert services.std() == pytest.approx(queue.SERVICE, rel=0.02)


def test_the_queue_counts_servers() -> None:
    box, own = BLACK_BOXES["queue"](), BLACK_BOXES["queue-own"]()
    rng = np.random.default_rng(9)
    for _ in range(10):
        xi = box.sample(rng)
        x = rng.integers(2, 20, size=6).astype(float)
        value = box.fun(x, xi)
        assert value == box.fun(x + rng.uniform(-0.5, 0.499, 6), xi) == own.fun(x, xi)
        waiting = sum(queue.waiting_times(x.astype(int).tolist(), xi))
        assert value == pytest.approx(queue.WAGE * queue.PERIOD * x.sum() + queue.IMPATIENCE * waiting)
    assert box.fun(np.full(6, -3.0), 1) == box.fun(np.ones(6), 1)


def test_a_staff_that_follows_the_load_is_much_better_than_x0() -> None:
    box = BLACK_BOXES["queue"]()
    follows = box.judge(np.array(queue.LOADS) + 3.0)
    assert follows < 0.5 * box.judge(box.x0)
    assert follows < 0.6 * box.judge(np.full(6, 20.0))
