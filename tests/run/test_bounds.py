"""Bounds are bounds, and the answer near them is right: the minimum on, near and far from the boundary."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import poem_cma as pc


def box(d: int, place: str) -> tuple[Any, Any, np.ndarray, np.ndarray]:
    """A domain, what it contains, the target, and x0."""
    signs = np.where(np.arange(d) % 2 == 0, 1.0, -1.0)
    target = {"on": 1.5, "near": 0.97, "far": 0.1}[place] * signs
    return pc.Box(-1.0, 1.0), lambda x: (np.abs(x) <= 1.0).all(), target, np.full(d, 0.3)


def ball(d: int, place: str) -> tuple[Any, Any, np.ndarray, np.ndarray]:
    signs = np.where(np.arange(d) % 2 == 0, 1.0, -1.0) / np.sqrt(d)
    target = {"on": 1.5, "near": 0.97, "far": 0.1}[place] * signs
    return pc.Ball(1.0), lambda x: x @ x <= 1.0 + 1e-12, target, np.full(d, 0.3 / np.sqrt(d))


def simplex(d: int, place: str) -> tuple[Any, Any, np.ndarray, np.ndarray]:
    even = np.arange(d) % 2 == 0
    target = {"on": np.where(even, 2.0, -1.0), "near": np.where(even, 1.0, 0.03), "far": 1.0 + np.arange(d)}[place]
    if place != "on":
        target = target / target.sum()
    held = target / d if place == "on" else target
    return pc.Simplex(), lambda x: x.min() >= 0.0 and abs(x.sum() - 1.0) < 1e-12, held, np.full(d, 1.0 / d)


def left_of_the_gap(make: Any, d: int, place: str, own: bool, method: str, seed: int) -> float:
    """The share of f(x0) - f* that is left of |x - target|^2, at 1200 evaluations, none of them outside."""
    domain, contains, target, x0 = make(d, place)

    def f(x: np.ndarray) -> float:
        return float(((x - target) ** 2).sum())

    least = f(domain.for_dimension(d).project(target))
    gap = f(x0) - least
    spread = 0.3 * np.sqrt(gap / d)

    def with_own_noise(x: np.ndarray, xi: np.ndarray) -> float:
        assert contains(x)
        return f(x) + 0.1 * gap * float(xi[0])

    def with_shared_noise(x: np.ndarray, xi: np.ndarray) -> float:
        assert contains(x)
        return float(((x - target - spread * xi) ** 2).sum())

    result = pc.minimize(
        with_own_noise if own else with_shared_noise, x0, sample=lambda rng: rng.normal(size=d), paired=not own,
        domain=domain, method=method, budget=1200, seed=seed, evaluate=0,
    )  # fmt: skip
    assert result.failures == 0
    assert contains(result.x)
    return (f(result.x) - least) / gap


@pytest.mark.parametrize("method", ["auto", "poem"])
@pytest.mark.parametrize("own", [True, False], ids=["own", "shared"])
@pytest.mark.parametrize("place", ["on", "near", "far"])
@pytest.mark.parametrize("d", [1, 4, 20])
@pytest.mark.parametrize("make", [box, ball, simplex])
def test_the_minimum_is_found(make: Any, d: int, place: str, own: bool, method: str) -> None:
    if make is simplex and d == 1:
        return  # a single point
    gaps = [left_of_the_gap(make, d, place, own, method, seed) for seed in range(3)]
    assert np.median(gaps) < (0.2 if d == 20 else 0.1)


@pytest.mark.parametrize("method", ["auto", "poem"])
def test_more_evaluations_do_not_make_the_answer_worse_beside_a_bound(method: str) -> None:
    """(x - 2)^2 with noise of its own on [0, 9], from 5."""

    def ends(budget: int) -> list[float]:
        settings: dict[str, Any] = {"sample": lambda rng: rng.normal(), "paired": False, "domain": pc.Box(0.0, 9.0)}
        runs = [
            pc.minimize(lambda x, xi: float((x[0] - 2.0) ** 2 + xi), [5.0], method=method, budget=budget, seed=seed,
                        **settings) for seed in range(8)
        ]  # fmt: skip
        return [float(abs(run.x[0] - 2.0)) for run in runs]

    assert max(ends(300)) < 1.2
    assert max(ends(4000)) < 0.4
