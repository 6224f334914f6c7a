"""What a result says of itself: its value, its gain over x0, their intervals, and whether the run was a success."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats

import poem_cma as pc
from poem_cma.estimate import estimate
from poem_cma.result import Status


def bowl(x: np.ndarray, xi: float) -> float:
    return float(((x - 1.0) ** 2).sum() + 0.1 * xi)


def normal(rng: np.random.Generator) -> float:
    return float(rng.normal())


# Estimates.


def test_the_interval_of_symmetric_values_is_students() -> None:
    half = np.random.default_rng(0).normal(size=12)
    values = 3.0 + np.concatenate([half, -half])
    low, high = scipy.stats.t.interval(0.95, len(values) - 1, values.mean(), scipy.stats.sem(values))
    found = estimate(values)
    np.testing.assert_allclose([found.mean, found.stderr], [3.0, scipy.stats.sem(values)])
    np.testing.assert_allclose([found.low, found.high], [low, high], rtol=1e-6)


#: Random values with mean zero: symmetric, with heavy tails, skewed a little, and skewed much.
VALUES: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "student": lambda rng, n: rng.standard_t(3, size=n),
    "gamma": lambda rng, n: rng.gamma(4.0, size=n) - 4.0,
    "exponential": lambda rng, n: 1.0 - rng.exponential(size=n),
    "log-normal": lambda rng, n: np.exp(rng.normal(size=n)) - np.exp(0.5),
}


@pytest.mark.parametrize("n", [10, 15, 50])
@pytest.mark.parametrize("draw", VALUES.values(), ids=VALUES)
def test_the_interval_covers_the_mean_of_any_values(draw: Callable[..., np.ndarray], n: int) -> None:
    """Student's interval covers the mean of ten log-normal values in 84% of the cases."""
    rng, cases = np.random.default_rng(n), 2000
    held = sum(e.low <= 0.0 <= e.high for e in (estimate(draw(rng, n)) for _ in range(cases)))
    assert 0.93 <= held / cases <= 0.98


@pytest.mark.parametrize("n", [10, 20, 90])
@pytest.mark.parametrize("skewness", [1.0, 2.0, 3.0])
def test_the_skewness_is_that_of_the_variable(n: int, skewness: float) -> None:
    """The skewness of ten exponential values is 1 on average, and that of their distribution is 2."""
    rng = np.random.default_rng(n)
    found = np.mean([estimate(-rng.gamma(4.0 / skewness**2, size=n)).skewness for _ in range(4000)])
    assert found == pytest.approx(-skewness, rel=0.15)


@pytest.mark.parametrize("factor", [1e300, 1e-300, -2.0])
def test_estimates_follow_a_change_of_unit(factor: float) -> None:
    values = np.random.default_rng(1).gamma(1.0, size=20)
    once, scaled = estimate(values), estimate(factor * values)
    ends = sorted([factor * once.low, factor * once.high])
    np.testing.assert_allclose([scaled.mean, scaled.low, scaled.high], [factor * once.mean, *ends], rtol=1e-6)


def test_few_values_say_what_they_can() -> None:
    assert np.isnan(estimate(np.array([])).mean)
    assert estimate(np.array([2.0, np.nan]))[0] == 2.0
    assert np.isnan(estimate(np.array([2.0])).low)
    assert tuple(estimate(np.array([2.0, 2.0, 2.0]))) == (2.0, 0.0, 3, 0.0)


# The measurement.


@pytest.mark.parametrize(("budget", "samples"), [(30, 5), (60, 10), (100, 10), (200, 10), (400, 20), (10_000, 200)])
def test_the_result_is_measured_by_a_share_of_the_budget(budget: int, samples: int) -> None:
    result = pc.minimize(bowl, np.zeros(2), sample=normal, budget=budget, seed=0, method="poem")
    assert result.value.samples == result.gain.samples == samples
    assert result.nfev <= budget


def test_value_and_gain_are_means_over_fresh_common_samples() -> None:
    """The noise of `bowl` is common to all points, so that the gain has none."""
    seen: list[tuple[bytes, float]] = []

    def fun(x: np.ndarray, xi: float) -> float:
        seen.append((x.tobytes(), xi))
        return bowl(x, xi)

    result = pc.minimize(fun, np.zeros(2), sample=normal, budget=300, seed=0, evaluate=20)
    last = seen[-40:]
    assert {point for point, _ in last} == {result.x.tobytes(), np.zeros(2).tobytes()}
    at_x, at_x0 = ([xi for point, xi in last if point == p.tobytes()] for p in (result.x, np.zeros(2)))
    assert at_x == at_x0
    assert not {xi for _, xi in seen[:-40]} & set(at_x)
    assert result.fun == pytest.approx(np.mean([bowl(result.x, xi) for xi in at_x]))
    assert result.gain.mean == pytest.approx(2.0 - ((result.x - 1.0) ** 2).sum())
    assert result.gain.stderr < 1e-12


