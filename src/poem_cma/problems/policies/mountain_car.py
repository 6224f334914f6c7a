"""MountainCarContinuous-v0: a car between two hills, with an engine too weak for the higher one."""

from __future__ import annotations

from array import array
from math import cos
from typing import Any

import numpy as np

from poem_cma.problems.policies.resets import initial_state

__all__ = ["STEPS", "mountain_car"]

STEPS = 999
_WALL = -1.2
_GOAL = 0.45
_FASTEST = 0.07
_GOAL_SINGLE, _FASTEST_SINGLE = float(np.float32(_GOAL)), float(np.float32(_FASTEST))


def mountain_car(x: Any, seed: int) -> float:
    """A tenth of the sum of squared forces, less 100 if the car arrives within 999 steps.

    Parameters
    ----------
    x : array of 3
        The force is x[0] position + x[1] velocity + x[2], moved into [-1, 1].
    seed : int
        The seed of the reset.

    Notes
    -----
    The state is of double precision at first and of single precision after every step. The sum of position and velocity
    is worked out in double precision, except where the velocity is at its limit.

    Examples
    --------
    >>> round(mountain_car([0.0, 30.0, 0.0], seed=7), 3)
    -94.363
    """
    a, b, c = np.asarray(x, dtype=float).tolist()
    place, speed = initial_state(seed, -0.6, -0.4, 1)[0], 0.0
    single = array("f", [place])  # rounds what is put into it
    seen, tripled = single[0], 3 * place
    cost = 0.0
    for _ in range(STEPS):
        force = a * seen + b * speed + c
        force = -1.0 if force < -1.0 else 1.0 if force > 1.0 else force
        paid = 0.1 * force**2
        speed += force * 0.0015 - 0.0025 * cos(tripled)
        goal = _GOAL
        if -_FASTEST <= speed <= _FASTEST:
            place += speed
        else:
            speed = _FASTEST_SINGLE if speed > 0.0 else -_FASTEST_SINGLE
            single[0] = place + speed
            place, goal = single[0], _GOAL_SINGLE
        if place <= _WALL:
            place, speed = _WALL, max(speed, 0.0)
        if place >= goal and speed >= 0.0:
            return cost + (paid - 100.0)
        cost += paid
        single[0] = place
        place = seen = single[0]
        single[0] = speed
        speed = single[0]
        single[0] = 3 * place
        tripled = single[0]
    return cost
