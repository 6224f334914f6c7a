"""The first scale of `auto`: the largest distance over which a tenth of the points are lower."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from auto_helpers import drive, numbered
from inside import state_of

import poem_cma as pc

D = 5


def scale(f: Any, x0: Any, seed: int, **options: Any) -> float:
    """The first scale, from a run that ends as soon as it is known."""
    opt = pc.Optimizer(np.asarray(x0, dtype=float), seed=seed, **({"method": "far", "budget": 3000} | options))
    s = state_of(drive(opt, f, lambda s: s.scan.over))
    assert s.scan.over
    assert s.clock.nfev <= 0.25 * s.run.budget
    return float(s.scan.h)


@pytest.mark.parametrize("power", [1.0, 2.0, 4.0])
@pytest.mark.parametrize("distance", [1e-3, 0.1, 1.0, 30.0, 1e3])
def test_in_a_bowl_it_is_the_distance_within_a_factor_of_ten(distance: float, power: float) -> None:
    for seed in range(20):
        v = np.random.default_rng(seed).normal(size=D)
        best = distance * v / np.linalg.norm(v)
        h = scale(lambda x, n, best=best: float(np.linalg.norm(x - best) ** power), np.zeros(D), seed)
        assert 0.1 * distance <= h <= 10.0 * distance


def test_a_rank_statistic_needs_no_unit_of_F() -> None:
    def bowl(x: np.ndarray) -> float:
        return float(((x - 0.3) ** 2).sum())

    found = {
        scale(lambda x, n, g=g: g(bowl(x)), np.zeros(D), 3)
        for g in (lambda F: F, lambda F: 2.0**300 * F, lambda F: 2.0**-300 * F, lambda F: 8.0 * F - 64.0)
    }
    assert len(found) == 1


@pytest.mark.parametrize("d", [2, 10])
def test_a_function_of_a_sign_does_not_shrink_it(d: int) -> None:
    """A classification error is constant along every ray from zero: no length is too long."""
    for seed in range(20):
        a = np.random.default_rng(seed).normal(size=(50, d))

        def error(x: np.ndarray, n: int, a: np.ndarray = a) -> float:
            return float(a[n % 50] @ x * a[n % 50, 0] < 0.0)

        assert scale(error, np.zeros(d), seed, budget=6000) >= 1.0


@pytest.mark.parametrize("domain", [pc.Ball(0.4), pc.Box(-0.1, 0.2), pc.Simplex()], ids=["ball", "box", "simplex"])
def test_a_domain_limits_it(domain: Any) -> None:
    d, x0 = 4, np.full(4, 0.25) if isinstance(domain, pc.Simplex) else np.zeros(4)
    diameter = domain.for_dimension(d).diameter
    for seed in range(5):
        assert scale(lambda x, n: float(x[0]), x0, seed, domain=domain) <= 0.5 * diameter * (1.0 + 1e-12)


def test_where_nothing_changes_it_is_the_longest() -> None:
    assert scale(lambda x, n: 1.0, np.zeros(D), 0, domain=pc.Ball(3.0)) == 3.0
    assert scale(lambda x, n: 1.0, np.zeros(D), 0) >= 1e3


@pytest.mark.parametrize("far", [1e-2, 1e2])
def test_a_function_that_changes_elsewhere_only_is_found(far: float) -> None:
    """A pit at one length from x0, outside of which F is flat."""
    hits = 0
    for seed in range(10):
        h = scale(lambda x, n: min(0.0, float(np.linalg.norm(x)) / far - 1.0), np.full(D, 0.5 * far), seed, budget=6000)
        hits += 0.1 * far <= h <= 10.0 * far
    assert hits >= 8


@pytest.mark.parametrize("unit", [1e-4, 1e-2, 1e2, 1e4])
def test_the_unit_of_x(unit: float) -> None:
    """The scale is in the unit of x, within the factor of ten that is allowed in any unit."""
    for seed in range(20):
        h = scale(lambda x, n: float(((x / unit - 1.0) ** 2).sum()), np.zeros(D), seed)
        assert 0.1 <= h / (unit * np.sqrt(D)) <= 10.0


def test_samples_that_differ() -> None:
    """The noise of linear terms is not taken for a slope that never ends."""
    for seed in range(10):

        def f(x: np.ndarray, n: int, seed: int = seed) -> float:
            return float(((x - 1.0) ** 2).sum() + numbered(n, seed).normal(size=D) @ x)

        assert 0.1 <= scale(f, np.zeros(D), seed) / np.sqrt(D) <= 10.0


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_evaluations_that_fail_are_left_out(share: float) -> None:
    for seed in range(10):
        fails = np.random.default_rng(seed)

        def f(x: np.ndarray, n: int, fails: np.random.Generator = fails) -> float:
            return np.nan if fails.random() < share else float(((x - 1.0) ** 2).sum())

        assert 0.1 <= scale(f, np.zeros(D), seed) / np.sqrt(D) <= 10.0
