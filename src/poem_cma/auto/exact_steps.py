"""Without noise: what follows each stage of `exact`, and what is tried before the end.

Steps go to the minimum of the quadratic model, or to that of the planes below F. Where nothing is better, the other of
the two is tried, slopes are asked from both sides, and then over longer distances, for F may be rough; then it ends.
Where F has another value at the same point, it has noise after all, and the run goes on as if it had, from there.
"""

from __future__ import annotations

from itertools import islice
from math import inf, isfinite
from typing import Any

import numpy as np

from poem_cma._types import Array
from poem_cma.arithmetic import equal, length
from poem_cma.auto import cuts, line, turns
from poem_cma.auto.estimators import ROUNDING
from poem_cma.auto.exact_state import COMPARE, CUTS, DONE, SEARCH, SLOPES, WITNESS, ExactState
from poem_cma.auto.pick import pick_calls
from poem_cma.auto.quasi_newton import model_minimum, sound, updated
from poem_cma.auto.remarks import FAILED_BESIDE
from poem_cma.auto.slopes import along_axes, changes, curvatures, gradient
from poem_cma.auto.turns import MODEL, PLANES
from poem_cma.auto.witnesses import agree, witnesses
from poem_cma.core import Values

__all__ = [
    "EVEN", "SEEN", "after_curvatures", "after_cut", "after_slopes", "after_trial", "after_witnesses", "first_model",
    "on_the_way",
]  # fmt: skip

#: The first models: with the curvatures that were seen, and with the same everywhere.
SEEN, EVEN = 0, 1

_MOST_KINKED = 300  # the small problem of `cuts` takes time
_SMOOTH = 0.9  # of the axes, along which a curvature is seen
_PROMISE = 5.0  # times the fall along the first ray: no axis alone promises more
_UNSEEN = 1e-3  # of the median, for a curvature that was not seen
_FLATTEST = 1e-150  # in units of the steepest slope: what is divided by less overflows
_COARSE = 1e-6  # F may be rough: its first six digits are believed
_TRUSTS = 1.0, 0.1, 0.01, 10.0, 1e2, 1e4, 1e6
_SMALL, _NOTHING = 16.0, 1e4  # rounding errors of F: a decrease of no more is none; and a promise


def after_curvatures(s: ExactState, h: Array, F: Array) -> Any:
    """The first gradient; and where curvatures are seen along the axes, two models to choose from."""
    if not (isfinite(F[0]) and _as_before(s, F[0])):
        return _as_if_noisy(s)
    along = changes(s, h, F)
    g, second = gradient(s, along), curvatures(s, along, F[0])
    seen = second > 0.0
    s = s._replace(value=float(F[0]), g=g, g_norm=float(length(g)), mu=float(h.max()))
    if np.count_nonzero(seen) < _SMOOTH * len(seen):
        return on_the_way(first_model(s, EVEN))
    if not seen.all():
        second = np.where(seen, second, _UNSEEN * np.median(second[seen]))
    diagonal = s.diagonal.copy()
    diagonal[s.axes] = np.maximum(second, g[s.axes] ** 2 / (2.0 * _PROMISE * s.fall))
    return s._replace(stage=COMPARE, diagonal=diagonal)


def first_model(s: ExactState, which: int) -> ExactState:
    """With the curvatures that were seen along the axes, or with that along the first ray everywhere."""
    if which == SEEN:
        return _to_minimum(_with_curvatures(s, s.diagonal)._replace(learned=True))
    return _to_minimum(_with_curvatures(s, np.full(len(s.x), s.steep)))


def _to_minimum(s: ExactState) -> ExactState:
    """At the beginning of the way to the minimum of the model."""
    p, expected = model_minimum(s.x, s.g, s.H, s.run.domain)
    return line.begun(s, p, float(s.g @ p), expected)


def after_slopes(s: ExactState, h: Array, F: Array) -> Any:
    """The gradient at x, from steps h along the axes, and what it says of the model."""
    if not isfinite(F[0]):
        F[0] = s.value  # the call failed
    if not _as_before(s, F[0]):
        return _as_if_noisy(s)
    before, g = s.g, gradient(s, changes(s, h, F))
    s = _seen_lower(s, h, F)._replace(g=g, g_norm=float(length(g)), mu=float(h.max()))
    if not s.s.any():
        return _next(s)
    H, diagonal = updated(s.H, s.diagonal, s.s, g - before, s.expected, first=not s.learned)
    good = sound(H, diagonal)
    s = s._replace(H=H, diagonal=diagonal, learned=True) if good else _new_model(s)
    if s.kinks and _without_planes(s):
        s = turns.begun(cuts.begun(s, before))
    return _next(s)


def _as_before(s: ExactState, value: float) -> bool:
    """Whether F has the same value at x."""
    return abs(value - s.value) <= ROUNDING * s.eps * s.size


def _seen_lower(s: ExactState, h: Array, F: Array) -> ExactState:
    """With the lowest of the points beside x, if it is lower and in the domain."""
    lowest = int(np.argmin(np.where(np.isnan(F), inf, F)))
    if not s.value - F[lowest] > _SMALL * s.eps * s.size:
        return s._replace(lower_value=inf)
    point = next(islice(along_axes(s, h), lowest, None))
    inside = equal(s.run.domain.project(point), point)
    return s._replace(lower=point, lower_value=float(F[lowest]) if inside else inf)


def after_cut(s: ExactState, F: Array) -> Any:
    """One more plane."""
    if cuts.asks_again(s):
        if isfinite(F[0]) and not _as_before(s, F[0]):
            return _as_if_noisy(s)
        F = F[1:]
    return _next(cuts.told(s, F))


