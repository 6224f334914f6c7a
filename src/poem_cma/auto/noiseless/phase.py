"""What a quasi-Newton step asks for, and what follows from the values: slopes, then a search along a line.

A trial is taken if F has fallen enough there (Armijo) and is not as steep as before (the weak condition of Wolfe).
Both suffice for BFGS where F has kinks (Lewis and Overton 2013).
"""

from __future__ import annotations

from math import inf, isfinite, isnan

import numpy as np

from poem_cma._types import Array
from poem_cma.auto.noiseless.direction import direction, joined
from poem_cma.auto.noiseless.slopes import gradient, jumps, place, points, rounding
from poem_cma.auto.noiseless.state import KINK, MINIMUM, Exact, Line, no_line
from poem_cma.auto.request import Request, at
from poem_cma.run.algorithm import Run

__all__ = ["advance", "requests"]

#: Least decrease of F, as a fraction of what the slope predicts (Armijo).
FALLS = 1e-4
#: Required reduction of the slope (Wolfe), weaker after this many trials because of kinks.
FLAT, EARLY, LESS_STEEP = 0.2, 1, 0.9
#: Most trials of a line search, and fewer with biased one-sided slopes.
TRIALS, TRIALS_AHEAD = 30, 12
#: Values within this many rounding errors are equal. A step that predicts less is useless.
ROUNDINGS = 16.0
#: An end is a kink if slopes jump by this fraction of the first gradient.
JUMP = 1e-2
#: Rounding errors are at least those of this fraction of the first value.
SMALL = 1e-6


def requests(exact: Exact, run: Run) -> list[Request]:
    """The iterate, as a witness, and the ends of all differences; or a trial and the end of a difference there."""
    if not len(exact.line.p):
        return [at(points(exact, run))]
    return [at(trial(exact, run))]


def trial(exact: Exact, run: Run) -> Array:
    """The point to be tried, and one a little further."""
    p, t = exact.line.p, exact.line.t
    further = rounding(run) ** 0.5 * exact.reach / float(np.abs(p).max())
    return np.array([place(exact.x + s * p, run) for s in (t, t + max(further, 1e-6 * t))])


def advance(exact: Exact, run: Run, values: list[Array]) -> tuple[Exact, bool]:
    """The search after the values, and whether the iterate had the value that it had before."""
    F = values[0]
    if isnan(exact.unit):
        exact = exact._replace(unit=float(np.abs(F[0])) or 1.0, F=F[0] / (float(np.abs(F[0])) or 1.0))
    F = F / exact.unit
    if len(exact.line.p):
        return _tried(exact, run, np.where(np.isnan(F), inf, F)), True
    if not abs(F[0] - exact.F) <= ROUNDINGS * _least(exact, run):
        return exact, False
    X = points(exact, run)
    g = gradient(exact, run, X, F)
    exact = joined(exact, g)
    exact = exact._replace(steep=exact.steep or float(np.abs(g).max()))
    p = direction(exact, run)
    slope = float(g @ p)
    plain = direction(exact._replace(S=exact.S[:0], Y=exact.Y[:0]), run)
    steep = -float(g @ plain) > JUMP * exact.steep * float(np.abs(plain).max())
    kink = exact.central and (steep or jumps(X, F) > JUMP * exact.steep)
    if -slope > _least(exact, run):
        line = Line(p, slope, 1.0, 0.0, exact.F, slope, inf, 0, kink)
        return exact._replace(line=line), True
    if not exact.central:
        return exact._replace(central=True), True
    return exact._replace(end=KINK if kink else MINIMUM), True


def _least(exact: Exact, run: Run) -> float:
    """The rounding of values."""
    return rounding(run) * max(abs(exact.F), SMALL)


def _tried(exact: Exact, run: Run, F: Array) -> Exact:
    """The search after a trial."""
    line, X = exact.line, trial(exact, run)
    promised = FALLS * float(exact.g @ (X[0] - exact.x))
    slope = (F[1] - F[0]) / _further(line, X)
    steep = slope < (FLAT if line.trials < EARLY else LESS_STEEP) * line.slope
    if not F[0] < exact.F + min(promised, 0.0):
        line = line._replace(high=line.t)
    elif steep and F[0] - F[1] > ROUNDINGS * _least(exact, run):
        line = line._replace(low=line.t, low_value=float(F[0]), low_slope=float(slope))
    else:
        return _taken(exact, X[0], float(F[0]))
    line = line._replace(t=_next(exact.line, line, float(F[0])), trials=line.trials + 1)
    most = TRIALS if exact.central else TRIALS_AHEAD
    if line.trials < most and -line.t * line.slope > _least(exact, run):
        return exact._replace(line=line)
    if line.low > 0.0:
        return _taken(exact, place(exact.x + line.low * line.p, run), line.low_value)
    return _failed(exact)


def _further(line: Line, X: Array) -> float:
    """The distance of both points of a trial, in units of p."""
    return float(np.abs(X[1] - X[0]).max() / np.abs(line.p).max()) or 1.0


def _next(before: Line, line: Line, F: float) -> float:
    """The next trial: by a parabola between the ends, or beyond."""
    width = line.high - line.low
    if isfinite(width):
        if line.high == before.high or not isfinite(F):
            return line.low + 0.5 * width
        bend = F - line.low_value - line.low_slope * width
        best = -0.5 * line.low_slope * width / bend if bend > 0.0 else 0.5
        return line.low + width * float(np.clip(best, 0.1, 0.5))
    way, fall = line.low - before.low, line.low_slope - before.low_slope
    more = -line.low_slope / fall if fall > 0.0 else inf
    return line.low + way * float(np.clip(more, 1.0, 9.0))


def _taken(exact: Exact, x: Array, F: float) -> Exact:
    return exact._replace(x=x, F=F, step=x - exact.x, line=no_line())


def _failed(exact: Exact) -> Exact:
    """No lower value along the line: more precise slopes, then without the pairs, then the end."""
    if not exact.central:
        return exact._replace(central=True, line=no_line())
    if len(exact.S):
        return exact._replace(S=exact.S[:0], Y=exact.Y[:0], line=no_line())
    return exact._replace(end=KINK if exact.line.kink else MINIMUM, line=no_line())
