"""The scale R and the metric D of `auto`."""

from __future__ import annotations

from math import sqrt

import numpy as np

from poem_cma._types import Array
from poem_cma.auto.choose import WALK
from poem_cma.auto.state import AutoState, has

__all__ = ["choose_radius", "rescaled"]

_EVERY = 1.15  # growth of the gradients' weight between two looks at the scale
_MOST_GROWTH = 4.0


def choose_radius(means: Array, tiny: float) -> float | None:
    """From the mean changes of F at x_0, tiny, 10 tiny, 100 tiny, ...: the least radius with 90% of the decrease."""
    best = float(means.min())
    if not best < 0.0:
        return None
    return float(tiny * 10.0 ** (int((means <= 0.9 * best).argmax()) - 1))


def rescaled(s: AutoState) -> AutoState:
    """R becomes the distance of the average from x_0, where the slopes along the way agree; D follows the slopes.

    The sum of <g, x - x_0> since the last look is negative where going further out would have paid, and positive where
    less far would have. Without asking it, noise alone would drive the scale.
    """
    away = s.averages[2] - s.run.x0
    r = min(sqrt(float((s.metric * away * away).sum())), _MOST_GROWTH * s.R)
    pays = (r > s.R and s.radial < 0.0) or (0.0 < r < s.R and s.radial > 0.0)
    R = r if pays and has(s.run, "rescaling") else s.R
    rate = (s.active[s.order] + 0.5) / (s.tested[s.order] + 1.0)
    order = s.order[np.argsort(-rate, kind="stable")]
    return s._replace(R=R, radial=0.0, rescale_at=_EVERY * s.weight, order=order, metric=_metric(s))


def _metric(s: AutoState) -> Array:
    """D, the root of the mean squared slope of each axis, once every axis has been seen often enough."""
    often = s.active_trials >= (3 if s.choice == WALK else 12)
    tested = s.tested[s.order]
    if (
        not has(s.run, "metric")
        or not often
        or s.use_subspace
        or tested.min() == 0.0
        or not s.run.domain.weighted
        or len(s.order) < len(s.x)
    ):
        return s.metric
    m = s.squares / s.tested
    D = np.sqrt(m + m.mean() * (1e-4 + 2.0 / float(tested.mean())))
    metric: Array = D / D.mean()
    return metric
