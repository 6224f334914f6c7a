"""Policy search: balance a pole and swing up a pendulum, using only the return of whole episodes.

One evaluation is one episode. `env.reset(seed=xi)` makes the start of an episode a function of xi, so points that are
compared play the same episode, and most of the noise cancels. Needs: pip install "poem-cma[gallery]"
"""

import math
from functools import partial

import _others as others
import _show as show
import gymnasium as gym
import numpy as np

import poem_cma as pc

POLE, PENDULUM = (gym.make(name, disable_env_checker=True) for name in ("CartPole-v1", "Pendulum-v1"))


def cart_pole(w: np.ndarray, seed: int) -> float:
    """The share of 500 steps that were missing when the pole fell: 0 is perfect."""
    observed, _ = POLE.reset(seed=int(seed))
    for step in range(500):
        observed, _, fallen, _, _ = POLE.step(int(w @ observed > 0.0))
        if fallen:
            return 1.0 - step / 500
    return 0.0


def pendulum(w: np.ndarray, seed: int) -> float:
    """The mean cost of a step, with a torque made of eight features of angle and velocity."""
    (c, s, v), _ = PENDULUM.reset(seed=int(seed))
    cost = 0.0
    for _ in range(200):
        v /= 4.0
        features = (s, v, c * s, c * v, c * c * s, c * c * v, s**3, v**3)
        torque = 2.0 * math.tanh(sum(a * b for a, b in zip(w.tolist(), features, strict=True)))
        (c, s, v), reward, *_ = PENDULUM.step((torque,))
        cost -= float(reward)
    return cost / 200


def episode(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31))


def ours(fun, d, budget, seed, method):
    return pc.minimize(fun, np.zeros(d), sample=episode, method=method, budget=budget, evaluate=0, seed=seed).x


def ars(fun, d, budget, seed, directions=4, step=1.0, noise=1.0):
    """Augmented random search (Mania, Guy, Recht 2018), version 1, both signs on one episode."""
    rng, w = np.random.default_rng(seed), np.zeros(d)
    for _ in range(budget // (2 * directions)):
        V = rng.normal(size=(directions, d))
        starts = [episode(rng) for _ in V]
        plus = np.array([fun(w + noise * v, start) for v, start in zip(V, starts, strict=True)])
        minus = np.array([fun(w - noise * v, start) for v, start in zip(V, starts, strict=True)])
        w = w - step / (directions * (np.std([plus, minus]) + 1e-8)) * (plus - minus) @ V
    return w


def cma_es(fun, d, budget, seed):
    def values(W, rng):
        start = episode(rng)  # one for the generation
        return [fun(w, start) for w in W]

    return others.cma_es(values, np.zeros(d), 1.0, budget, seed)


METHODS = {
    "POEM, told the scale 1": partial(ours, method=pc.methods.poem(initial_distance=1.0)),
    "POEM, told nothing": partial(ours, method="poem"),
    "auto, told nothing": partial(ours, method="auto"),
    "ARS, tuned by hand": ars,
    "CMA-ES, told the scale 1": cma_es,
}


def main() -> None:
    chosen = show.options(__doc__)
    seeds, tests, tasks = 5, 30, [("CartPole", cart_pole, 4, 100), ("Pendulum", pendulum, 8, 240)]
    if chosen.quick:
        seeds, tests, tasks = 2, 4, [("CartPole", cart_pole, 4, 24), ("Pendulum", pendulum, 8, 24)]
    rows, columns, (figure, panels) = [[name] for name in METHODS], ["method"], show.picture(10, 3.2)
    for axes, (task, fun, d, episodes) in zip(panels, tasks, strict=True):
        found = {name: [method(fun, d, episodes, seed) for seed in range(seeds)] for name, method in METHODS.items()}
        cost = {name: [np.mean([fun(w, 10**6 + n) for n in range(tests)]) for w in ws] for name, ws in found.items()}
        columns.append(f"{task}, {episodes} episodes")
        for row, values in zip(rows, cost.values(), strict=True):
            row.append(show.spread(values))
        show.strips(axes, cost, names=axes is panels[0])
        axes.set(title=f"{task}, {episodes} episodes", xlabel="cost in new episodes (less is better)")
    show.table(chosen, f"Cost in {tests} new episodes; median and range over {seeds} seeds", columns, rows)
    show.save(chosen, figure)


if __name__ == "__main__":
    main()
