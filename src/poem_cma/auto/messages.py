"""What a user should know at the end of a run."""

from __future__ import annotations

import numpy as np

from poem_cma.auto.state import AutoState

__all__ = ["remark"]


def remark(s: AutoState) -> str:
    """Whether the run has found anything better than x0; empty if there is nothing to say."""
    if s.converged:
        return ""
    points, chosen = s.judge.points, s.judge.chosen
    x = points[chosen] if len(points) else s.average
    if np.array_equal(x, s.run.x0):
        if s.averages.t and not np.array_equal(s.search.x, s.run.x0):
            return "nothing better than x0 was found: x0 is returned"
        return "the run did not move: no change of F was seen at any distance from x0"
    if s.progress.improving:
        return "the run was still improving: a larger budget will find a better point"
    return ""