@pytest.mark.parametrize("method", ["auto", "poem"])
def test_intervals_hold_the_truth(method: str) -> None:
    def fun(x: np.ndarray, xi: Any) -> float:
        return float(((x - 1.0 - 0.3 * xi) ** 2).sum())

    def mean(x: np.ndarray) -> float:
        return float(((x - 1.0) ** 2).sum() + 2 * 0.09)

    held = np.zeros(2)
    for seed in range(100):
        result = pc.minimize(
            fun, np.zeros(2), sample=lambda rng: rng.normal(size=2), budget=120, seed=seed, method=method
        )
        gain = mean(np.zeros(2)) - mean(result.x)
        held += [e.low <= t <= e.high for e, t in ((result.value, mean(result.x)), (result.gain, gain))]
    assert (held >= 88).all()  # 95 are expected, with a standard deviation of 2.2


# Success.


@pytest.mark.parametrize("method", ["auto", "poem"])
def test_a_constant_function_is_no_success(method: str) -> None:
    result = pc.minimize(lambda x: 3.0, np.ones(3), budget=300, seed=0, method=method)
    assert not result.success
    assert result.status == Status.CONSTANT
    assert result.message.startswith("F seems to be constant")
    assert "the budget of 300 calls is spent" in result.message


def test_a_minimum_between_equal_values_is_not_taken_for_a_constant() -> None:
    """The two points of a pair are mirror images, with equal values here; from pair to pair the values change."""
    result = pc.minimize(lambda x: float(np.abs(x).sum()), np.zeros(3), budget=300, seed=0, method="poem")
    assert result.status in (Status.UNMOVED, Status.NOT_BETTER)
    assert "x0" in result.message.split(";")[0]


def test_a_run_from_the_minimum_is_no_success() -> None:
    result = pc.minimize(lambda x: float(np.abs(x).sum()), np.zeros(3), budget=1000, seed=0)
    assert not result.success
    assert result.status in (Status.NOT_BETTER, Status.UNMOVED)
    assert "x0" in result.message.split(";")[0]


def test_a_point_that_is_measured_worse_is_no_success() -> None:
    rng = np.random.default_rng(1)
    results = [pc.minimize(lambda x: rng.normal(), np.zeros(2), budget=100, seed=s, method="poem") for s in range(20)]
    assert all(r.success == (r.gain.mean > 0.0) for r in results)
    assert {r.status for r in results} == {Status.BUDGET, Status.NOT_BETTER}
    for r in results:
        if not r.success:
            assert r.message.startswith("x is not better than x0" if r.x.any() else "nothing better than x0")


def test_a_point_that_is_clearly_worse_is_not_returned(tmp_path: pathlib.Path) -> None:
    """POEM's average is far from the minimum, where the run began: the measurement shows it, and x0 is the result.

    So it is where the result is read from a store.
    """
    settings: dict[str, Any] = {"sample": normal, "budget": 300, "seed": 0, "method": "poem"}
    result = pc.minimize(bowl, np.ones(2), store=tmp_path / "run.db", **settings)
    again = pc.minimize(bowl, np.ones(2), store=tmp_path / "run.db", **settings)
    assert (again.x == result.x).all()
    assert again.message == result.message
    assert (result.x == 1.0).all()
    assert not result.success
    assert result.message.startswith("nothing better than x0 was found: x0 is returned")
    assert result.gain.mean == 0.0
    assert result.value.samples > 0


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_a_function_that_falls_for_ever_is_no_success(noise: float) -> None:
    rng = np.random.default_rng(2)
    result = pc.minimize(lambda x: float(-x.sum()) + noise * rng.normal(), np.zeros(3), budget=3000, seed=0)
    assert not result.success
    assert result.status == Status.UNBOUNDED
    assert result.message.startswith("F falls without bound")
    bounded = pc.minimize(lambda x: float(-x.sum()), np.zeros(3), bounds=[(-1, 1e9)] * 3, budget=3000, seed=0)
    assert bounded.success


