"""What a run of `auto` leaves to another one that continues from its result: the gate, the distance, the covariance."""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from poem_cma._types import Array
from poem_cma.auto import averages, progress
from poem_cma.auto.far.state import Far
from poem_cma.auto.gate import Gate
from poem_cma.auto.near.state import Near
from poem_cma.auto.near.state import begin as near_from
from poem_cma.auto.noiseless.state import Exact
from poem_cma.auto.noiseless.state import begin as exact_from
from poem_cma.auto.state import EXACT, FAR, NEAR, AutoState
from poem_cma.run.algorithm import Learned

__all__ = ["Kept", "continued", "kept", "mixed"]


class Kept(NamedTuple):
    """What is kept beside the distance."""

    search: Near | Far | Exact
    gate: Gate
    unit: float  # of values
    behind: int  # evaluations


def kept(s: AutoState) -> tuple[float, Kept]:
    """The distance over which the search has looked last, and the rest."""
    search: Any = s.search
    if isinstance(search, Near):
        distance, search = search.R / sqrt(search.t + 1.0), near_from(search.x, search.R, search.noise, search.slope)
    elif isinstance(search, Far):
        distance = search.spread * sqrt(len(search.x))
    else:
        distance = search.reach
    return distance, Kept(search, s.gate, s.clock.unit, s.behind + s.clock.nfev)


def continued(s: AutoState, learned: Learned) -> AutoState:
    """The state before the first evaluation, made one that goes on with the search of another run from x0."""
    clock = s.clock._replace(asked=learned.used[0], samples=learned.used[1])
    if not learned.distance > 0.0:
        return s._replace(clock=clock)
    rest, run, x = learned.search, s.run, np.asarray(s.run.x0, dtype=float)
    search: Near | Far | Exact
    if isinstance(rest.search, Near):
        reach = min(learned.distance, 0.5 * run.domain.diameter)
        phase, search = NEAR, near_from(x.astype(run.x0.dtype, copy=False), reach, rest.search.noise, rest.search.slope)
    elif isinstance(rest.search, Far):
        phase, search = FAR, rest.search._replace(x=x)
    else:
        phase, search = EXACT, exact_from(x, learned.distance)
    return s._replace(
        phase=phase, clock=clock._replace(unit=rest.unit), gate=rest.gate, search=search, averages=averages.begin(x),
        progress=progress.begin(run, x, 0), behind=rest.behind,
    )  # fmt: skip


def mixed(s: AutoState) -> list[Array]:
    """The mean of the average and of the earlier result, weighted by evaluations; nothing where x0 is no result."""
    if not s.behind:
        return []
    share = s.behind / (s.behind + s.clock.nfev)
    return [s.average + share * (s.run.x0 - s.average)]
