"""How much of the field is run: problems, seeds, budgets and players of the quick mode and of the full one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["FULL", "QUICK", "FieldScale", "SuiteScale", "seconds_a_call"]

#: About how long a call of F takes, to plan with; by problem, or by suite.
_SECONDS = {
    "simulators": 1e-3, "policies": 2e-3, "rough": 10e-6, "noisy-bbob": 20e-6,
    "queue": 200e-6, "queue-own": 200e-6,
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


QUICK = FieldScale(
    "quick",
    {
        "simulators": SuiteScale(seeds=3),
        "policies": SuiteScale(seeds=3),
        "rough": SuiteScale(seeds=3),
        "noisy-bbob": SuiteScale(seeds=3),
    },
)

FULL = FieldScale(
    "full",
    {
        "simulators": SuiteScale(seeds=5, both=True),
        "policies": SuiteScale(seeds=5, both=True),
        "rough": SuiteScale(seeds=5, both=True),
        "noisy-bbob": SuiteScale(seeds=5, both=True),
    },
)


def seconds_a_call(suite: str, problem: str) -> float:
    """About how long a call of F takes."""
    return _SECONDS.get(problem, _SECONDS.get(suite, 1e-4))
