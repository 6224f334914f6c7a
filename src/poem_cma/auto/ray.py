"""The first scale: values along the rays that the first estimates point to.

First at x_0, and at radii that grow tenfold, until going further makes it worse; then once more between the decades
beside the best one. The scale is the least radius with most of the decrease. Where slopes differ much in size there are
two rays, the second in units in which they do not, and the better of them also says in which metric the run begins.
These values are of the samples that the rays were made of, and too good: `prove` has the last word.
"""

from __future__ import annotations

from math import floor, inf, isfinite, log10, nan, sqrt
from typing import Any

import numpy as np

from poem_cma._types import Array
from poem_cma.auto.compare import hand_over_noise
from poem_cma.auto.estimators import same
from poem_cma.auto.exact import affordable, begun
from poem_cma.auto.own_noise import OFTEN, different, has_own_noise, in_doubt, little
from poem_cma.auto.prove import demanded, least_radius, mean_changes, proof
from poem_cma.auto.remarks import OWN_NOISE
from poem_cma.auto.start import DECADES, at_first_scale, first_estimates, start_again, start_noisy, start_rounded
from poem_cma.auto.state import AutoState, empty, has
from poem_cma.core import Values

__all__ = ["after_ray", "on_ray", "ray_asked", "ray_places"]

_MOST_DECADES, _HALF = 18, 0.25  # and a radius half a decade beyond them counts as none
_STILL_FALLING = 1.001  # of the fall so far: a ray along which F has come to an end is not followed further
_SAME = 1e-6  # of the way: points that are no further apart


def ray_places(s: AutoState) -> list[tuple[int, float]]:
    """What is asked on every xi: which ray, and how far; points at x_0 itself belong to no ray."""
    asked = s.radii[s.ray_values.shape[1] :].tolist()
    at_x0 = [(0, 0.0)] * asked.count(0.0)
    return at_x0 + [(i, r) for i in range(len(s.rays)) for r in asked if r > 0.0]


def ray_asked(s: AutoState) -> list[tuple[int, list[int]]]:
    """Which of these places are asked on which xi: all on all; and two on one more, where a single one may do.

    It is another one every time, for some may be alike by chance.
    """
    n = len(ray_places(s))
    every = [(j, list(range(n))) for j in range(len(s.values))]
    return [*every, (1 + s.ray_values.shape[1], [0, n - 1])] if _sole(s) else every


def _sole(s: AutoState) -> bool:
    """Whether there is one sample, because F seems to have no noise, or for lack of calls: does another differ?"""
    return len(s.values) == 1 and s.exact and affordable(s)


def on_ray(s: AutoState, i: int, radius: float) -> Array:
    """The point of the i-th ray at a distance from x_0."""
    x: Array = s.run.domain.project(s.run.x0 - radius * s.rays[i]) if radius > 0.0 else s.run.x0
    return x


def after_ray(s: AutoState, values: Values) -> Any:
    """Go on outwards while it pays, then look between; then the scale is where most of the decrease is had."""
    sole = len(values) > len(s.values)
    if s.exact and not _no_noise(values, sole, s.eps):
        if sole and first_estimates(s.run, len(s.order))[2] > 1:
            return start_noisy(s)
        s = s._replace(exact=False)
    V = np.array(values[: len(s.values)])
    rays, before = s.ray_values.shape
    if before == 0:
        again = np.count_nonzero(s.radii == 0.0)
        at_x0 = V[:, :again]
        differ, noise = different(at_x0, s.eps)
        if has_own_noise(at_x0, differ):
            size = float(np.nanmax(np.abs(V[:, 0])))
            return start_rounded(s, noise) if little(noise, V[:, 0]) else hand_over_noise(s, OWN_NOISE, noise * size)
        if again < OFTEN and in_doubt(at_x0, differ):
            return s._replace(radii=np.append([0.0] * OFTEN, s.radii[again:]))
        at_x0 = np.where(np.isfinite(V[:, :1]), V[:, :1], V[:, 1:2])  # for each xi
        at_x0[differ] = nan
        s = s._replace(values=at_x0, radii=s.radii[again - 1 :], ray_values=empty(rays, 1))
        V = V[:, again:]
    radii, changes = s.radii.tolist(), mean_changes(V, s.values[:, 0])[0].reshape(rays, -1).tolist()
    known = [_until_it_rises(radii, [*row, *new]) for row, new in zip(s.ray_values.tolist(), changes, strict=True)]
    s = s._replace(ray_values=np.array(known))
    if not s.between and has(s.run, "ray"):
        if _outwards(s, radii, known):
            return s._replace(radii=np.array([*radii, *(10.0 * radii[-1] * decade for decade in DECADES)]))
        if any(change < 0.0 for row in known for change in row):
            return s._replace(radii=np.array([*radii, *_beside(radii, known)]), between=True)
    return _settled(s, radii, known)


