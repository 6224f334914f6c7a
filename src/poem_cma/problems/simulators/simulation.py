"""A simulator of SimOpt as a function F(x; xi) of a point and the number of a stream."""

from __future__ import annotations

from typing import Any

import numpy as np

from poem_cma._types import Array
from poem_cma.problems.packages import package

__all__ = ["CLASSES", "HIGHEST", "Simulation", "Tables", "sample"]

#: xi is below this number.
HIGHEST = 2**31

#: SimOpt's name of a problem, the module under `simopt.models` and the class there.
CLASSES = {
    "EXAMPLE-1": ("example", "ExampleProblem"),
    "EXAMPLE-2": ("example", "Example2Problem"),
    "CNTNEWS-1": ("cntnv", "CntNVMaxProfit"),
    "PARAMESTI-1": ("paramesti", "ParamEstiMaxLogLik"),
    "SSCONT-1": ("sscont", "SSContMinCost"),
    "SAN-1": ("san", "SANLongestPath"),
    "NETWORK-1": ("network", "NetworkMinTotalCost"),
    "TABLEALLOCATION-1": ("tableallocation", "TableAllocationMaxRev"),
}


def sample(rng: np.random.Generator) -> int:
    """Draw xi."""
    return int(rng.integers(HIGHEST))


class Simulation:
    """F(x; xi): one replication of a SimOpt problem, with the sign changed where SimOpt maximises.

    Generator i of the simulator starts every evaluation at subsubstream xi of substream i of MRG32k3a. So equal xi give
    the same random numbers at every x. The generators are reused: one object must not be called from two threads.

    Parameters
    ----------
    name : str
        SimOpt's name of the problem.

    Attributes
    ----------
    problem : simopt.problem.Problem
        SimOpt's own object, with its default factors.
    """

    def __init__(self, name: str) -> None:
        module, kind = CLASSES[name]
        needed = "the simulators need SimOpt"
        self.problem: Any = getattr(package(f"simopt.models.{module}", needed), kind)()
        generator = package("mrg32k3a.rust", needed).MRG32k3a
        self.name = name
        self.sign = -float(self.problem.minmax[0])
        self.streams = [generator() for _ in range(self.problem.model.n_rngs)]

    def __call__(self, x: Any, xi: int) -> float:
        for i, stream in enumerate(self.streams):
            stream.start_fixed_s_ss_sss([0, i, xi])
        point = tuple(self.point(np.asarray(x, dtype=float)).tolist())
        model = self.problem.model
        model.factors.update(self.problem.vector_to_factor_dict(point))
        model.before_replicate(self.streams)
        objective = self.problem.replicate(point).objectives[0]
        return self.sign * float(objective.stochastic + objective.deterministic)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name,)

    @property
    def factors(self) -> dict[str, Any]:
        """The factors of the simulation by SimOpt's names."""
        factors: dict[str, Any] = self.problem.model.factors
        return factors

    @property
    def start(self) -> Array:
        """SimOpt's initial solution."""
        return np.array(self.problem.factors["initial_solution"], dtype=float)

    @property
    def bounds(self) -> tuple[Array, Array]:
        """SimOpt's bounds of the variables."""
        return np.array(self.problem.lower_bounds, dtype=float), np.array(self.problem.upper_bounds, dtype=float)

    def point(self, x: Array) -> Array:
        """The point that is simulated when F is evaluated at x."""
        return x


class Tables(Simulation):
    """A simulation of tables in a restaurant, in whole numbers and within the restaurant's capacity.

    Numbers are rounded to the nearest whole ones, and negative ones to zero. If these tables have more seats than the
    capacity, all numbers are multiplied by capacity / seats and rounded down.
    """

    def point(self, x: Array) -> Array:
        numbers = np.rint(np.maximum(x, 0.0)).astype(np.int64)
        capacity = self.factors["capacity"]
        seats = int(numbers @ self.factors["table_cap"])
        return np.asarray(numbers if seats <= capacity else numbers * capacity // seats, dtype=float)
