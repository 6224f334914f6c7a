"""Searches for a policy of Gymnasium's classic control: one evaluation is one episode, xi the seed of its reset.

The environments are worked out anew from their equations of motion, with the roundings, limits and rewards of
Gymnasium 1.x, whose returns they repeat. Gymnasium itself is not needed. F(x; xi) is minus the return; actions are of
double precision. A policy's return is the mean over resets, of which the judge has 200 of its own.

>>> from poem_cma.problems.policies import BLACK_BOXES
>>> pole = BLACK_BOXES["cartpole"]()
>>> pole, pole.fun([0.0, 0.0, 1.0, 1.0], 7)
(BlackBox('cartpole', d=4, shared=True), -500.0)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from poem_cma.problems.black_box import BlackBox, mean_over
from poem_cma.problems.policies import pendulum
from poem_cma.problems.policies.acrobot import acrobot
from poem_cma.problems.policies.cart_pole import cart_pole
from poem_cma.problems.policies.mountain_car import mountain_car
from poem_cma.problems.policies.resets import judged_seed, reset_seed

__all__ = ["BLACK_BOXES"]

_JUDGED = 200


def _build(name: str, environment: str, fun: Callable[[Any, Any], float], x0: Any, shared: bool = True) -> BlackBox:
    return BlackBox(
        name=name,
        suite="policies",
        source=f"{environment} of Gymnasium's classic control: minus the return of an episode",
        x0=np.array(x0, dtype=float),
        domain=None,
        fun=fun,
        sample=reset_seed,
        judge=mean_over(fun, judged_seed, _JUDGED),
        budgets=(300, 1000),
        shared=shared,
    )


def _small_weights() -> Any:
    """The network starts from normal weights of size 0.1, always the same: with none, no weight would matter alone."""
    return 0.1 * np.random.default_rng(41).standard_normal(5 * pendulum.HIDDEN + 1)


_PROBLEMS: dict[str, tuple[str, Callable[[Any, Any], float], Any]] = {
    "cartpole": ("CartPole-v1", cart_pole, np.zeros(4)),
    "mountain-car": ("MountainCarContinuous-v0", mountain_car, np.zeros(3)),
    "pendulum-linear": ("Pendulum-v1", pendulum.linear, np.zeros(3)),
    "pendulum-features": ("Pendulum-v1", pendulum.features, np.zeros(9)),
    "pendulum-network": ("Pendulum-v1", pendulum.network, _small_weights()),
    "acrobot": ("Acrobot-v1", acrobot, np.zeros(18)),
}

#: Names that end in "-own" are of problems whose reset seeds are hidden from the optimiser.
BLACK_BOXES: dict[str, Callable[[], BlackBox]] = {
    **{name: partial(_build, name, *parts) for name, parts in _PROBLEMS.items()},
    **{
        f"{name}-own": partial(_build, f"{name}-own", *_PROBLEMS[name], shared=False)
        for name in ("cartpole", "pendulum-features")
    },
}