def _without_planes(s: ExactState) -> bool:
    """Whether planes were never tried, and may be."""
    return not len(s.planes) and s.falls[PLANES] > 0.0 and len(s.axes) <= _MOST_KINKED


def _next(s: ExactState) -> Any:
    """The next step, to the minimum of the model, or of the planes."""
    if not len(s.planes):
        return on_the_way(_to_minimum(s))
    s = turns.counted(s)
    if turns.best(s) == PLANES:
        return _to_planes(s)
    return _to_model(s) if s.stage == CUTS else on_the_way(_to_minimum(s))


def _to_planes(s: ExactState) -> Any:
    """On the way to the minimum of the planes, if they promise anything."""
    s = cuts.entered(s)
    for factor in _TRUSTS:  # a small problem may be solved badly, and a short step promise little
        aimed = cuts.aimed(s._replace(trust=factor * s.trust))
        if -aimed.slope * s.unit > _SMALL * s.eps * s.size:
            return turns.hopeful(aimed._replace(stage=CUTS))
    s = turns.without(s, PLANES)
    return _to_model(s) if s.falls[MODEL] > 0.0 else _no_way(s._replace(central=True, stuck=1))


def _to_model(s: ExactState) -> Any:
    """On the way to the minimum of the model; if there is no gradient yet, it is asked first."""
    if cuts.knows_beside(s):
        return on_the_way(_to_minimum(cuts.left(s)))
    return s._replace(stage=SLOPES, s=np.zeros_like(s.x))


def on_the_way(s: ExactState) -> Any:
    """Go, if the model promises anything."""
    promised = _promised(s)
    return s._replace(stage=SEARCH, apart=line.apart(s)) if promised > _SMALL * s.eps * s.size else _no_way(s)


def _promised(s: ExactState) -> float:
    """By how much F would fall, by the model."""
    return -(s.slope + 0.5 * float(s.p @ s.expected)) * s.unit


def after_trial(s: ExactState) -> Any:
    """The next trial, or the next step, or none."""
    if s.eta > 0.0:
        return s
    if not s.value - s.found_value > _SMALL * s.eps * s.size:
        return _no_way(s)
    x = line.on_the_way(s, s.found)
    return cuts.moved(s, x, s.found_value)._replace(
        stage=SLOPES, t=s.t + 1, s=x - s.x, expected=s.found * s.expected, eta=s.found, stuck=0
    )


def _no_way(s: ExactState) -> Any:
    """Nothing is better: try the other, look closer, begin a new model, look from further away; at last, end."""
    if len(s.planes) and turns.best(turns.without(s, MODEL)) == PLANES:
        return _to_planes(turns.without(s, MODEL))
    if not s.central:
        return s._replace(stage=SLOPES, central=True, s=np.zeros_like(s.x))
    if not s.stuck and _promised(s) > _NOTHING * s.eps * s.size:
        if _without_planes(s) and s.eps == s.fine:  # slopes from both sides that are none: x lies on a kink
            return turns.without(turns.begun(cuts.begun_on_kink(s)), MODEL)._replace(stage=CUTS)
        return on_the_way(_to_minimum(_new_model(s)._replace(stuck=1)))
    s = cuts.entered(s)
    if s.value - s.lower_value > _SMALL * s.eps * s.size:  # as on a saddle
        return _from(cuts.moved(s, s.lower, s.lower_value), s.fine)._replace(stuck=0)
    if s.eps == s.fine and s.eps < _COARSE:  # it may be the bottom of a ripple
        rough = _with_curvatures(s, np.full(len(s.x), s.steep))
        return _from(rough._replace(rough_value=s.value), _COARSE)
    if s.eps > s.fine and s.value < s.rough_value:
        return _from(s, s.fine)._replace(stuck=0)
    return s._replace(stage=WITNESS) if witnesses(s) > 1 else _done(s)


def _done(s: ExactState) -> ExactState:
    """Nothing is left to be won."""
    remark = FAILED_BESIDE if s.walled else ""
    return s._replace(stage=DONE, converged=True, run=s.run._replace(remark=remark))


def after_witnesses(s: ExactState, values: Values) -> Any:
    """The end, if all samples are the same."""
    return _done(s) if agree(s, values) else _as_if_noisy(s)


def _from(s: ExactState, eps: float) -> ExactState:
    """Slopes at x, with so many digits, and nothing known of kinks."""
    return s._replace(
        stage=SLOPES, eps=eps, stuck=1, kinks=False, s=np.zeros_like(s.x), planes=s.planes[:0], below=s.below[:0],
        lower_value=inf,
    )  # fmt: skip


def _new_model(s: ExactState) -> ExactState:
    return _with_curvatures(s, s.diagonal)


def _with_curvatures(s: ExactState, diagonal: Array) -> ExactState:
    """A model with these curvatures along the axes, and no others."""
    diagonal = np.maximum(diagonal, _FLATTEST)
    return s._replace(H=np.diag(1.0 / diagonal), diagonal=diagonal, learned=False)


def _as_if_noisy(s: ExactState) -> Any:
    """Begin again at the best point, if what is left of the budget pays for more than the beginning."""
    method = s.run.method.fallback
    assert method is not None
    assert method.algorithm is not None
    fresh = method.algorithm.begin(method, s.run._replace(method=method, x0=s.average))
    if fresh.values.size + pick_calls(fresh.run) > s.run.budget - s.nfev:
        return s._replace(stage=DONE)
    return fresh._replace(exact=False, asked=s.asked, samples=s.samples, nfev=s.nfev)
