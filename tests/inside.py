"""What tests see of the inside of a run: the one place that knows how it is kept."""

from __future__ import annotations

from typing import Any

import poem_cma as pc


def state_of(opt: pc.Optimizer) -> Any:
    """The state of the run, a record of its algorithm."""
    return opt._state


def phase_of(opt: pc.Optimizer) -> str:
    """The phase that the run is in."""
    s = state_of(opt)
    return str(s.phase if hasattr(s, "phase") else s.stage)


def algorithm_of(opt: pc.Optimizer) -> Any:
    """What makes the run of its method."""
    return opt._algorithm
