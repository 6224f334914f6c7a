"""evosax: OpenES and SNES, compiled by JAX; the population's values are computed here, outside of it.

The learning rate and the deviation are arguments of the compiled functions, so that one compilation serves all settings
of a shape. JAX works in single precision by default, and so do they.
"""

from __future__ import annotations

import os
import warnings
from functools import cache
from math import log, sqrt
from typing import Any

import numpy as np

from poem_cma.experiments.bench.peers.projected import Projected
from poem_cma.experiments.bench.player import Axis, Player
from poem_cma.experiments.bench.task import Task

__all__ = ["PLAYERS", "population_size"]


def population_size(d: int) -> int:
    """As CMA-ES has it, made even for antithetic pairs.

    Examples
    --------
    >>> population_size(100)
    18
    """
    return 2 * round(0.5 * (4.0 + 3.0 * log(d)))


@cache
def _compiled(kind: str, d: int, n: int) -> tuple[Any, Any, Any]:
    """The functions init(key, x0, std), ask(key, state, rate, std) and tell(key, X, F, state, rate, std)."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    import jax
    import jax.numpy as jnp
    import optax
    from evosax.algorithms import SNES, Open_ES

    def strategy(rate: Any, std: Any) -> Any:
        if kind == "snes":
            return SNES(n, jnp.zeros(d), optimizer=optax.sgd(rate))
        return Open_ES(n, jnp.zeros(d), optimizer=optax.sgd(rate), std_schedule=lambda _: std)

    def params(es: Any, std: Any) -> Any:
        return es.default_params.replace(std_init=std) if kind == "snes" else es.default_params

    def init(key: Any, mean: Any, std: Any) -> Any:
        es = strategy(1.0, std)
        return es._init(key, params(es, std)).replace(mean=mean)

    def ask(key: Any, state: Any, rate: Any, std: Any) -> Any:
        es = strategy(rate, std)
        return es._ask(key, state, params(es, std))[0]

    def tell(key: Any, X: Any, F: Any, state: Any, rate: Any, std: Any) -> Any:
        es = strategy(rate, std)
        p = params(es, std)
        shaped = es.fitness_shaping_fn(X, F, state, p)
        state = es._tell(key, X, es._postprocess_fitness(F, shaped), state, p)
        return state.replace(generation_counter=state.generation_counter + 1)

    return jax.jit(init), jax.jit(ask), jax.jit(tell)


def play(
    task: Task, kind: str, *, rate: float | None = None, pull: float = 1.0, std: float | None = None,
    reach: float = 1.0, decay: str = "constant", size: int = 1, shared: bool = False, batch: int = 1,
    penalty: float = 0.0,
) -> None:  # fmt: skip
    """Ask and tell until the calls are spent; the mean is recommended.

    `reach` / sqrt(d) is the deviation at the start; `size` multiplies the population. OpenES takes its rate as a
    multiple, `pull`, of the square of the deviation, and may let it decay in a straight line.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        d, n = task.d, size * population_size(task.d)
        std = std or reach / sqrt(d)
        rate = rate or (pull * std**2 if kind == "openes" else pull)
        init, ask, tell = _compiled(kind, d, n)
        import jax

        value = Projected(task, shared=shared, batch=batch, penalty=penalty)
        key = jax.random.PRNGKey(task.seed)
        state = init(key, np.asarray(task.x0, dtype=np.float32), std)
        task.recommend(lambda: np.asarray(state.mean, dtype=float))
        rounds = task.budget // (n * batch)
        keys = np.asarray(jax.random.split(key, 2 * max(rounds, 1)))  # a row of an array of JAX's takes it a while
        for t in range(rounds):
            now = rate * (1.0 - t / rounds if decay == "linear" else 1.0)
            X = ask(keys[2 * t], state, now, std)
            F = value(np.asarray(X))
            state = tell(keys[2 * t + 1], X, F.astype(np.float32), state, now, std)


def _openes(task: Task, **setting: Any) -> None:
    play(task, "openes", **setting)


def _snes(task: Task, **setting: Any) -> None:
    play(task, "snes", **setting)


_START = {"reach": 0.3, "pull": 1.0, "decay": "linear", "shared": True, "batch": 1, "penalty": 0.0}
_COMMON: tuple[Axis, ...] = (
    Axis("reach", (1 / 3, 3.0), factors=True), Axis("batch", (10,)), Axis("shared", (False,)),
    Axis("penalty", (1.0,), constrained=True),
)  # fmt: skip
_NEEDS = ("evosax", "jax")

PLAYERS = [
    Player(
        "evosax-openes", "evosax OpenES", _openes, {"std": 1.0, "rate": 1e-3}, _START,
        (Axis("reach", (0.01, 0.1, 1.0)), Axis("pull", (0.3, 3.0)), *_COMMON[1:], Axis("reach", (3.0,), factors=True)),
        packages=_NEEDS, pace=60e-6,
    ),
    Player(
        "evosax-snes", "evosax SNES", _snes, {"std": 1.0}, {**_START, "reach": 1.0, "batch": 10, "decay": "constant"},
        (Axis("reach", (0.1, 1.0, 10.0)), _COMMON[0], Axis("batch", (3, 30)), *_COMMON[2:]),
        packages=_NEEDS, pace=60e-6,
    ),
]  # fmt: skip
