"""The portfolio with the least conditional value at risk: the mean loss of the worst 5% of days.

Rockafellar and Uryasev write it as a minimum over weights w and a threshold t of E[t + max(0, loss - t) / 0.05], so one
evaluation prices one portfolio on one day. The weights lie on a simplex, t in an interval. The days are a list here, so
a linear program can find the optimum. Needs: pip install "poem-cma[gallery]"
"""

from functools import partial

import _others as others
import _show as show
import numpy as np
from scipy.optimize import linprog, minimize

import poem_cma as pc

ASSETS, DAYS, WORST = 20, 1000, 0.05
random = np.random.default_rng(95)
market = random.standard_t(4, size=(DAYS, 1)) * random.uniform(0.1, 0.9, size=ASSETS)  # shared by all assets
LOSS = -np.geomspace(0.02, 0.06, ASSETS) * (0.1 + market + random.standard_t(5, size=(DAYS, ASSETS)))
EQUAL = np.r_[np.full(ASSETS, 1.0 / ASSETS), 0.0]  # the same weight for all, and t = 0
START = {"weights": EQUAL[:-1], "t": 0.0}
DOMAIN = {"weights": pc.Simplex(), "t": pc.Box(-1.0, 1.0)}


def price(x: np.ndarray, day: int) -> float:  # F(x; xi)
    return x[-1] + max(0.0, LOSS[day] @ x[:-1] - x[-1]) / WORST


def cvar(x: np.ndarray) -> float:
    """In percent, exactly, over all days."""
    w = np.maximum(x[:ASSETS], 0.0)
    return 100.0 * float(np.sort(LOSS @ (w / w.sum()))[-int(DAYS * WORST) :].mean())


def flat(p: dict) -> np.ndarray:
    return np.r_[p["weights"], p["t"]]


def ours(budget, seed, method="auto"):
    settings = {"domain": DOMAIN, "method": method, "budget": budget, "evaluate": 0, "seed": seed}
    return flat(pc.minimize(lambda p, n: price(flat(p), n), START, sample=lambda rng: rng.integers(DAYS), **settings).x)


def cma_es(budget, seed):
    def weights(z):  # a softmax keeps them on the simplex
        return np.r_[np.exp(z[:-1]) / np.exp(z[:-1]).sum(), 0.1 * z[-1]]

    def values(Z, rng):
        days = rng.integers(DAYS, size=20)  # the same 20 for a generation
        return [np.mean([price(weights(z), day) for day in days]) for z in Z]

    return weights(others.cma_es(values, np.zeros(ASSETS + 1), 0.5, budget // 20, seed))


def slsqp(budget, seed):
    """SciPy's, on the average of 50 days drawn once, gradients by differences."""
    days = np.random.default_rng(seed).integers(DAYS, size=50)
    total = {"type": "eq", "fun": lambda x: x[:-1].sum() - 1.0}
    limits = {"bounds": [(0, 1)] * ASSETS + [(-1, 1)], "constraints": total}
    steps = {"maxiter": budget // (50 * (ASSETS + 7))}  # a gradient and a few points of a line search each
    return minimize(lambda x: np.mean([price(x, n) for n in days]), EQUAL, method="SLSQP", options=steps, **limits).x


def program(days: np.ndarray) -> np.ndarray:
    """The best for these days; it must know the loss of every asset, not only of a portfolio."""
    n = len(days)
    cost = np.r_[np.zeros(ASSETS), 1.0, np.full(n, 1.0 / (WORST * n))]
    beyond, total = np.c_[LOSS[days], -np.ones(n), -np.eye(n)], np.r_[np.ones(ASSETS), np.zeros(n + 1)][None]
    bounds = [(0, None)] * ASSETS + [(None, None)] + [(0, None)] * n
    return linprog(cost, A_ub=beyond, b_ub=np.zeros(n), A_eq=total, b_eq=[1.0], bounds=bounds).x[: ASSETS + 1]


def some_days(budget, seed):  # a call for each asset tells what a day is like
    return program(np.random.default_rng(seed).permutation(DAYS)[: budget // ASSETS])


METHODS = {"auto": ours, "POEM": partial(ours, method="poem")}
METHODS |= {"CMA-ES": cma_es, "SLSQP, 50 days": slsqp, "linear program, some days": some_days}


def main() -> None:
    chosen = show.options(__doc__)
    budget, seeds = (1000, 2) if chosen.quick else (10_000, 5)
    found = {name: [cvar(method(budget, seed)) for seed in range(seeds)] for name, method in METHODS.items()}
    found |= {"linear program, all days": [cvar(program(np.arange(DAYS)))], "equal weights": [cvar(EQUAL)]}
    about = f"Mean loss of the worst 5% of days, {ASSETS} assets, {budget} calls; median and range over {seeds} seeds"
    show.table(chosen, about, ["method", "percent"], [[name, show.spread(v)] for name, v in found.items()])
    figure, (axes,) = show.picture(8, 3.8, columns=1)
    show.strips(axes, found)
    axes.set(xlabel="mean loss of the worst 5% of days, percent (less is better)", title=f"After {budget} calls")
    show.save(chosen, figure)


if __name__ == "__main__":
    main()