def _until_it_rises(radii: list[float], along: list[float]) -> list[float]:
    """Changes of F along a ray, infinite beyond a radius where F has risen by more than it had fallen before.

    Further out it is higher still, or has nothing to do with x_0. Where that is not what values say, they cannot be
    true: of samples that are far higher some may have been taken for mishaps.
    """
    fallen, risen = 0.0, False
    for i in sorted(range(len(along)), key=radii.__getitem__):
        change = along[i]
        along[i] = inf if risen else change
        risen = risen or (fallen < change < inf)
        fallen = max(fallen, -change)
    return along


def _outwards(s: AutoState, radii: list[float], known: list[list[float]]) -> bool:
    """Whether the outermost radius is the best on a ray that does not end there."""
    outermost = radii[-1]
    return _decades(radii) < _MOST_DECADES and any(
        row[-1] < _STILL_FALLING * min(row[:-1])
        and not _ends(on_ray(s, i, outermost), on_ray(s, i, outermost / 10.0), s.run.x0)
        for i, row in enumerate(known)
    )


def _decades(radii: list[float]) -> int:
    """How many were looked at, from the innermost radius to the outermost, whatever lies between them."""
    on_ray = [r for r in radii if r > 0.0]
    return 1 + floor(log10(max(on_ray) / min(on_ray)) + _HALF) if on_ray else 0


def _ends(far: Array, near: Array, x0: Array) -> bool:
    """Whether a ray has come to where the domain ends: far out its points are the same but for rounding."""
    return float(np.abs(far - near).max()) <= _SAME * float(np.abs(far - x0).max())


def _beside(radii: list[float], known: list[list[float]]) -> list[float]:
    """Half a decade less, and more, than the radius that is best so far, on either ray."""
    best = [least_radius(radii, row) for row in known if min(row) < 0.0]
    return sorted({r * factor for r in best for factor in (sqrt(0.1), sqrt(10.0))})


def _settled(s: AutoState, asked: list[float], known: list[list[float]]) -> Any:
    """The better ray and its scale, which are then put to the proof."""
    decrease = [-min(row) for row in known]
    if max(decrease) <= 0.0:
        if s.exact and affordable(s):
            return _without_noise(s, 0, 0.0)
        return start_again(s) if has(s.run, "ray") else at_first_scale(s)
    favoured = 1 if len(decrease) == 2 and decrease[1] > demanded(s) * decrease[0] else 0
    radii = [least_radius(asked, known[i if d > 0.0 else favoured]) for i, d in enumerate(decrease)]
    endless = _decades(asked) >= _MOST_DECADES and not isfinite(s.run.domain.diameter)
    if s.exact and affordable(s) and not endless:
        return _without_noise(s, favoured, radii[favoured])
    return proof(s, favoured, radii, endless and not s.exact)  # without noise there is nothing to prove


def _without_noise(s: AutoState, i: int, radius: float) -> Any:
    """Quasi-Newton steps take over, from that point of the ray; or from x_0, where nothing on the ray is better."""
    method = s.run.method.noiseless
    assert method is not None
    value = float(s.values[0, 0])
    if radius > 0.0:
        change = float(s.ray_values[i, s.radii == radius][0])
        return begun(s, method, on_ray(s, i, radius), value + change, radius, -float(s.ray_values[i].min()))
    radius = s.run.initial_distance
    return begun(s, method, s.run.x0, value, radius, sqrt(s.s @ s.s) / s.weight * s.unit * radius)


def _no_noise(values: Values, sole: bool, eps: float) -> bool:
    """Whether several xi's have given the same values; where calls fail, they do so on all."""
    if sole and _failed_amid(values[0]):
        return False
    first, *others = [[values[0][0], values[0][-1]], values[1]] if sole else values
    equal = all(other == first for other in others)  # to the last digit, as where there is none
    return len(others) > 0 and (equal or same(np.array(others), np.array(first), eps))


def _failed_amid(F: list[float]) -> bool:
    """Whether a call has failed before one that has not, further out: it may have by chance."""
    known = list(map(isfinite, F))
    return known != sorted(known, reverse=True)
