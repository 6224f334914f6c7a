"""Pendulum-v1: a pendulum whose motor is too weak to lift it without swinging, under three kinds of policies."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from math import cos, pi, sin, tanh
from typing import Any

import numpy as np

from poem_cma.problems.policies.resets import initial_state

__all__ = ["HIDDEN", "STEPS", "features", "linear", "network"]

STEPS = 200
HIDDEN = 8


def linear(x: Any, seed: int) -> float:
    """The cost with the torque x[0] cos + x[1] sin + x[2] velocity, moved into [-2, 2].

    Examples
    --------
    >>> round(linear([0.0, 0.0, 0.0], seed=7), 3)
    970.18
    """
    a, b, c = np.asarray(x, dtype=float).tolist()
    return _cost(lambda cosine, sine, turn: a * cosine + b * sine + c * turn, seed)


def features(x: Any, seed: int) -> float:
    """The cost with a torque that is linear in nine features, moved into [-2, 2].

    With c, s and v for cosine, sine and velocity, the features are c, s, v, c s, c v, s v, c c v, s (v / 8)^2 and
    v (v / 8)^2, where 8 is the limit of the velocity. Such a policy can swing the pendulum up and hold it there.

    Examples
    --------
    >>> round(features([0.0, 2.1, 2.0, -11.8, -3.8, -0.2, -0.9, -9.1, -4.5], seed=7), 1)
    123.5
    """
    a, b, c, d, e, f, g, h, i = np.asarray(x, dtype=float).tolist()

    def torque(cosine: float, sine: float, turn: float) -> float:
        square = turn * turn / 64.0
        still: float = a * cosine + b * sine + d * cosine * sine + h * sine * square
        moving: float = turn * (c + e * cosine + f * sine + g * cosine * cosine + i * square)
        return still + moving

    return _cost(torque, seed)


def network(x: Any, seed: int) -> float:
    """The cost with the torque 2 tanh(y), where y is what a network with eight hidden units of tanh puts out.

    Parameters
    ----------
    x : array of 41
        For each hidden unit three weights of cos, sin and velocity, its bias and its weight in the sum y; at last the
        bias of y.
    seed : int
        The seed of the reset.

    Examples
    --------
    >>> round(network([0.0] * 41, seed=7), 3)
    970.18
    """
    *weights, bias = np.asarray(x, dtype=float).tolist()
    units = [tuple(weights[5 * i : 5 * i + 5]) for i in range(HIDDEN)]

    def torque(cosine: float, sine: float, turn: float) -> float:
        y = bias
        for a, b, c, shift, weight in units:
            y += weight * tanh(a * cosine + b * sine + c * turn + shift)
        return 2.0 * tanh(y)

    return _cost(torque, seed)


def _cost(torque: Callable[[float, float, float], float], seed: int) -> float:
    """The sum of squared angles from the top and smaller parts of velocities and torques, over 200 steps.

    Cosine, sine and velocity are observed in single precision.
    """
    angle, turn = initial_state(seed, (-pi, -1.0), (pi, 1.0), 2)
    seen = array("f", (0.0, 0.0, 0.0))
    cost = 0.0
    for _ in range(STEPS):
        sine = sin(angle)
        seen[0], seen[1], seen[2] = cos(angle), sine, turn
        u = torque(*seen)
        u = -2.0 if u < -2.0 else 2.0 if u > 2.0 else u
        cost += ((angle + pi) % (2 * pi) - pi) ** 2 + 0.1 * turn**2 + 0.001 * u**2
        turn += (15.0 * sine + 3.0 * u) * 0.05
        turn = -8.0 if turn < -8.0 else 8.0 if turn > 8.0 else turn
        angle += turn * 0.05
    return cost
