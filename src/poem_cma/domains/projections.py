"""The nearest point of a set, set by set: formulas on 1-D arrays, nothing checked.

"Nearest" minimises sum_i w_i (y_i - x_i)^2; no weight means w = 1. A weight comes with a largest entry of 1,
which changes no minimiser. Only differences and ratios of the input are formed, so that coordinates of 1e200
or 1e-200 neither overflow nor wash the answer out.
"""

from __future__ import annotations

import math

import numpy as np

from poem_cma._types import Array
from poem_cma.run import arithmetic
from poem_cma.run.arithmetic import LONG

__all__ = ["ball", "balls", "box", "l1_ball", "length", "simplex"]

_ROUNDING = 4 * float(np.finfo(np.float64).eps)
_MAX_NEWTON = 1000  # about 5 steps where weights are of similar size, up to a few for each decade between them


def length(h: Array) -> float:
    """Euclidean norm, without overflow or underflow."""
    square = _square(h)
    if 1e-280 < square < 1e300:
        return math.sqrt(square)
    largest = float(np.abs(h).max(initial=0.0))
    if largest == 0.0 or not math.isfinite(largest):
        return largest
    h = h / largest
    return largest * math.sqrt(float(np.vdot(h, h)))


def _square(h: Array) -> float:
    # Of numpy's inner products, vdot is the one that stays silent when it overflows.
    return float(np.vdot(h, h)) if h.size <= LONG else arithmetic.square(h)


def ball(x: Array, radius: float, center: float | Array, weight: Array | None = None) -> Array:
    """Nearest point of {|y - center| <= radius}; `x` itself where it is inside."""
    centred = type(center) is float and center == 0.0
    h = x if centred else x - center
    square = float(np.vdot(h, h)) if h.size <= LONG else arithmetic.square(h)
    if 1e-280 < square <= radius * radius < 1e300:
        return x  # the usual case, on a short way
    distance = math.sqrt(square) if 1e-280 < square < 1e300 else length(h)
    if distance <= radius:
        return x
    h = h / distance
    if weight is not None:
        h = _weighted_direction(h, radius / distance, weight)
    if radius != 1.0:
        h *= radius  # it is ours
    return h if centred else center + h


def balls(X: Array, radius: float, center: float | Array) -> Array:
    """`ball` for each row, with the same bits."""
    centred = type(center) is float and center == 0.0
    H = X if centred else X - center
    squares = arithmetic.square(H)
    inside = squares <= radius * radius
    if np.count_nonzero(inside) == len(X) and radius * radius > 1e-280:
        return X
    if not (radius * radius > 1e-280 and np.count_nonzero(squares < 1e300) == len(X)):
        return np.array([ball(x, radius, center) for x in X])
    distances = np.sqrt(squares)
    inside |= distances <= radius
    if not centred:
        moved: Array = np.where(inside, X, center + radius * (H / distances))
        return moved
    Y: Array = H / np.where(inside, 1.0, distances)  # rows inside are divided and multiplied by one
    if radius != 1.0:
        Y *= np.where(inside, 1.0, radius)
    return Y


def _weighted_direction(h: Array, rho: float, weight: Array) -> Array:
    """Direction of y - center, for the unit direction `h` of x - center and rho = radius / |x - center| < 1.

    With q = ρ λ, stationarity w (y - x) + λ (y - center) = 0 becomes y - center = radius u(q) where
    u(q) = w h / (ρ w + q), and |u(q)| = 1 fixes q. 1/|u| increases and is concave, so Newton on it climbs to
    the root from any point below and needs no bracket. (1 - ρ) min w is below: |u| >= min w / (ρ min w + q).
    """
    q = (1.0 - rho) * float(weight.min())
    weighted, reach = weight * h, rho * weight
    for _ in range(_MAX_NEWTON):
        pull = reach + q
        u = weighted / pull
        norm = length(u)
        if not norm > 1.0 + _ROUNDING:  # so written, NaN ends it too
            break
        u_hat = u / norm
        q += (norm - 1.0) / float(np.vdot(u_hat, u_hat / pull))  # d|u|⁻¹/dq = ⟨û, û / pull⟩ / |u|
    return u / norm


def box(x: Array, lower: float | Array, upper: float | Array) -> Array:
    """Nearest point of {lower <= y <= upper}, which no weight moves."""
    y: Array = np.maximum(x, lower, dtype=x.dtype)  # np.clip takes twice as long on short arrays
    np.minimum(y, upper, out=y)
    return y


def simplex(x: Array, total: float, weight: Array | None = None) -> Array:
    """Nearest point of {y >= 0, sum y = total}.

    The solution is y_i = max(0, t_i - τ) / w_i with t = w x. As the level τ falls from max t, coordinate i
    appears when it passes t_i, and `poured[k]` is the sum of y when it reaches the k-th largest t. Stop at
    the last k that holds less than `total` and spread the rest over the coordinates present. Only differences
    of t occur and every term of the sums is positive, hence no cancellation.
    """
    t = x if weight is None else weight * x
    order = np.argsort(t)[::-1]
    falling = t[order]
    width = np.arange(1.0, t.size + 1.0) if weight is None else np.cumsum(1.0 / weight[order])
    poured = np.zeros(t.size)
    np.cumsum(width[:-1] * (falling[:-1] - falling[1:]), out=poured[1:])
    k = max(int(poured.searchsorted(total)), 1) - 1
    present = order[: k + 1]
    above = (falling[: k + 1] - falling[k]) + (total - poured[k]) / width[k]
    y: Array = np.zeros(t.size)
    y[present] = above if weight is None else above / weight[present]
    mass = float(y.sum())
    return y * (total / mass) if mass > 0.0 else y  # rounding alone makes mass differ from total


def l1_ball(x: Array, radius: float, weight: Array | None = None) -> Array:
    """Nearest point of {sum |y| <= radius}; `x` itself where it is inside."""
    size = np.abs(x)
    if float(size.sum()) <= radius:
        return x
    return np.copysign(simplex(size, radius, weight), x)
