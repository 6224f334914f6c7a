"""Where a run is, for those who show it: the progress bar, and the command line by way of the store."""

from __future__ import annotations

from typing import NamedTuple

from poem_cma.optimizer import Optimizer

__all__ = ["Standing", "standing"]


class Standing(NamedTuple):
    """A few numbers of a run under way."""

    nfev: int
    nit: int
    value: float  # smoothed over recent steps
    stderr: float
    distance: float  # from x0
    step_size: float
    dimension: float  # that is searched
    failures: int


def standing(opt: Optimizer) -> Standing:
    """Where the run is now."""
    s, (value, stderr) = opt._state, opt.value
    return Standing(opt.nfev, opt.nit, value, stderr, s.r, s.eta / (s.unit or 1.0), s.dimension, opt.failures)
