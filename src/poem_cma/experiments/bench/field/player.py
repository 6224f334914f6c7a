"""What a player of the field is: how it plays, where it takes part, and what it needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import poem_cma
from poem_cma.experiments.bench.field.task import FieldTask
from poem_cma.experiments.bench.provenance import installed, source_digest
from poem_cma.problems.black_box import BlackBox

__all__ = ["Ending", "FieldPlayer"]


@dataclass(frozen=True)
class Ending:
    """How a run ended: the method's own message, and whether it warns that the result may be poor."""

    message: str
    said: bool = False


@dataclass(frozen=True)
class FieldPlayer:
    """A method that takes part in the field.

    Attributes
    ----------
    name, title : str
        For the command line, and for people.
    play : callable
        ``play(task)`` asks for values and recommends points until it is done or `Spent` is raised. It returns an
        `Ending`, or None for the usual end.
    about : str
        Its settings in one line.
    role : str
        "ours", "peer", or "tuned" (it uses the judge to choose its setting).
    packages : tuple of str
        The distributions it needs; their versions are part of a result.
    suites : tuple of str
        It takes part in these alone; empty for all.
    most : int
        With a larger budget it does not take part.
    up_to : int
        In more variables it does not take part.
    where : callable
        ``where(problem)``: whether it is for such problems.
    pace, growth : float
        About how many seconds it takes for an evaluation beside F, and how many more for each variable.
    runs : int
        How many runs a cell makes: those who choose among settings make several.
    code : tuple of str
        Ours: the files and folders of the package whose change makes a result out of date.
    edition : int
        To be raised when the way it plays is changed.
    """

    name: str
    title: str
    play: Callable[[FieldTask], Ending | None]
    about: str
    role: Literal["ours", "peer", "tuned"] = "peer"
    packages: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()
    most: int = 10**9
    up_to: int = 10**9
    where: Callable[[BlackBox], bool] = lambda _: True
    pace: float = 20e-6
    growth: float = 0.0
    runs: int = 1
    code: tuple[str, ...] = ()
    edition: int = 1

    def missing(self) -> list[str]:
        """The packages that are not installed."""
        return [name for name in self.packages if installed(name) is None]

    def takes_part(self, problem: BlackBox, budget: int) -> bool:
        """Whether it plays this problem with this budget."""
        here = not self.suites or problem.suite in self.suites
        return here and budget <= self.most and problem.d <= self.up_to and self.where(problem)

    def made_by(self) -> dict[str, str]:
        """What a result depends on beside its settings; another version makes it out of date."""
        if self.role == "ours":
            return {"poem_cma": poem_cma.__version__, "code": source_digest(self.code)}
        return {"edition": str(self.edition)} | {name: installed(name) or "" for name in self.packages}

    def seconds(self, d: int, budget: int, call: float) -> float:
        """About how long a cell takes if a call of F takes so many seconds."""
        return 0.05 + self.runs * budget * (call + self.pace + self.growth * d)
