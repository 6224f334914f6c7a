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
    tuning_seeds : int
        Runs of each setting that is tried.
    axes : int
        A peer is tuned along so many axes at most.
    patience : float
        Where so many runs are planned to take more seconds than this, there are only as many as do not; one at least.
    problems : tuple of str
    """

    name: str
    budget: int
    seeds: int
    tuning_seeds: int
    axes: int
    patience: float
    problems: tuple[str, ...]


QUICK = Scale(
    name="quick",
    budget=4000,
    seeds=3,
    tuning_seeds=1,
    axes=1,
    patience=5.0,
    problems=(
        "hinge-mushrooms", "absolute-rank5-of-100", "noisy-quadratic", "unshared-quadratic", "cvar-portfolio",
        "max-affine",
    ),
)  # fmt: skip

FULL = Scale(
    name="full",
    budget=20_000,
    seeds=11,
    tuning_seeds=1,
    axes=9,
    patience=24.0,
    problems=tuple(problems.names()),
)
