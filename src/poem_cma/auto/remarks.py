"""What the message of a result says where `auto` could not work as usual, and what to try."""

from __future__ import annotations

__all__ = [
    "FAILED_BESIDE",
    "NOTHING_BETTER",
    "NO_CHANGE",
    "NO_END",
    "NO_PROGRESS",
    "OWN_NOISE",
    "STAIRS",
    "STEPS",
    "STILL_GROWING",
]

OWN_NOISE = (
    "two calls at the same point, on the same sample, gave different values, so auto went on with pairs of points "
    "far apart: if the noise can be fixed by a seed, draw it in sample= and pass it on"
)
STEPS = (
    "values got worse where slopes promised a decrease, as where F has steps, so auto went on with pairs of points far "
    "apart"
)
STAIRS = (
    "F changed over long distances from x0 and not at all over short ones, as where it has steps (whole numbers, for "
    "example), so auto went on with pairs of points far apart"
)
NO_PROGRESS = (
    "auto found no scale at which F falls and handed over to POEM: the variables may be of different size (scale=), "
    "or the budget be too small"
)
NO_CHANGE = (
    "F did not change at any distance from x0 at which auto has looked, and POEM took over: if it depends on x at all, "
    "give the typical size of each variable (scale=)"
)
NOTHING_BETTER = (
    "no point was found that is better than x0: give a larger budget, the typical size of each variable (scale=), or "
    "noise that the points of a probe share (sample=)"
)
FAILED_BESIDE = (
    "but calls on the way to lower values failed, and there may be some beside: say where F can be asked (domain=)"
)
STILL_GROWING = (
    "the run was still moving further away from x0, faster and faster, when the budget ended: a larger budget, or the "
    "typical size of each variable (scale=), should help"
)
NO_END = (
    "the run was still moving further away from x0 when it was very far out: F may have no minimum, or the wrong sign; "
    "else say where to look (domain=)"
)
