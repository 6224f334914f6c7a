"""Further out on the way that the average has gone: is it better there?

Elsewhere R follows the distance of the average from x_0. Where steps go along a few of very many directions, and all
that matters happens in some of them, nearly all of that distance is at random: it is about R, whatever R is, and a
scale that was far too small at first would stay so. There values must tell. The average is compared with points three
and ten times as far out, on samples that had no part in it; where these are better beyond doubt, R grows as much.
"""

from __future__ import annotations

from math import isfinite

from poem_cma._types import Array
from poem_cma.auto.directions import directions_a_step
from poem_cma.auto.state import FURTHER, HAAR, WORSE, AutoState, has

__all__ = ["TIMES", "at_larger_scale", "blind", "further_points"]

#: As far out as the average.
TIMES = (3.0, 10.0)

_STEPS_SHARE = 0.05  # of the budget, for steps: before, the average is still on its way


def further_points(s: AutoState) -> list[Array]:
    """The points that the average is compared with, beside x_0; the furthest only where the nearer seemed better."""
    if s.alarmed == WORSE or not blind(s):
        return []
    x0 = s.run.x0
    times = TIMES if s.alarmed == FURTHER else TIMES[:1]
    return [s.run.domain.project(x0 + c * (s.average - x0)) for c in times]


def blind(s: AutoState) -> bool:
    """Whether the distance of the average says little of the scale."""
    random = s.choice == s.kind == HAAR and not s.use_subspace and not s.dual
    under_way = s.t * (directions_a_step(s.run) + 1) >= _STEPS_SHARE * s.run.budget
    return random and under_way and isfinite(s.check_at) and has(s.run, "rescaling")


def at_larger_scale(s: AutoState, times: float) -> AutoState:
    """So many times as large; iterates at the smaller scale count for less in the averages."""
    return s._replace(R=times * s.R, path_weight=s.path_weight / times**2, radial=0.0, radial_squares=0.0)
