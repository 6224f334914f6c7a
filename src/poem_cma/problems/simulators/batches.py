"""Simulators without a formula for their mean, written for many replications at once: they judge points.

Each has a function `draw_...`, which draws the random numbers of a number of replications, and a function that has the
values of all replications at a point on such numbers. On equal random numbers the values are those of SimOpt.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from poem_cma._types import Array

__all__ = ["draw_inventory", "draw_network", "draw_tables", "inventory", "network", "tables"]

Factors = dict[str, Any]


def draw_inventory(factors: Factors, rng: np.random.Generator, number: int) -> tuple[Array, Any]:
    """The demand of every day, and the lead time of the first, second, ... order; days or orders are rows."""
    shape = factors["n_days"] + factors["warmup"], number
    return rng.exponential(factors["demand_mean"], shape), rng.poisson(factors["lead_mean"], shape)


def inventory(factors: Factors, x: Any, demands: Array, leads: Any) -> Array:
    """The cost per day of an (s, S) inventory with s = x[0] and S = x[0] + x[1]."""
    warmup, n_days = factors["warmup"], factors["n_days"]
    days, number = demands.shape
    low, high = x[0], x[0] + x[1]
    each = np.arange(number)
    orders = np.zeros(number, dtype=np.int64)
    received = np.zeros((days + 1, number))
    stock = np.full(number, float(low))
    position = stock.copy()
    cost = np.zeros(number)
    for day, demand in enumerate(demands):
        before, stock = stock, stock - demand
        position = position - demand
        ordering = each[position < low]
        amount = high - position[ordering]
        position[ordering] = high
        arrival = np.minimum(day + 1 + leads[orders[ordering], ordering], days)
        received[arrival, ordering] += amount
        orders[ordering] += 1
        if day >= warmup:
            short = np.clip(demand - before, 0.0, demand)
            cost += factors["backorder_cost"] * short + factors["holding_cost"] * np.maximum(stock, 0.0)
            cost[ordering] += factors["fixed_cost"] * (amount > 0.0) + factors["variable_cost"] * amount
        stock = stock + received[day + 1]
    cost /= n_days
    return cost


def draw_network(factors: Factors, rng: np.random.Generator, number: int) -> tuple[Array, Array, Array]:
    """The times between messages, and uniform numbers for their routes and transit times; messages are rows."""
    shape = factors["n_messages"], number
    return rng.exponential(1.0 / factors["arrival_rate"], shape), rng.random(shape), rng.random(shape)


def network(factors: Factors, x: Any, gaps: Array, routes: Array, transits: Array) -> Array:
    """The cost of sending messages through queues in parallel, queue i with probability x[i]."""
    low, mode, high = (
        np.array(factors[name], dtype=float)
        for name in ("lower_limits_transit_time", "mode_transit_time", "upper_limits_transit_time")
    )
    process, time = np.array(factors["cost_process"]), np.array(factors["cost_time"])
    bounds = np.cumsum(x)
    number, n = gaps.shape[1], len(low)
    peak = (mode - low) / (high - low)
    first = np.arange(number) * n
    free = np.zeros(number * n)
    now = np.zeros(number)
    cost = np.zeros(number)
    for gap, u, v in zip(gaps, routes, transits, strict=True):
        now = now + gap
        route = np.minimum(np.searchsorted(bounds, u * bounds[-1], side="right"), n - 1)
        at = peak[route]
        share = np.where(v > at, 1.0 - np.sqrt((1.0 - v) * (1.0 - at)), np.sqrt(v * at))
        done = np.maximum(now, free[first + route]) + low[route] + (high - low)[route] * share
        free[first + route] = done
        cost += process[route] + time[route] * (done - now)
    return cost


def draw_tables(factors: Factors, rng: np.random.Generator, number: int) -> tuple[Array, Any, Array]:
    """When groups arrive (-1 if there are fewer), their sizes less one, and exponential numbers for their stay."""
    mean = round(factors["n_hours"] * sum(factors["lambda"]))
    counts = np.maximum(np.ceil(mean + np.sqrt(mean) * rng.standard_normal(number) - 0.5), 0.0)
    shape = int(counts.max()), number
    absent = np.arange(shape[0])[:, None] >= counts
    times = 60.0 * np.sort(np.where(absent, np.inf, rng.uniform(0.0, factors["n_hours"], shape)), axis=0)
    shares = np.cumsum(factors["lambda"])
    sizes = np.searchsorted(shares, rng.random(shape) * shares[-1], side="right")
    return np.where(absent, -1.0, times), sizes, rng.exponential(1.0, shape)


def tables(factors: Factors, x: Any, times: Array, sizes: Any, stays: Array) -> Array:
    """The revenue of a restaurant with x[k] tables of kind k; a group takes the first table that is free and fits."""
    seats = np.array(factors["table_cap"])
    means, revenue = np.array(factors["service_time_means"]), np.array(factors["table_revenue"], dtype=float)
    kinds = np.repeat(np.arange(len(seats)), np.asarray(x, dtype=np.int64))
    smallest = np.searchsorted(seats, np.arange(1, seats.max() + 1))
    total = np.zeros(times.shape[1])
    if not len(kinds):
        return total
    free = np.zeros((len(total), len(kinds)))
    seated = np.zeros(len(total), dtype=np.int64)
    for time, size in zip(times, sizes, strict=True):
        fits = (free < time[:, None]) & (kinds >= smallest[size][:, None])
        table = fits.argmax(axis=1)
        here = np.flatnonzero(fits[np.arange(len(total)), table])
        free[here, table[here]] += stays[seated[here], here] * means[size[here]]
        seated[here] += 1
        total[here] += revenue[size[here]]
    return total
