"""What a player is: how it plays, what it is given by default, and along which axes it may be tuned."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import poem_cma
from poem_cma.experiments.bench.provenance import installed as _version
from poem_cma.experiments.bench.provenance import source_digest as _digest
from poem_cma.experiments.bench.task import Task
from poem_cma.problems import Problem

__all__ = ["Axis", "Player", "Setting"]

Setting: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Axis:
    """A parameter and the values, or factors of the best so far, to try for it, all else being as is best so far."""

    name: str
    values: Sequence[Any]
    factors: bool = False
    constrained: bool = False  # to be tried only where there is a domain

    def settings(self, best: Setting) -> list[Setting]:
        """The settings to try."""
        return [{**best, self.name: best[self.name] * v if self.factors else v} for v in self.values]


@dataclass(frozen=True)
class Player:
    """A method that takes part.

    Attributes
    ----------
    name, title : str
        For the command line, and for people.
    play : callable
        ``play(task, **setting)`` asks for values and recommends points until it is done or the calls are spent.
    default : mapping
        The setting a user has who sets nothing.
    start : mapping
        Where tuning begins; `axes` are gone through in order.
    role : str
        "ours", "peer", "limit" (sees gradients), or "deterministic" (only where there is no noise).
    packages : tuple of str
        The distributions it needs; their versions are part of the result.
    pace, growth : float
        About how many seconds it takes for a point, and how many more for each dimension, to plan with.
    up_to : int
        In more dimensions than this it does not take part: minutes for a run.
    code : tuple of str
        Ours: the files and folders of the package whose change makes a result out of date.
    plans : bool
        Whether it plans for its budget: the gap at a number of calls is then that of a run with so many.
    replicas : callable or None
        ``replicas(problem, budget, seeds)`` returns the points that runs with these seeds end at, made together.
    edition : int
        To be raised when the way it plays is changed, so that old results are not taken for new ones.
    """

    name: str
    title: str
    play: Callable[..., None]
    default: Setting = field(default_factory=dict)
    start: Setting = field(default_factory=dict)
    axes: Sequence[Axis] = ()
    role: Literal["ours", "peer", "limit", "deterministic"] = "peer"
    packages: tuple[str, ...] = ()
    pace: float = 50e-6
    growth: float = 0.0
    up_to: int = 10**6
    code: tuple[str, ...] = ()
    plans: bool = False
    replicas: Callable[[Problem, int, Sequence[int]], list[Any]] | None = None
    edition: int = 1

    def missing(self) -> list[str]:
        """The packages that are not installed."""
        return [name for name in self.packages if _version(name) is None]

    def made_by(self) -> dict[str, str]:
        """What a result depends on beside its setting; another version makes it out of date."""
        if self.role == "ours":
            return {"poem_cma": poem_cma.__version__, "code": _digest(self.code)}
        return {"edition": str(self.edition)} | {name: _version(name) or "" for name in self.packages}

    def seconds(self, d: int, budget: int, setting: Setting) -> float:
        """About how long a run takes."""
        batch: int = setting.get("batch", 1)
        return 0.1 + budget * (10e-6 + (self.pace + self.growth * d) / batch)

    def __call__(self, task: Task, setting: Setting) -> None:
        """Play."""
        self.play(task, **setting)
