"""A run that continues from the result of another one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import poem_cma as pc

WEIGHTS = np.array([10.0, 5.0, 2.0, 1.0, 0.5, 0.2])


class Case(NamedTuple):
    """A function, its sampler, its mean and a budget."""

    fun: Callable[..., float]
    sample: Any
    mean: Callable[[np.ndarray], float]
    budget: int


def valley(x: np.ndarray) -> float:
    return float((100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum())


def weighted(x: np.ndarray) -> float:
    return float(WEIGHTS @ (x - 1.0) ** 2)


CASES = {
    "shared noise": Case(
        lambda x, xi: float(WEIGHTS @ (x - 1.0 - xi) ** 2), lambda rng: rng.normal(size=6), weighted, 1500
    ),
    "no noise": Case(weighted, None, weighted, 300),
    "a valley": Case(valley, None, valley, 300),
    "steps": Case(lambda x: float(np.round(weighted(x))), None, lambda x: float(np.round(weighted(x))), 300),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_it_is_no_worse_in_19_of_20_seeds(case: Case) -> None:
    """With twice the evaluations. With as many, a tenth of the continued runs ends higher where there is noise."""
    settings: dict[str, Any] = {"sample": case.sample, "budget": case.budget, "evaluate": 0}
    better = 0
    for seed in range(20):
        first = pc.minimize(case.fun, np.zeros(6), seed=seed, **settings)
        second = pc.minimize(case.fun, first, seed=seed, **{**settings, "budget": 2 * case.budget})
        assert second.nfev <= 2 * case.budget
        better += case.mean(second.x) <= case.mean(first.x)
    assert better >= 19


def test_it_is_no_worse_where_every_evaluation_has_noise() -> None:
    """Here a few seeds end a little worse, as two runs to the same precision do; the mean gets better."""
    before, after = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        fun = lambda x, rng=rng: weighted(x) + rng.normal()  # noqa: E731
        first = pc.minimize(fun, np.zeros(6), seed=seed, budget=600, evaluate=0)
        second = pc.minimize(fun, first, seed=seed, budget=1800, evaluate=0)
        before.append(weighted(first.x))
        after.append(weighted(second.x))
    change = np.subtract(after, before)
    assert change.mean() < -2.0 * change.std(ddof=1) / np.sqrt(20)


@pytest.mark.parametrize("method", ["auto", "poem", "poem-cma"])
def test_it_begins_at_x_and_never_uses_a_sample_twice(method: str) -> None:
    seen: list[set[float]] = [set(), set()]

    def fun(x: np.ndarray, xi: float) -> float:
        seen[-1].add(xi)
        return weighted(x - 0.1 * xi)

    settings: dict[str, Any] = {"sample": lambda rng: float(rng.normal()), "budget": 400, "seed": 0, "evaluate": 0}
    first = pc.minimize(fun, np.zeros(6), method=method, **settings)
    seen.append(set())
    opt = pc.Optimizer(first, method=method, budget=400, seed=0)
    assert opt.start.tobytes() == first.x.tobytes()
    second = pc.minimize(fun, first, method=method, **settings)
    assert not seen[1] & seen[2]
    assert second.gain.samples == 0
    if method == "poem-cma":
        assert second.spectrum is first.spectrum


def test_the_covariance_is_taken_over() -> None:
    rng = np.random.default_rng(0)
    first = pc.minimize(lambda x: weighted(x) + 0.01 * rng.normal(), np.zeros(6), budget=3000, seed=0, method="far")
    opt = pc.Optimizer(first, method="far", budget=1000, seed=1)
    probe = opt.ask()
    assert probe is not None
    away = probe.points - first.x
    spread = np.sqrt((away**2).mean(axis=0))
    assert spread[0] < 0.7 * spread[-1]  # F is fifty times as steep along the first variable


def test_another_method_or_scale_begins_anew_at_x() -> None:
    first = pc.minimize(weighted, np.zeros(6), budget=300, seed=0, method="poem")
    for settings in ({"method": "auto"}, {"method": "poem", "scale": 2.0}):
        continued, anew = (pc.minimize(weighted, x0, budget=300, seed=1, **settings) for x0 in (first, first.x))
        assert continued.x.tobytes() == anew.x.tobytes()


def test_a_nest_continues_in_its_form() -> None:
    def fun(p: dict[str, float]) -> float:
        return (p["a"] - 1.0) ** 2 + (p["b"] - 2.0) ** 2

    first = pc.minimize(fun, {"a": 0.0, "b": 0.0}, budget=100, seed=0)
    second = pc.minimize(fun, first, budget=300, seed=1)
    assert fun(second.x) <= fun(first.x)


def test_it_stays_in_the_domain_with_its_kinds_of_variables() -> None:
    """The domain of the first run holds for the second, unless another one is given."""
    seen: list[Any] = []

    def fun(p: dict[str, Any]) -> float:
        seen.append(p)
        return (p["servers"] - 25) ** 2 + (np.log10(p["rate"]) + 3.0) ** 2

    space = {"servers": pc.Integer(1, 20), "rate": pc.Real(1e-6, 1.0, log=True)}
    first = pc.minimize(fun, space, budget=200, seed=0)
    second = pc.minimize(fun, first, budget=200, seed=1)
    assert {type(p["servers"]) for p in seen} == {int}
    assert all(1 <= p["servers"] <= 20 and 1e-6 <= p["rate"] <= 1.0 for p in seen)
    assert second.x["servers"] == 20
    third = pc.minimize(fun, first, domain={"servers": pc.Integer(1, 30)}, budget=300, seed=1)
    assert third.x["servers"] == 25


@pytest.mark.parametrize("method", ["auto", "poem"])
def test_bounds_need_not_be_given_again(method: str) -> None:
    first = pc.minimize(weighted, np.zeros(6), bounds=(0, 0.5), budget=300, seed=0, method=method)
    told, known = (
        pc.minimize(weighted, first, budget=300, seed=1, method=method, **more) for more in ({"bounds": (0, 0.5)}, {})
    )
    assert told.x.tobytes() == known.x.tobytes()
    assert repr(pc.Optimizer(first, method=method, budget=300).domain) == repr(pc.Box(0.0, 0.5).for_dimension(6))


def test_a_stored_run_can_continue_a_result(tmp_path: Any) -> None:
    first = pc.minimize(weighted, np.zeros(6), budget=300, seed=0)
    plain = pc.minimize(weighted, first, budget=400, seed=1)
    kept = pc.minimize(weighted, first, budget=400, seed=1, store=tmp_path / "run.db")
    again = pc.minimize(weighted, first, budget=400, seed=1, store=tmp_path / "run.db")
    assert plain.x.tobytes() == kept.x.tobytes() == again.x.tobytes()
