"""CartPole-v1: a pole on a cart that is pushed to the left or to the right, 50 times a second."""

from __future__ import annotations

from math import cos, sin
from typing import Any

import numpy as np

from poem_cma.problems.policies.resets import initial_state

__all__ = ["STEPS", "cart_pole"]

STEPS = 500
_ANGLE = 12 * 2 * np.pi / 360  # the episode ends beyond this angle
_PLACE = 2.4  # and beyond this distance from the middle
_CART_AND_POLE = 0.1 + 1.0
_POLE = 0.1 * 0.5  # mass times half the length
_SPLIT = 2.0**29 + 1.0  # x (2^29 + 1) has what rounds a double x to the 24 bits of a single one


def cart_pole(x: Any, seed: int) -> float:
    """Minus the number of steps that the pole stays up, at most 500.

    Parameters
    ----------
    x : array of 4
        Weights of position, velocity, angle and angular velocity, which are observed in single precision. The push is
        to the right if their weighted sum is positive, otherwise to the left.
    seed : int
        The seed of the reset.

    Examples
    --------
    >>> cart_pole([0.0, 0.0, 1.0, 1.0], seed=7)
    -500.0
    """
    a, b, c, d = np.asarray(x, dtype=float).tolist()
    place, speed, angle, turn = initial_state(seed, -0.05, 0.05, 4)
    for step in range(1, STEPS + 1):
        p, q, r, s = _SPLIT * place, _SPLIT * speed, _SPLIT * angle, _SPLIT * turn
        p, q, r, s = p - (p - place), q - (q - speed), r - (r - angle), s - (s - turn)
        force = 10.0 if a * p + b * q + c * r + d * s > 0.0 else -10.0
        sine, cosine = sin(angle), cos(angle)
        push = (force + _POLE * (turn * turn) * sine) / _CART_AND_POLE
        bend = (9.8 * sine - cosine * push) / (0.5 * (4.0 / 3.0 - 0.1 * (cosine * cosine) / _CART_AND_POLE))
        place += 0.02 * speed
        speed += 0.02 * (push - _POLE * bend * cosine / _CART_AND_POLE)
        angle += 0.02 * turn
        turn += 0.02 * bend
        if not (-_PLACE <= place <= _PLACE and -_ANGLE <= angle <= _ANGLE):
            return -float(step)
    return -float(STEPS)
