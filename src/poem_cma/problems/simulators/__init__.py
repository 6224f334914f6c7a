"""Eight simulators of SimOpt as black boxes, each with shared seeds and, as ``...-own``, without.

SimOpt is the package `simoptlib` (Eckman, Henderson and Shashaani, 2023, "SimOpt: a testbed for simulation-optimization
experiments"). Starting points, bounds and factors are SimOpt's defaults, and one evaluation is one replication. In
TABLEALLOCATION-1 x is rounded to whole tables that fit into the restaurant (see `Tables`); EXAMPLE-2 is simulated at
every real point, although SimOpt declares its variables as integers.

Evaluations are kept inside the domain, because most of these simulators mean nothing outside. There F is what the
simulator returns, and it may raise. PARAMESTI-1 also raises OverflowError inside its domain, where the gamma function
of a sample is too large: in one evaluation of 6,000 at x[0] = 10.

If the mean of F has a formula, it is the judge. Otherwise the judge is the mean over replications with random numbers
of their own, the same ones at every point.

>>> from poem_cma.problems import simulators
>>> list(simulators.BLACK_BOXES)[:3]
['example-1', 'example-1-own', 'example-2']
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from poem_cma._types import Array
from poem_cma.domains.sets import Box, Simplex
from poem_cma.problems.black_box import BlackBox
from poem_cma.problems.simulators import batches, exact
from poem_cma.problems.simulators.simulation import CLASSES, Simulation, Tables, sample

__all__ = ["BLACK_BOXES"]

Judge = Callable[[Any], float]

BUDGETS = {"SAN-1": (1000, 4000)}


def _domain(name: str, simulation: Simulation) -> Any:
    """SimOpt's domain; for tables the box around all that fit into the restaurant."""
    if name == "NETWORK-1":
        return Simplex()
    lower, upper = simulation.bounds
    if name == "TABLEALLOCATION-1":
        upper = simulation.factors["capacity"] / np.array(simulation.factors["table_cap"], dtype=float)
    return None if np.isinf([lower, upper]).all() else Box(lower, upper)


def _over(draw: Callable[..., Any], run: Callable[..., Array], factors: dict[str, Any], number: int) -> Judge:
    """The mean over replications whose random numbers are drawn when they are first needed."""
    drawn: list[Any] = []

    def mean(x: Any) -> float:
        if not drawn:
            drawn.extend(draw(factors, np.random.default_rng(2026), number))
        return float(run(factors, x, *drawn).mean())

    return mean


def _judge(name: str, simulation: Simulation) -> Judge:
    """The mean of F: by a formula, or over replications."""
    factors = dict(simulation.factors)
    if name == "EXAMPLE-1":
        return lambda x: float(x @ x)
    if name == "EXAMPLE-2":
        target = np.arange(1.0, 5.0)
        return lambda x: float(np.sum((x - target) ** 2))
    if name == "CNTNEWS-1":
        return lambda x: -exact.profit(factors, float(x[0]))
    if name == "PARAMESTI-1":
        return lambda x: -exact.log_likelihood(factors["xstar"], x)
    if name == "SAN-1":
        mean = exact.duration(factors["arcs"])
        costs = np.array(simulation.problem.factors["arc_costs"], dtype=float)
        return lambda x: mean(x) + float(np.sum(costs / x))
    if name == "SSCONT-1":
        return _over(batches.draw_inventory, batches.inventory, factors, 20_000)
    if name == "NETWORK-1":
        return _over(batches.draw_network, batches.network, factors, 4000)
    revenue = lru_cache(maxsize=4096)(_over(batches.draw_tables, batches.tables, factors, 20_000))
    return lambda x: -revenue(tuple(simulation.point(x).tolist()))


def _build(name: str, shared: bool) -> BlackBox:
    simulation = (Tables if name == "TABLEALLOCATION-1" else Simulation)(name)
    judge = _judge(name, simulation)
    return BlackBox(
        name=name.lower() + ("" if shared else "-own"),
        suite="simulators",
        source=f"SimOpt (simoptlib), {name}: {simulation.problem.class_name}",
        x0=simulation.start,
        domain=_domain(name, simulation),
        fun=simulation,
        sample=sample,
        judge=lambda x: judge(np.asarray(x, dtype=float)),
        budgets=BUDGETS.get(name, (300, 1000)),
        shared=shared,
    )


BLACK_BOXES: dict[str, Callable[[], BlackBox]] = {
    name.lower() + ending: partial(_build, name, not ending) for name in CLASSES for ending in ("", "-own")
}
