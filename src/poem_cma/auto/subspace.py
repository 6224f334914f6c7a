"""The few directions in which gradients live: when they are used, and when they are left.

They come from full walks. Later gradients must lie there, too, all but 1e-5 of their energy; where one or two of them
are known, slopes along random directions tell that at no cost. Once in use, slopes beside them are asked now and then,
and end it where the directions are not all there are.
"""

from __future__ import annotations

import math

import numpy as np

from poem_cma._types import Array
from poem_cma.auto.directions import BESIDE, SELDOM, directions_a_step
from poem_cma.auto.state import START, STEP, AutoState, has

__all__ = [
    "LEFT", "MOST_SUBSPACE", "WORTH",
    "agreement", "extended", "in_subspace_calls", "in_time", "still_inside", "watching",
]  # fmt: skip

#: More directions are not kept.
MOST_SUBSPACE = 28

#: A step in the subspace must be so many times cheaper than a full walk.
WORTH = 3.0

#: In place of the number that agree: it was left, and gradients are no longer believed to lie in one.
LEFT = -2

_FAR_MORE = 3.0  # times what steps so far have told, by which those to come in a subspace must be worth it
_ALL = 1.0 - 1e-5  # of the energy: steep directions may hold nearly all of it, and the others what is left to gain
_AGREED, _DISAGREED = 4, -1  # steps along random directions that confirm a subspace, and one that does not
_NONE = 4.0  # times as much noise as is allowed at first
_AS_MANY = 32  # calls for what one gradient tells, at most


def in_subspace_calls(k: float) -> float:
    """The calls of a step in a subspace of k directions, on the mean: at the base, along these, and rarely beside."""
    return 1.0 + k + BESIDE / SELDOM


def in_time(s: AutoState, k: float, left: float) -> bool:
    """Whether a subspace of k directions comes early enough: its steps soon make earlier ones count for nothing.

    In units of a gradient whose only noise is that of its sample, a step along q random directions tells
    1 / (1 + (k + 1) / q), and one in the subspace tells 1.
    """
    q = directions_a_step(s.run)
    told = s.t * q / (q + k + 1.0)
    return left / in_subspace_calls(k) > _FAR_MORE * told


def extended(s: AutoState, g: Array) -> AutoState:
    """Add a gradient to the span of the earlier ones; the share of it that lies there is an honest measure of it."""
    u = g / np.sqrt(s.metric)
    length = math.sqrt(u @ u)
    if length == 0.0 or len(s.subspace) >= MOST_SUBSPACE:
        return s
    u = u / length
    rest = u - (s.subspace @ u) @ s.subspace
    rest = rest - (s.subspace @ rest) @ s.subspace
    unseen = float(rest @ rest)
    # At x_0 gradients may agree only because they share their mean: what counts is whether later ones lie there, too.
    s = _shared(s, 1.0 - unseen) if len(s.subspace) and s.stage != START else s
    if unseen > 1e-6 and not s.use_subspace:
        agreed = LEFT if s.agreed == LEFT else 0
        s = s._replace(subspace=np.concatenate((s.subspace, rest[None] / math.sqrt(unseen))), agreed=agreed)
    return s


def _shared(s: AutoState, share: float) -> AutoState:
    """Whether the subspace is to be used, now that one more gradient has this share of its energy there."""
    shares = np.append(s.shares, share)[-2:]
    k, use = len(s.subspace), False
    if len(shares) == 2 and s.agreed != LEFT and has(s.run, "subspace"):
        # once in use, it is worth it
        worth = s.use_subspace or (WORTH * in_subspace_calls(k) < len(s.x) and in_time(s, k, s.run.budget - s.nfev))
        e = float(shares.min())
        use = worth and e > _ALL and _in_subspace_noise(s, e) < _AS_MANY
    if use and not s.use_subspace:
        s = s._replace(inside=0.0, outside=0.0)
    return s._replace(shares=shares, use_subspace=use)


def _in_subspace_noise(s: AutoState, e: float) -> float:
    """The calls of steps in the subspace that tell as much as one gradient, with the share e of its energy there."""
    k, d = len(s.subspace), len(s.x)
    return in_subspace_calls(k) * (e + SELDOM * (d - k) / BESIDE * (1.0 - e))


def still_inside(s: AutoState, slopes: Array) -> AutoState:
    """Leave the subspace at once where slopes beside it, seen now and then, say that it is none."""
    k = len(s.subspace)
    m = len(slopes) - k
    if not m:
        return s
    squares = np.square(slopes)
    if not math.isfinite(squares.sum()):
        return s  # a call has failed
    outside = s.outside + (len(s.order) - k) / m * float(squares[:m].sum())
    inside = s.inside + float(squares[m:].sum())
    s = s._replace(inside=inside, outside=outside)
    if outside > 0.0 and _in_subspace_noise(s, inside / (inside + outside)) > _NONE * _AS_MANY:
        return s._replace(use_subspace=False, shares=s.shares[:0], agreed=LEFT)
    return s


def watching(s: AutoState) -> bool:
    """Whether steps along random directions can tell if gradients lie in the directions known: there must be fewer."""
    return s.stage == STEP and 0 < len(s.subspace) <= directions_a_step(s.run) - 2 and has(s.run, "subspace")


def agreement(s: AutoState, directions: Array, slopes: Array) -> AutoState:
    """Slopes along random directions, of a gradient that lies in the subspace, follow from few numbers."""
    B = directions @ s.subspace.T
    q, k = B.shape
    b = np.array(slopes)
    energy = float(b @ b)
    if q <= k or not 0.0 < energy < math.inf:
        return s
    rest = b - B @ np.linalg.lstsq(B, b, rcond=None)[0]
    share = 1.0 - float(rest @ rest) / energy * q / (q - k)
    agreed = s.agreed + 1 if share > _ALL else _DISAGREED
    if agreed < _AGREED:
        return s._replace(agreed=agreed)
    s = _shared(s, share)
    return s._replace(agreed=agreed if s.use_subspace or len(s.shares) < 2 else _DISAGREED)  # else it is not worth it
