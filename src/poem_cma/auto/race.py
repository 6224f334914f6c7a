"""A race between two metrics.

Where the slopes of variables differ much in size, either their units do, and each variable should be measured by its
slopes; or some variables matter and others do not, and then steps should go where slopes are. Both look alike at x_0,
and the wrong one can cost a run all it could have gained. So both are run for a while, one after the other, from x_0;
what they have come to is compared on common samples, and the better one goes on from where it was.

What is learned of the function (its directions, the sizes of its slopes, its samples) serves both; a path is what is
each one's own.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from poem_cma._types import Array
from poem_cma.auto.choose import rejudged
from poem_cma.auto.compare import checks, excess_of, first_check
from poem_cma.auto.scale import in_metric, in_subspace, spread_of_slopes
from poem_cma.auto.state import AutoState, empty, has

__all__ = ["after_race", "against", "other_turn", "race_pairs", "rival_average", "worth_a_race"]

_LAP = 0.06  # of the budget, for each
_FEWEST_CALLS = 600  # a shorter lap says nothing
_LAPS = 6  # of both together, at most
_CLEAR = 2.0  # standard errors that decide it
_UNEVEN = 100.0  # sizes of slopes that differ by less make little difference

_VECTORS = ("x", "s", "G", "metric")
_NUMBERS = (
    "R", "late", "dual", "by_units", "radial", "radial_squares", "promised", "promised_squares", "weight",
    "path_weight", "rescale_at", "grown", "r", "eta", "unit", "use_subspace",
)  # fmt: skip
_TRUTHS, _WHOLE = ("dual", "by_units", "use_subspace"), ("grown",)


def worth_a_race(s: AutoState) -> bool:
    """Whether the metrics differ enough, and there are calls to compare what comes of them."""
    calls = _LAP * s.run.budget
    return _FEWEST_CALLS <= calls < inf and spread_of_slopes(s) > _UNEVEN and checks(s.run) > 0 and has(s.run, "race")


def race_pairs(run: Any) -> int:
    """On how many samples the two are compared: one call in a hundred."""
    return checks(run) // 2


def against(s: AutoState, other: AutoState) -> AutoState:
    """A run that begins at s, but gives way after a lap to another beginning."""
    return _with(s, other)._replace(lap=1, check_at=s.nfev + _LAP * s.run.budget)


def other_turn(s: AutoState) -> AutoState:
    """The lap is over: the other has its turn."""
    return _exchanged(s)._replace(lap=s.lap + 1, check_at=s.nfev + _LAP * s.run.budget)


def rival_average(s: AutoState) -> Array:
    """The average that the other has come to."""
    average: Array = s.aside[len(_VECTORS)]
    return average


def after_race(s: AutoState, values: Any) -> AutoState:
    """The better of the two goes on alone; a metric without units must be better beyond doubt.

    Where it should not have won, a run gets nowhere; where it should have, the other one only takes longer.
    """
    behind, doubt = excess_of(np.array(values))
    clear = abs(behind) > _CLEAR * doubt
    if not clear and s.lap < _LAPS:
        return other_turn(s._replace(samples=s.samples + race_pairs(s.run)))
    units_win = (behind < 0.0) == s.by_units if clear else True
    s = s if s.by_units == units_win else _exchanged(s)
    return s._replace(
        lap=0, aside=empty(0, len(s.x)), aside_numbers=empty(0), check_at=first_check(s),
        samples=s.samples + race_pairs(s.run),
    )  # fmt: skip


def _with(s: AutoState, other: AutoState) -> AutoState:
    """s, with the path of another state kept aside."""
    return s._replace(
        aside=np.array([*(getattr(other, name) for name in _VECTORS), *other.averages]),
        aside_numbers=np.array([float(getattr(other, name)) for name in _NUMBERS]),
    )


def _exchanged(s: AutoState) -> AutoState:
    """The state on the path that was kept aside, while its own is kept."""
    path = dict(zip(_NUMBERS, s.aside_numbers.tolist(), strict=True)) | dict(zip(_VECTORS, s.aside, strict=False))
    path |= {name: bool(path[name]) for name in _TRUTHS} | {name: int(path[name]) for name in _WHOLE}
    c = path.pop("unit") / s.unit if s.unit > 0.0 else 1.0  # slopes may be measured in another unit since
    path |= {name: c * path[name] for name in ("s", "radial", "promised")}
    path |= {name: c * c * path[name] for name in ("G", "radial_squares", "promised_squares", "late")}
    knew, metric = path.pop("use_subspace"), path.pop("metric")
    now = in_metric(_with(s, s), metric)._replace(averages=s.aside[len(_VECTORS) :].copy(), **path)
    return rejudged(in_subspace(now) if s.use_subspace and not knew else now)
