"""How much of the field is run: problems, seeds, budgets and players of the quick mode and of the full one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from poem_cma.problems.rough import CORE

__all__ = ["FULL", "QUICK", "FieldScale", "SuiteScale", "seconds_a_call"]

#: About how long a call of F takes, to plan with: by problem, or by suite.
_SECONDS = {
    "simulators": 20e-6, "sscont-1": 400e-6, "san-1": 200e-6, "network-1": 3e-3, "tableallocation-1": 400e-6,
    "policies": 300e-6, "cartpole": 50e-6, "mountain-car": 600e-6, "acrobot": 2.5e-3,
    "rough": 10e-6, "queue": 200e-6,
    "noisy-bbob": 15e-6,
}  # fmt: skip


@dataclass(frozen=True)
class SuiteScale:
    """How much of a suite is run.

    Attributes
    ----------
    problems : tuple of str
        Empty for all.
    seeds : int
    both : bool
        Both budgets of each problem, or the small one only.
    without : tuple of str
        Players that are left out to save time.
    """

    problems: tuple[str, ...] = ()
    seeds: int = 3
    both: bool = False
    without: tuple[str, ...] = ()


@dataclass(frozen=True)
class FieldScale:
    """How much of each suite is run."""

    name: str
    suites: Mapping[str, SuiteScale]


#: Names that the full mode takes of the 252 in noisy-bbob: one instance of each function, in 5 and in 20 variables.
_BBOB = (
    "f101-gauss-sphere", "f103-cauchy-sphere", "f104-gauss-rosenbrock", "f107-gauss-sphere", "f108-uniform-sphere",
    "f109-cauchy-sphere", "f110-gauss-rosenbrock", "f113-gauss-step-ellipsoid", "f116-gauss-ellipsoid",
    "f119-gauss-different-powers", "f122-gauss-schaffer", "f125-gauss-griewank-rosenbrock", "f128-gauss-gallagher",
    *(f"bbob-f{number}-additive" for number in (1, 2, 5, 6, 7, 8, 10, 13, 14, 15, 17, 21)),
)  # fmt: skip

QUICK = FieldScale(
    "quick",
    {
        "simulators": SuiteScale(("cntnews-1", "sscont-1", "san-1-own", "network-1", "tableallocation-1"), seeds=3),
        "policies": SuiteScale(
            ("cartpole-own", "mountain-car", "pendulum-features", "pendulum-network", "acrobot"), seeds=3
        ),
        "rough": SuiteScale(
            (
                "queue",
                "zero-one-cancer",
                "stairs-off",
                "one-integer",
                "ripples-rastrigin-own",
                "wall",
                "outliers-own",
                "log-variable",
            ),
            seeds=3,
        ),
        "noisy-bbob": SuiteScale(
            (
                "f101-gauss-sphere-d5-i1",
                "f113-gauss-step-ellipsoid-d5-i1",
                "bbob-f8-additive-d5-i1",
                "bbob-f15-additive-d5-i1",
            ),
            seeds=3,
        ),
    },
)

FULL = FieldScale(
    "full",
    {
        "simulators": SuiteScale(seeds=5, both=True),
        "policies": SuiteScale(seeds=5, both=True),
        "rough": SuiteScale(CORE, seeds=5, both=True),
        "noisy-bbob": SuiteScale(tuple(f"{name}-d{d}-i1" for name in _BBOB for d in (5, 20)), seeds=3, both=True),
    },
)


def seconds_a_call(suite: str, problem: str) -> float:
    """About how long a call of F takes."""
    return _SECONDS.get(problem.removesuffix("-own"), _SECONDS.get(suite, 1e-4))
