"""Acrobot-v1: two links that hang from one another, with a motor in the joint between them only."""

from __future__ import annotations

from array import array
from math import cos, pi, sin
from typing import Any

import numpy as np

from poem_cma.problems.policies.resets import initial_state

__all__ = ["STEPS", "acrobot"]

STEPS = 500
_QUARTER = pi / 2
_FASTEST_1, _FASTEST_2 = 4 * pi, 9 * pi
_WEIGHT = 1.5 * 9.8  # what pulls at the first joint: both links


def acrobot(x: Any, seed: int) -> float:
    """The number of steps until the tip is one length above the first joint, 500 if that does not come about.

    Parameters
    ----------
    x : array of 18
        Three rows of six weights. Row i gives the score of the torque i - 1: a sum over the cosine and sine of the
        first angle, those of the second and the two velocities, observed in single precision. The torque with the
        highest score is applied, the first of them if they tie.
    seed : int
        The seed of the reset.

    Examples
    --------
    >>> acrobot([0.0] * 18, seed=7)
    500.0
    """
    w = np.asarray(x, dtype=float).tolist()
    a0, a1, a2, a3, a4, a5 = w[:6]
    b0, b1, b2, b3, b4, b5 = w[6:12]
    c0, c1, c2, c3, c4, c5 = w[12:]
    state = array("f", initial_state(seed, -0.1, 0.1, 4))
    p, q, v, r = state  # two angles and two angular velocities
    seen = array("f", [0.0] * 6)
    cos_p = cos(p)
    for step in range(STEPS):
        seen[0], seen[1], seen[2], seen[3], seen[4], seen[5] = cos_p, sin(p), cos(q), sin(q), v, r
        o0, o1, o2, o3, o4, o5 = seen
        low = a0 * o0 + a1 * o1 + a2 * o2 + a3 * o3 + a4 * o4 + a5 * o5
        middle = b0 * o0 + b1 * o1 + b2 * o2 + b3 * o3 + b4 * o4 + b5 * o5
        high = c0 * o0 + c1 * o1 + c2 * o2 + c3 * o3 + c4 * o4 + c5 * o5
        torque = (-1.0 if low >= high else 1.0) if low >= middle else (0.0 if middle >= high else 1.0)
        # The method of Runge and Kutta of order four, over 0.2 seconds.
        v1, r1 = _accelerations(p, q, v, r, torque)
        v_2, r_2 = v + 0.1 * v1, r + 0.1 * r1
        v2, r2 = _accelerations(p + 0.1 * v, q + 0.1 * r, v_2, r_2, torque)
        v_3, r_3 = v + 0.1 * v2, r + 0.1 * r2
        v3, r3 = _accelerations(p + 0.1 * v_2, q + 0.1 * r_2, v_3, r_3, torque)
        v_4, r_4 = v + 0.2 * v3, r + 0.2 * r3
        v4, r4 = _accelerations(p + 0.2 * v_3, q + 0.2 * r_3, v_4, r_4, torque)
        sixth = 0.2 / 6.0
        p += sixth * (v + 2 * v_2 + 2 * v_3 + v_4)
        q += sixth * (r + 2 * r_2 + 2 * r_3 + r_4)
        v += sixth * (v1 + 2 * v2 + 2 * v3 + v4)
        r += sixth * (r1 + 2 * r2 + 2 * r3 + r4)
        p, q = _turned_back(p), _turned_back(q)
        v = -_FASTEST_1 if v < -_FASTEST_1 else _FASTEST_1 if v > _FASTEST_1 else v
        r = -_FASTEST_2 if r < -_FASTEST_2 else _FASTEST_2 if r > _FASTEST_2 else r
        cos_p = cos(p)
        if -cos_p - cos(q + p) > 1.0:
            return float(step)
    return float(STEPS)


def _accelerations(p: float, q: float, v: float, r: float, torque: float) -> tuple[float, float]:
    """Of the two angles p and q, at the velocities v and r: Sutton and Barto's equations of motion."""
    sine, cosine = sin(q), cos(q)
    d1 = 0.25 + (1.25 + cosine) + 1.0 + 1.0
    d2 = 0.25 + 0.5 * cosine + 1.0
    phi2 = 4.9 * cos(p + q - _QUARTER)
    phi1 = -0.5 * r**2 * sine - r * v * sine + _WEIGHT * cos(p - _QUARTER) + phi2
    second = (torque + d2 / d1 * phi1 - 0.5 * v**2 * sine - phi2) / (1.25 - d2**2 / d1)
    return -(d2 * second + phi1) / d1, second


def _turned_back(angle: float) -> float:
    """The same angle between -pi and pi."""
    while angle > pi:
        angle -= 2 * pi
    while angle < -pi:
        angle += 2 * pi
    return angle