def test_a_run_that_a_callback_ends_is_no_success_either_without_a_gain() -> None:
    """From the minimum, after three steps."""

    def stop(intermediate_result: pc.Result) -> None:
        if intermediate_result.nit == 3:
            raise StopIteration

    result = pc.minimize(bowl, np.ones(2), sample=normal, budget=300, seed=0, callback=stop, method="poem")
    assert result.gain.mean <= 0.0
    assert not result.success
    assert "better than x0" in result.message
    assert result.message.endswith("the callback stopped the run")
    better = pc.minimize(bowl, np.zeros(2), sample=normal, budget=300, seed=0, callback=stop, method="poem")
    assert better.gain.mean > 0.0
    assert better.success


def test_a_good_run_is_a_success() -> None:
    result = pc.minimize(bowl, np.zeros(2), sample=normal, budget=1000, seed=0)
    assert result.success
    assert result.gain.low > 0.0


# Bounds, maximise.


@pytest.mark.parametrize("bounds", [[(0, 0.5), (None, None)], scipy.optimize.Bounds([0, -np.inf], [0.5, np.inf])])
def test_bounds_are_a_domain(bounds: Any) -> None:
    result = pc.minimize(bowl, np.zeros(2), sample=normal, bounds=bounds, budget=1000, seed=0)
    box = pc.Box(np.array([0.0, -np.inf]), np.array([0.5, np.inf]))
    assert (
        result.x.tobytes() == pc.minimize(bowl, np.zeros(2), sample=normal, domain=box, budget=1000, seed=0).x.tobytes()
    )
    assert abs(result.x - [0.5, 1.0]).max() < 0.05


def test_bounds_by_name() -> None:
    result = pc.minimize(
        lambda p: abs(p["a"] - 2.0) + abs(p["b"] - 2.0), {"a": 0.5, "b": 0.5}, bounds={"a": (0, 1)}, budget=500, seed=0
    )
    assert result.x["a"] == pytest.approx(1.0, abs=0.05)
    assert result.x["b"] == pytest.approx(2.0, abs=0.05)


@pytest.mark.parametrize("method", ["auto", "poem"])
def test_maximising_is_minimising_the_negative(method: str, tmp_path: Any) -> None:
    settings: dict[str, Any] = {"sample": normal, "budget": 400, "seed": 0, "method": method}
    low = pc.minimize(bowl, np.zeros(2), **settings)
    for more in ({}, {"store": tmp_path / "run.db"}, {"store": tmp_path / "run.db"}):
        high = pc.minimize(lambda x, xi: -bowl(x, xi), np.zeros(2), maximize=True, **settings, **more)
        assert high.x.tobytes() == low.x.tobytes()
        assert high.fun == -low.fun
        assert high.gain == low.gain
        assert (high.history["fun"] == -low.history["fun"]).all()
        assert high.success


def test_a_target_of_a_maximum_is_reached_from_below() -> None:
    result = pc.minimize(
        lambda x: float(3.0 - x @ x), np.ones(3), maximize=True, target=2.5, budget=20_000, seed=0, method="poem"
    )
    assert result.status == Status.TARGET
    assert result.history["fun"][-1] > 2.5


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"budget": -5}, "budget must be positive, but is -5"),
        ({"budget": 2.5}, "whole number of calls, but is 2.5"),
        ({"evaluate": 60}, "evaluate=60 takes 120 evaluations"),
        ({"bounds": [(0, 1)], "domain": pc.Ball(1.0)}, "not both"),
        ({"bounds": 3}, "a pair \\(lower, upper\\) for each variable"),
        ({"bounds": [(0, 1, 2)] * 2}, "a pair \\(lower, upper\\) for each variable"),
        (
            {"bounds": ([0, 0], [1, 1])},
            "one value twice; lower and upper bounds in two lists are scipy",
        ),
        ({"domain": [(0, 1)] * 2}, "pairs \\(lower, upper\\) are given as bounds="),
        ({"budget": True}, "whole number of calls, not True"),
        ({"budget": "100"}, "whole number of calls, not '100'"),
        ({"x0": None}, "x0 must be a vector of numbers, not None"),
        ({"scale": "wide"}, "scale must be a number or have one entry for each variable, not 'wide'"),
        ({"maximize": "no"}, "maximize must be True or False, not 'no'"),
        ({"target": "low"}, "target must be a finite number, not 'low'"),
        ({"time_limit": "1 h"}, "time_limit must be a positive number of seconds, not '1 h'"),
        ({"callback": 3}, "callback must be callable, not 3"),
    ],
)
def test_a_wrong_call_gets_one_clear_line(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises((ValueError, TypeError), match=says):
        pc.minimize(bowl, **{"x0": np.zeros(2), "sample": normal, "budget": 100, **wrong})
