"""How much is run: the quick mode, the full mode, and what their numbers mean."""

from __future__ import annotations

from dataclasses import dataclass

from poem_cma import problems

__all__ = ["FULL", "QUICK", "Scale"]

#: The tuning seeds begin here, far from those reported.
FIRST_TUNING_SEED = 1000


@dataclass(frozen=True)
class Scale:
    """The size of the arena.

    Attributes
    ----------
    name : str
        "quick" or "full".
    budget : int
        Calls of a run.
    seeds : int
        Runs of our methods and of every peer, with its defaults and tuned.
    seeds_if_slow : int
        As many at most where a run is slow.
    tuning_seeds : int
        Runs of each setting that is tried.
    axes : int
        A peer is tuned along so many axes at most.
    slow : float
        A run that takes more seconds than this.
    problems : tuple of str
    """

    name: str
    budget: int
    seeds: int
    seeds_if_slow: int
    tuning_seeds: int
    axes: int
    slow: float
    problems: tuple[str, ...]


QUICK = Scale(
    name="quick",
    budget=4000,
    seeds=3,
    seeds_if_slow=2,
    tuning_seeds=1,
    axes=1,
    slow=1.5,
    problems=(
        "hinge-mushrooms", "absolute-rank5-of-100", "noisy-quadratic", "unshared-quadratic", "cvar-portfolio",
        "max-affine",
    ),
)  # fmt: skip

FULL = Scale(
    name="full",
    budget=20_000,
    seeds=11,
    seeds_if_slow=5,
    tuning_seeds=1,
    axes=9,
    slow=4.0,
    problems=tuple(problems.names()),
)
