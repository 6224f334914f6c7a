"""Near or far? Does the change over a tiny distance predict the change over a long one, on the same xi and direction?

Near differences tell the truth where they predict far ones (correlation and regression coefficient), or where F is
convex along all directions that were tried: F(x) plus slope times distance is then a lower bound.

They are used where, besides, samples disagree: if the change over the long distance is another one on another xi, it
takes many slopes to see f, and near differences have them for little. If samples agree, pairs of points see f itself.
Where they agree in every digit, there is no noise: the third answer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from poem_cma._types import Array, Size
from poem_cma.auto.request import Draws, Request, at, unit
from poem_cma.auto.scan import NEARBY, Scan
from poem_cma.run.algorithm import Run

__all__ = ["Gate", "affordable", "again", "begin", "decide", "prepared", "requests", "unsure"]

#: Near distance as a fraction of the far one: well above rounding, well below a step.
NEAR, NEAR_SINGLE = 1e-5, 1e-2
#: Smallest near distance as a fraction of the coordinates, because of rounding.
ROUNDING, ROUNDING_SINGLE = 1e-8, 1e-4
#: Near changes predict far ones above this correlation, with a coefficient within a factor of RATIO.
CORRELATION, RATIO = 0.95, 10.0
#: Far changes are measured at h and, because of kinks, at h / sqrt(10).
FAR = (1.0, 10.0**-0.5)
#: Number of nonzero slopes needed before slopes are trusted.
SEEN = 3
#: A lower bound may be missed by this fraction of the changes, because of rounding.
SLACK = 1e-3
#: An evaluation's own noise may be this fraction of the changes, well below what CORRELATION allows.
QUIET = 0.01
#: Near changes must be CLEAR times the own noise, at FURTHEST of the far distance at most.
CLEAR, FURTHEST = 10.0, 0.1
#: Samples agree if they share more than this part of the squared differences.
COMMON = 2 / 3
#: Values within this many rounding errors are equal.
ROUNDINGS = 16.0
#: A test begins with few directions. If near differences tell the truth there, it goes on with budget / 100 new ones,
#: at most 24, which decide.
FEW, PER_DIRECTION, MOST = 4, 100, 24
#: Evaluations for each direction, and share of the budget for a test. Shorter runs are far.
PER_TEST, SHARE = 10, 0.1
#: The gate is asked again when distances have shrunk by this factor.
SHRUNK = 10.0


class Gate(NamedTuple):
    """What is known of near and far."""

    near: bool
    h: Size  # the far distance of the last test; zero if there was none
    e: Size  # the near distance, in units of the far one
    asked: int  # tests so far
    at: int  # evaluations when the last test was made
    own: float  # standard deviation of the noise that every evaluation has of its own, as seen by the test
    slope: float  # a typical slope, as seen by the test
    noiseless: bool = False  # near differences tell the truth, and no evaluation has shown any noise
    noisy: bool = False  # noise was seen after a test that saw none
    quiet: bool = True  # whether the noise of evaluations is small, as seen by the test
    few: bool = False  # whether the test has few directions, as each does at first
    true: bool = False  # whether near differences told the truth, also where samples agree


def begin() -> Gate:
    """Nothing is known."""
    return Gate(False, 0.0, 0.0, 0, 0, 0.0, 0.0)


def directions(run: Run) -> int:
    """How many directions a test has at the end."""
    return int(np.clip(run.budget / PER_DIRECTION, FEW, MOST))


def unsure(gate: Gate, run: Run) -> bool:
    """Whether few of the directions were tried, near differences told the truth there, and there is noise."""
    return gate.few and gate.true and not gate.noiseless and directions(run) >= 2 * FEW


def possible(run: Run) -> bool:
    """Whether a test is affordable, and no variable is an integer, of which near differences see nothing."""
    return run.domain.variables is None and directions(run) * PER_TEST / SHARE <= run.budget


def prepared(gate: Gate, x: Array, h: float, scan: Scan) -> Gate:
    """The gate before a test at a distance h: near differences must be clear of the noise of evaluations."""
    i = int(np.argmin(np.abs(np.log(scan.lengths / h)))) if len(scan.lengths) else 0
    change = float(scan.changes[i]) * min(h / float(scan.lengths[i]), 1.0) if len(scan.lengths) else 0.0
    noise = gate.own if gate.asked else scan.noise
    e = max(_near(x, h), CLEAR * noise / change if change > 0.0 else 0.0)
    return gate._replace(h=h, e=min(e, FURTHEST), few=True)


def requests(gate: Gate, x: Array, run: Run, draws: Draws, address: int) -> list[Request]:
    """For each direction a base near x, and points on both sides of it; the far ones again on another xi.

    If w is the way from the base to a far point, the points are base + e w, base + w / sqrt(10), and base + w. One of
    the far points is evaluated twice: does every evaluation have noise of its own?
    """
    V = unit(draws.rng(address), 2 * (FEW if gate.few else directions(run)), run)
    half, project, h, e = len(V) // 2, run.domain.project, gate.h, gate.e
    made = []
    for i, (v, aside) in enumerate(zip(V[:half], V[half:], strict=True)):
        base = project(x + NEARBY * h * aside)
        ways = np.array([project(base + h * v), project(base - h * v)]) - base
        made.append(at(np.concatenate([[base, base + ways[0]], *(base + far * ways for far in (e, *FAR))]), i))
        made.append(at(base + FAR[1] * ways, half + i))
    return made


def affordable(gate: Gate, run: Run) -> bool:
    """Whether all tests together, with another one, cost a small share of the budget.

    A test that speaks against near differences ends with few directions.
    """
    return (gate.asked + 1) * (directions(run) if gate.near else FEW) * PER_TEST <= SHARE * run.budget


def again(gate: Gate, run: Run, h: float, noisy: bool, nfev: int) -> bool:
    """Whether the answer may have changed: distances have shrunk tenfold, or noise rules where samples had agreed."""
    in_time = 2 * gate.at <= nfev <= 0.5 * run.budget and gate.asked > 0  # the other regime has as much again
    return affordable(gate, run) and in_time and (noisy or h < gate.h / SHRUNK)


def decide(gate: Gate, values: list[Array], nfev: int) -> Gate:
    """The answer, from the values of `requests`."""
    F, again = np.array(values[::2]), np.array(values[1::2])
    unit = _unit(F, again)
    F, again = F / unit, again / unit
    own = float(np.sqrt(_mean((F[:, 4] - F[:, 1]) ** 2) / 2.0))
    slopes = (F[:, 2:4] - F[:, :1]) / gate.e
    near = any(_predicted(slopes * far, F[:, 4 + 2 * j : 6 + 2 * j]) for j, far in enumerate(FAR))
    near = near or _convex(slopes, F[:, 4:6] - F[:, :1])
    differ = _disagree(F[:, 6] - F[:, 7], again[:, 0] - again[:, 1])
    quiet = own <= QUIET * float(np.sqrt(_mean((F[:, 4] - F[:, 0]) ** 2)))
    same = bool((F[:, 4] == F[:, 1]).all()) and _equal(F[:, 6:8], again)
    noiseless = near and same and not gate.noisy
    slope = float(np.sqrt(_mean(slopes**2))) * unit / gate.h
    own, slope = (value if np.isfinite(value) else 0.0 for value in (own * unit, slope))
    true = bool(near and quiet)
    told = Gate(true and differ, gate.h, gate.e, gate.asked + 1, nfev, own, slope, noiseless, gate.noisy)
    return told._replace(quiet=quiet, few=gate.few, true=true)


def _equal(F: Array, again: Array) -> bool:
    """Whether values on two samples are the same, but for the order of sums; some must be numbers."""
    known = np.isfinite(F) & np.isfinite(again)
    close = np.abs(F - again) <= ROUNDINGS * np.finfo(float).eps * np.maximum(np.abs(F), np.abs(again))
    return bool(known.any() and (close | ~known).all())


def _unit(F: Array, again: Array) -> float:
    """A power of two near the largest difference of values: squares of 1e200 would overflow, those of 1e-200 vanish."""
    D = np.concatenate([(F - F[:, :1]).ravel(), (again - again[:, :1]).ravel()])
    D = np.abs(D[np.isfinite(D)])
    return float(2.0 ** np.floor(np.log2(D.max()))) if D.any() else 1.0


def _mean(squares: Array) -> float:
    """The mean of those that are known; NaN if there is none."""
    known = squares[np.isfinite(squares)]
    return float(known.mean()) if len(known) else np.nan


def _disagree(D: Array, E: Array) -> bool:
    """Whether a good part of the squared differences is not common to two samples."""
    known = np.isfinite(D) & np.isfinite(E)
    D, E = D[known], E[known]
    return float(D @ E) < COMMON * 0.5 * float(D @ D + E @ E)


def _near(x: Array, h: float) -> float:
    """Near differences in units of far ones."""
    single = x.dtype == np.float32
    least = (ROUNDING_SINGLE if single else ROUNDING) * float(np.abs(x).max()) / h
    return max(NEAR_SINGLE if single else NEAR, least)


def _predicted(changes: Array, ends: Array) -> bool:
    """Whether slopes times distance, on both sides, predict the differences of the ends."""
    a, b = changes[:, 0] - changes[:, 1], ends[:, 0] - ends[:, 1]
    seen = np.isfinite(a) & np.isfinite(b)
    a, b = a[seen], b[seen]
    if np.count_nonzero(a) < SEEN:
        return False
    others = np.arange(len(a)) != np.argmax(np.abs(a))  # a single jump, which looks steep, must not decide
    return _agree(a, b) and _agree(a[others], b[others])


def _agree(a: Array, b: Array) -> bool:
    """Whether correlation and coefficient are high enough."""
    aa, ab, bb = float(a @ a), float(a @ b), float(b @ b)
    return ab > CORRELATION * np.sqrt(aa * bb) and aa / RATIO < ab < aa * RATIO


def _convex(bounds: Array, changes: Array) -> bool:
    """Whether slopes times distance are lower bounds of the changes everywhere."""
    seen = np.isfinite(bounds) & np.isfinite(changes)
    bounds, changes = bounds[seen], changes[seen]
    if np.count_nonzero(bounds) < SEEN:
        return False
    return bool((bounds <= changes + SLACK * (np.abs(bounds) + np.abs(changes))).all())
