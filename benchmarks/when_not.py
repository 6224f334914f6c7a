"""When to use something else: our methods, SciPy's and CMA-ES on functions with and without noise, and with steps.

The same calls for everyone, finite differences counted. Prints a Markdown table of the gap that is left,
(f(x) - f*) / (f(x0) - f*) with the exact f, the median over seeds; 1e-16 stands for everything below.

    python benchmarks/when_not.py [--calls 3000] [--seeds 3]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cma
import numpy as np
from scipy import optimize

import poem_cma as pc

OURS = ("auto", "poem")
METHODS = (*OURS, "L-BFGS-B", "COBYQA", "Nelder-Mead", "CMA-ES")


@dataclass(frozen=True)
class Problem:
    """A function of x and xi, its exact mean, and where to start."""

    name: str
    fun: Callable[[np.ndarray, Any], float]
    exact: Callable[[np.ndarray], float]
    least: float
    x0: np.ndarray
    draw: Callable[[np.random.Generator], Any] | None = None  # xi that can be shared; None: no noise
    own: Callable[[np.random.Generator], float] | None = None  # noise of every call's own


class _OutOfCallsError(Exception):
    pass


def rosenbrock(d: int = 10) -> Problem:
    """Smooth, curved, without noise."""
    x0 = np.zeros(d)
    return Problem(f"Rosenbrock, d = {d}", lambda x, _: optimize.rosen(x), optimize.rosen, 0.0, x0)


def quadratic(d: int = 20, condition: float = 1e3, noise: str = "") -> Problem:
    """A quadratic with axes turned at random; noise shared by the points of a probe, of each call's own, or none."""
    rng = np.random.default_rng(1)
    Q, _ = np.linalg.qr(rng.normal(size=(d, d)))
    H = Q @ np.diag(np.geomspace(1.0, 1.0 / condition, d)) @ Q.T
    x_star = rng.normal(size=d)

    def exact(x: np.ndarray) -> float:
        return float(0.5 * (x - x_star) @ H @ (x - x_star))

    size = exact(np.zeros(d))
    if noise == "shared":  # a random slope: F(x; xi) = f(x) + <xi, x>
        return Problem(
            "the same, noise shared by xi", lambda x, xi: exact(x) + xi @ x, exact, 0.0, np.zeros(d),
            draw=lambda rng: 0.1 * size * rng.normal(size=d) / np.sqrt(d),
        )  # fmt: skip
    if noise == "own":
        return Problem(
            "the same, 1% noise of each call's own", lambda x, _: exact(x), exact, 0.0, np.zeros(d),
            own=lambda rng: 0.01 * size * rng.normal(),
        )  # fmt: skip
    return Problem(f"quadratic, condition {condition:g}, d = {d}", lambda x, _: exact(x), exact, 0.0, np.zeros(d))


def units(d: int = 10) -> Problem:
    """A quadratic whose variables are measured in units from a thousandth to a thousand."""
    p, size = quadratic(d, 10.0), np.geomspace(1e-3, 1e3, d)
    return Problem(f"quadratic, units from 0.001 to 1000, d = {d}", lambda x, _: p.exact(x / size),
                   lambda x: p.exact(x / size), 0.0, np.zeros(d))  # fmt: skip


def deviations(d: int = 10, n: int = 100) -> Problem:
    """The mean absolute deviation of a linear model from all examples: kinks, no noise. The least value is the LP's."""
    rng = np.random.default_rng(5)
    A = rng.normal(size=(n, d))
    y = A @ rng.normal(size=d) + rng.standard_t(3, size=n)
    cost = np.concatenate([np.zeros(d), np.full(n, 1.0 / n)])
    bounds = [(None, None)] * d + [(0, None)] * n
    rows = np.vstack([np.hstack([A, -np.eye(n)]), np.hstack([-A, -np.eye(n)])])
    lp = optimize.linprog(cost, A_ub=rows, b_ub=np.concatenate([y, -y]), bounds=bounds)

    def exact(x: np.ndarray) -> float:
        return float(np.abs(A @ x - y).mean())

    return Problem(
        f"mean absolute deviation, d = {d}", lambda x, _: exact(x), exact, float(lp.fun), np.zeros(d)
    )  # fmt: skip


def hinge(d: int = 20, n: int = 500) -> Problem:
    """A classifier's loss on one random example a call, in all of R^d: kinks and noise. The least value is the LP's."""
    rng = np.random.default_rng(2)
    A = rng.normal(size=(n, d))
    y = np.sign(A @ rng.normal(size=d) + 3.0 * rng.normal(size=n))
    Z = y[:, None] * A
    slack = np.concatenate([np.zeros(2 * d), np.full(n, 1.0 / n)])
    lp = optimize.linprog(slack, A_ub=-np.hstack([Z, -Z, np.eye(n)]), b_ub=-np.ones(n), bounds=(0, None))
    return Problem(
        f"hinge loss, one example a call, d = {d}", lambda x, i: max(0.0, 1.0 - float(Z[i] @ x)),
        lambda x: float(np.maximum(0.0, 1.0 - Z @ x).mean()), float(lp.fun), np.zeros(d),
        draw=lambda rng: int(rng.integers(n)),
    )  # fmt: skip


