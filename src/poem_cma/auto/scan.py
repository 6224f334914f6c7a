"""How far? The first scale, from outside in.

p(h) is the share of points x + h v and x - h v, with v a random direction, that are lower than x on the same xi. The
base x is a random point near x0, because x0 itself may be special: on a kink, on the edge of a step, without noise. p
is a rank statistic: it needs no unit of F and no slope. On a slope it is 1/2 for short h; in a bowl it is zero as soon
as h is longer than the way to the other side; for a count or a return it stays above a tenth however long h is. The
first scale is the largest h with p(h) >= 1/10.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from poem_cma._types import Array, Partial, Series, Size
from poem_cma.auto.request import Draws, Request, at, first_unit, longest, unit
from poem_cma.run.algorithm import Run

__all__ = ["Scan", "begin", "requests", "update"]

#: A length is good if these shares of points, and of typical falls to rises, are reached.
LOWER, FALL = 0.1, 0.1
#: First length, in units of the largest coordinate of x0. A length that is ten times too long costs little.
OUTSIDE = 10.0
#: Each length uses budget / 60 directions, between 4 and 12. Of the eight points of four directions, one is about a
#: tenth.
PER_DIRECTION, FEWEST, MOST = 160, 4, 12
#: Largest share of the budget for the scan.
SHARE = 0.25
#: Multiples of the first length to try where nothing changes.
ELSEWHERE = (0.1, 0.01, 10.0, 1e-3, 100.0, 1e-4, 1e3, 1e-5, 1e4)
#: Shortest and longest length, in units of the first. A linear function falls for ever.
LEAST, GREATEST = 1e-10, 1e10

#: Lengths are a factor of 10 apart, with one in between.
COARSE, FINE = 10.0, 10.0**0.5
#: Beyond the first length changes must grow by this factor, against functions that saturate.
GROWS = 2.0
#: A change is seen if it exceeds typical changes at one point by this factor.
SEEN = 2.0
#: Distance of the base from x0, in units of the length.
NEARBY = 0.1


class Scan(NamedTuple):
    """The lengths that were tried, and what was seen there."""

    centre: Array  # around which it looks
    h: Size  # to be tried next; when the scan is over, the first scale
    over: bool
    lengths: Series  # (n,) that were tried
    shares: Partial  # (n,) of points that were lower, among those that changed
    falls: Partial  # (n,) a typical fall, relative to a typical rise
    changes: Partial  # (n,) the median change
    noise: float  # a typical change of F at one and the same point
    informative: float  # the share of the directions in which anything has changed, at the last length
    found: Array  # the best point seen
    gain: float  # how much lower it was


def begin(run: Run, centre: Array) -> Scan:
    """A scan from the outside."""
    h = min(OUTSIDE * first_unit(centre), longest(run))
    nothing = np.zeros(0)
    return Scan(centre, h, False, nothing, nothing, nothing, nothing, 0.0, 1.0, centre, 0.0)


def directions(run: Run) -> int:
    """How many directions are tried at a length."""
    return int(np.clip(run.budget / PER_DIRECTION, FEWEST, MOST))


def triples(scan: Scan, run: Run, draws: Draws, address: int) -> Array:
    """For each direction a base and two points on either side of it, (directions, 3, d)."""
    V = unit(draws.rng(address), 2 * directions(run), run)
    project, h = run.domain.project, scan.h
    half = len(V) // 2
    rows = []
    for v, aside in zip(V[:half], V[half:], strict=True):
        base = project(scan.centre + NEARBY * h * aside)
        rows.append([base, project(base + h * v), project(base - h * v)])
    return np.array(rows)


def requests(scan: Scan, run: Run, draws: Draws, address: int) -> list[Request]:
    """The points of all directions. Each direction has a xi of its own."""
    X = triples(scan, run, draws, address)
    again = 0 if len(scan.lengths) else 1  # at the first length the bases are evaluated twice
    return [at(np.concatenate([points, points[:again]]), i) for i, points in enumerate(X)]


def update(scan: Scan, run: Run, draws: Draws, address: int, values: list[Array]) -> Scan:
    """The scan after the values at a length."""
    F = np.array(values)
    D = (F[:, 1:3] - F[:, :1]).ravel()
    D = np.where(np.isfinite(D), D, np.nan)
    fell, rose = -D[D < 0], D[D > 0]
    changed = len(fell) + len(rose)
    if F.shape[1] > 3:
        repeated = np.abs(F[:, 3] - F[:, 0])
        repeated = repeated[np.isfinite(repeated)]
        scan = scan._replace(noise=float(np.median(repeated)) if len(repeated) else 0.0)
    scan = scan._replace(
        informative=float((F[:, :3] != F[:, :1]).any(axis=1).mean()),
        lengths=np.append(scan.lengths, scan.h),
        shares=np.append(scan.shares, len(fell) / changed if changed else 0.0),
        falls=np.append(scan.falls, np.median(fell) / np.median(rose) if len(fell) and len(rose) else float(len(fell))),
        changes=np.append(scan.changes, np.median(np.abs(D[np.isfinite(D)])) if np.isfinite(D).any() else 0.0),
    )
    if len(fell) and -np.nanmin(D) > scan.gain:
        j = int(np.nanargmin(D))
        scan = scan._replace(gain=float(fell.max()), found=triples(scan, run, draws, address)[j // 2, 1 + j % 2])
    look = sum(map(len, values))
    affordable = (len(scan.lengths) + 1) * look <= SHARE * run.budget
    following = _next(scan, run) if affordable else None
    return scan._replace(h=_result(scan), over=True) if following is None else scan._replace(h=following)


def seen(scan: Scan) -> Any:
    """At which lengths F changes more than at one and the same point."""
    return scan.changes > SEEN * scan.noise


def good(scan: Scan) -> Array:
    """Which of the lengths are good. One beyond the first is good only if F changes much more there."""
    lengths, changes = scan.lengths, np.where(seen(scan), scan.changes, 0.0)
    shorter = np.array([changes[lengths < h].max(initial=0.0) for h in lengths])
    grown = (lengths <= lengths[0]) | (scan.changes > GROWS * shorter)
    fine: Array = (scan.shares >= LOWER) & (scan.falls >= FALL) & grown
    return fine


def _next(scan: Scan, run: Run) -> float | None:
    """The length to try next; None at the end."""
    lengths = scan.lengths
    if not seen(scan).any() and (scan.noise > 0.0 or not scan.shares.any()):  # nothing was seen anywhere
        least = 1.0 if scan.noise > 0.0 else 0.0  # what noise hides is seen further out
        rest = [lengths[0] * far for far in ELSEWHERE if far > least and lengths[0] * far <= longest(run)]
        return rest[len(lengths) - 1] if len(lengths) <= len(rest) else None
    if not good(scan).any():
        inner = float(lengths.min()) / COARSE
        return inner if inner > LEAST * lengths[0] else None
    best = float(lengths[good(scan)].max())
    beyond = lengths[lengths > best]
    if len(beyond):  # one look between the longest good length and the next
        return best * FINE if beyond.min() > 2.0 * FINE * best else None
    outer = best * COARSE
    return outer if best >= lengths[0] and outer <= min(longest(run), GREATEST * lengths[0]) else None


def _result(scan: Scan) -> float:
    """The largest good length; if there is none, the one where most points were lower, and the longest of these."""
    fine = good(scan)
    if fine.any():
        return float(scan.lengths[fine].max())
    best = max(range(len(scan.lengths)), key=lambda i: (scan.shares[i], scan.lengths[i]))
    return float(scan.lengths[best])