def whole_numbers(d: int = 10) -> Problem:
    """The squared distance from a point of whole numbers, of x rounded: flat between steps, without noise."""
    goal = np.random.default_rng(3).integers(-10, 11, size=d)

    def exact(x: np.ndarray) -> float:
        return float(((np.round(x) - goal) ** 2).sum())

    return Problem(f"distance in whole numbers, d = {d}", lambda x, _: exact(x), exact, 0.0, np.zeros(d))


def errors(d: int = 10, n: int = 2000, batch: int = 0) -> Problem:
    """How many examples a linear classifier gets wrong, of all or of a few at random; none could be."""
    rng = np.random.default_rng(4)
    A, w = rng.normal(size=(n, d)), np.ones(d)
    y = A @ w > 0.0

    def wrong(x: np.ndarray, examples: Any) -> float:
        chosen = slice(None) if examples is None else examples
        return float(np.mean((A[chosen] @ x > 0.0) != y[chosen]))

    x0 = w + 1.5 * rng.normal(size=d)
    if not batch:
        return Problem(f"share of {n} examples that are wrong, d = {d}", wrong, lambda x: wrong(x, None), 0.0, x0)
    return Problem(
        f"the same, {batch} examples a call", wrong, lambda x: wrong(x, None), 0.0, x0,
        draw=lambda rng: rng.integers(n, size=batch),
    )  # fmt: skip


def gap(p: Problem, method: str, calls: int, seed: int) -> float:
    """What is left of the first gap after so many calls."""
    if method == "CMA-ES":
        x = cma_es(p, calls, seed)
    else:
        x = ours(p, method, calls, seed) if method in OURS else scipys(p, method, calls, seed)
    return max((p.exact(x) - p.least) / (p.exact(p.x0) - p.least), 1e-16)


def median_gap(p: Problem, method: str, calls: int, seeds: int) -> float:
    """Without noise SciPy's methods do the same whatever the seed."""
    always_the_same = method not in (*OURS, "CMA-ES") and p.draw is None and p.own is None
    return float(np.median([gap(p, method, calls, seed) for seed in range(1 if always_the_same else seeds)]))


def ours(p: Problem, method: str, calls: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if p.draw is not None:
        return pc.minimize(p.fun, p.x0, sample=p.draw, method=method, budget=calls, seed=seed).x
    return pc.minimize(
        lambda x: p.fun(x, None) + (p.own(rng) if p.own else 0.0), p.x0, method=method, budget=calls, seed=seed
    ).x


def scipys(p: Problem, method: str, calls: int, seed: int) -> np.ndarray:
    """SciPy's methods see a new xi at every call, and the best value seen is their answer, as without noise."""
    rng = np.random.default_rng(seed)
    best, at, used = np.inf, p.x0, 0

    def fun(x: np.ndarray) -> float:
        nonlocal best, at, used
        if used == calls:
            raise _OutOfCallsError
        used += 1
        value = p.fun(x, p.draw(rng) if p.draw else None) + (p.own(rng) if p.own else 0.0)
        if value < best:
            best, at = value, x.copy()
        return value

    limits = {"L-BFGS-B": {"maxfun": 10**6, "maxiter": 10**6, "ftol": 1e-15, "gtol": 1e-12}}
    options = limits.get(method, {"maxfev": calls})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            end = optimize.minimize(fun, p.x0, method=method, options=options).x
        except _OutOfCallsError:
            end = at
    return at if p.draw is None and p.own is None else end


def cma_es(p: Problem, calls: int, seed: int) -> np.ndarray:
    """pycma from the step size 1; it, too, sees a new xi at every call. With noise its mean is the answer."""
    rng = np.random.default_rng(seed)
    es = cma.CMAEvolutionStrategy(p.x0, 1.0, {"seed": seed + 1, "verbose": -9, "maxfevals": calls - 20})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while not es.stop():
            X = es.ask()
            es.tell(X, [p.fun(x, p.draw(rng) if p.draw else None) + (p.own(rng) if p.own else 0.0) for x in X])
    noisy = p.draw is not None or p.own is not None
    return np.asarray(es.result.xfavorite if noisy else es.result.xbest)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=3000)
    parser.add_argument("--seeds", type=int, default=3)
    settings = parser.parse_args()
    problems = [
        rosenbrock(), units(), deviations(), quadratic(), quadratic(noise="shared"), quadratic(noise="own"), hinge(),
        whole_numbers(), errors(), errors(batch=20),
    ]  # fmt: skip
    print("| gap left after", f"{settings.calls:,} calls |", " | ".join(METHODS), "|")
    print("|---|" + "---|" * len(METHODS))
    for p in problems:
        gaps = [median_gap(p, m, settings.calls, settings.seeds) for m in METHODS]
        print(f"| {p.name} |", " | ".join(f"{g:.1e}" for g in gaps), "|", flush=True)


if __name__ == "__main__":
    main()
