"""Many runs together give, bit for bit, what each gives alone."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import poem_cma as pc

D, N = 7, 50
RNG = np.random.default_rng(0)
A = RNG.normal(size=(N, D))
Y = np.sign(A @ RNG.normal(size=D))


def draw(rng: np.random.Generator) -> int:
    return int(rng.integers(N))


def hinge(X: np.ndarray, i: Any) -> np.ndarray:
    """A function of rows whose value for a row is the same in whatever company."""
    return np.maximum(0.0, 1.0 - Y[i] * (A[i] * X).sum(axis=-1))


def kinks(X: np.ndarray) -> np.ndarray:
    return np.abs(X - 0.3).sum(axis=-1)


def assert_same(one: pc.Result, other: pc.Result) -> None:
    for name in ("x", "x_last", "x_average"):
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes(), name
    for name in ("fun", "fun_stderr"):
        np.testing.assert_equal(getattr(one, name), getattr(other, name))
    for name in ("nfev", "nit", "success", "status", "message", "failures", "method", "seed"):
        assert getattr(one, name) == getattr(other, name), name
    assert list(one.history) == list(other.history)
    for name in one.history:
        np.testing.assert_array_equal(one.history[name], other.history[name], err_msg=name)


METHODS = {
    "poem": "poem",
    "poem-cma": pc.methods.poem_cma(samples=40),
    "tpbco": pc.methods.tpbco(lipschitz=3.0, diameter=1.0),
    "tpge": pc.methods.tpge(lipschitz=3.0, diameter=1.0),
    "rsnso": pc.methods.rsnso(lipschitz=3.0, distance=1.0),
    "auto": "auto",
}
DOMAINS = [None, pc.Ball(0.4), pc.Ball(0.5, center=0.1), pc.Box(-0.2, 0.4), pc.Simplex(), pc.Ball(0.4, outside=True)]


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
@pytest.mark.parametrize("method", METHODS)
def test_the_same_bits_as_one_after_another(method: str, domain: Any) -> None:
    x0 = np.full(D, 1.0 / D) if isinstance(domain, pc.Simplex) else np.full(D, 0.05)
    options: dict[str, Any] = {
        "sample": draw, "domain": domain, "method": METHODS[method], "budget": 700, "vectorized": "rows",
    }  # fmt: skip
    together = pc.replicate(hinge, x0, seeds=range(4), **options)
    for seed, result in enumerate(together):
        assert_same(result, pc.minimize(hinge, x0, seed=seed, **options))


@pytest.mark.parametrize("vectorized", [False, True, "rows"])
@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("sample", [None, draw])
def test_however_the_function_is_called(vectorized: Any, paired: bool, sample: Any) -> None:
    fun = kinks if sample is None else hinge
    options: dict[str, Any] = {
        "sample": sample, "method": "poem", "budget": 500, "vectorized": vectorized, "paired": paired,
    }  # fmt: skip
    for seed, result in zip([3, 8, 9], pc.replicate(fun, np.zeros(D), seeds=[3, 8, 9], **options), strict=True):
        assert_same(result, pc.minimize(fun, np.zeros(D), seed=seed, **options))


def test_seeds_times_starting_points() -> None:
    starts = np.array([np.zeros(D), np.full(D, 0.2), np.full(D, -1.0)])
    options: dict[str, Any] = {"method": "poem", "budget": 400, "vectorized": "rows"}
    results = pc.replicate(kinks, starts, seeds=[1, 2], **options)
    expected = [pc.minimize(kinks, x0, seed=seed, **options) for x0 in starts for seed in (1, 2)]
    assert len(results) == 6
    for one, other in zip(results, expected, strict=True):
        assert_same(one, other)


@pytest.mark.parametrize("extra", [{"batch": 3}, {"scale": 2.0}, {"scale": np.linspace(0.5, 2.0, D)}, {"evaluate": 0}])
def test_what_cannot_be_joined_is_as_right(extra: dict[str, Any]) -> None:
    options: dict[str, Any] = {"method": "poem", "budget": 420, "vectorized": "rows", **extra}
    for seed, result in enumerate(pc.replicate(kinks, np.zeros(D), seeds=range(3), **options)):
        assert_same(result, pc.minimize(kinks, np.zeros(D), seed=seed, **options))


@pytest.mark.parametrize("method", ["poem", "rsnso"])
@pytest.mark.parametrize("how", ["nan", "raise", "overflow"])
def test_failures_are_each_runs_own(how: str, method: str) -> None:
    """Some points fail: the group dissolves, and every run does what it would have done alone."""

    def fun(X: np.ndarray) -> np.ndarray:
        values = kinks(X)
        bad = (np.abs(X[:, 0] * 1e4) % 1.0) < 0.02
        if how == "raise" and (bad & (X[:, 0] != 0.0)).any():  # x0 has a value
            raise RuntimeError("no value here")
        return np.where(bad, np.nan, values) if how != "overflow" else np.where(bad, -1.7e308, values * 5e307)

    options: dict[str, Any] = {"method": METHODS[method], "budget": 600, "vectorized": "rows", "evaluate": 0}
    results = pc.replicate(fun, np.zeros(D), seeds=range(5), **options)
    for seed, result in enumerate(results):
        assert_same(result, pc.minimize(fun, np.zeros(D), seed=seed, **options))
    if how != "overflow":
        assert sum(r.failures for r in results) > 0


def test_a_flat_start_is_waited_for() -> None:
    def flat_around_zero(X: np.ndarray) -> np.ndarray:
        return np.maximum(np.abs(X).sum(axis=-1), 0.08)

    options: dict[str, Any] = {"method": pc.methods.poem(initial_distance=0.01), "budget": 300, "vectorized": "rows"}
    for seed, result in enumerate(pc.replicate(flat_around_zero, np.zeros(D), seeds=range(6), **options)):
        assert_same(result, pc.minimize(flat_around_zero, np.zeros(D), seed=seed, **options))


def test_one_call_serves_all() -> None:
    sizes = []

    def fun(X: np.ndarray) -> np.ndarray:
        sizes.append(len(X))
        return kinks(X)

    pc.replicate(fun, np.zeros(D), seeds=range(9), method="poem", budget=100, vectorized="rows", evaluate=0)
    assert sizes == [18] * 50


def test_history_is_thinned_alike() -> None:
    options: dict[str, Any] = {"method": "poem", "budget": 44_000, "vectorized": "rows", "evaluate": 0}
    three = pc.replicate(lambda X: X[:, 0] ** 2, np.ones(1), seeds=[0, 1, 2], **options)
    assert_same(three[1], pc.minimize(lambda X: X[:, 0] ** 2, np.ones(1), seed=1, **options))
    assert len(three[0].history["nfev"]) <= 10_001


def test_single_precision() -> None:
    x0 = np.full(D, 0.1, dtype=np.float32)
    options: dict[str, Any] = {"method": "poem", "budget": 300, "vectorized": "rows", "domain": pc.Ball(0.5)}
    for seed, result in enumerate(pc.replicate(kinks, x0, seeds=range(3), **options)):
        assert result.x.dtype == np.float32
        assert_same(result, pc.minimize(kinks, x0, seed=seed, **options))


# What ends runs: the loop is that of single runs.


class Seen:
    """A callback that notes what it sees of each seed, and ends some runs."""

    def __init__(self, last: dict[int, int]) -> None:
        self.last = last  # steps by seed
        self.steps: dict[int, list[int]] = {}

    def __call__(self, intermediate_result: pc.Result) -> None:
        steps = self.steps.setdefault(intermediate_result.seed, [])
        steps.append(intermediate_result.nit)
        if len(steps) >= self.last.get(intermediate_result.seed, 1000):
            raise StopIteration


@pytest.mark.parametrize("vectorized", [False, "rows"])
@pytest.mark.parametrize("method", ["poem", "auto"])
def test_a_callback_ends_its_run_and_no_other(method: str, vectorized: Any) -> None:
    options: dict[str, Any] = {"method": method, "budget": 500, "vectorized": vectorized, "sample": draw}
    last = {0: 1, 1: 30, 3: 7}
    seen = Seen(last)
    results = pc.replicate(hinge, np.zeros(D), seeds=range(5), callback=seen, **options)
    for seed, result in enumerate(results):
        alone = Seen(last)
        assert_same(result, pc.minimize(hinge, np.zeros(D), seed=seed, callback=alone, **options))
        assert seen.steps[seed] == alone.steps[seed]
        assert ("the callback stopped the run" in result.message) == (seed in last)
    assert len(seen.steps[1]) == 30


@pytest.mark.parametrize("vectorized", [False, "rows"])
def test_every_run_stops_at_the_target(vectorized: Any) -> None:
    options: dict[str, Any] = {"method": "poem", "budget": 3000, "vectorized": vectorized, "target": 1.0}
    results = pc.replicate(kinks, np.zeros(D), seeds=range(5), **options)
    for seed, result in enumerate(results):
        assert_same(result, pc.minimize(kinks, np.zeros(D), seed=seed, **options))
    assert "target of 1" in results[0].message
    assert len({result.nit for result in results}) > 1


def test_the_time_limit_is_that_of_all_runs() -> None:
    def slow(X: np.ndarray) -> np.ndarray:
        time.sleep(0.002)
        return kinks(X)

    options: dict[str, Any] = {"method": "poem", "budget": 100_000, "vectorized": "rows", "evaluate": 0}
    results = pc.replicate(slow, np.zeros(D), seeds=range(4), time_limit=0.2, **options)
    assert {result.message for result in results} == {"the time limit of 0.2 s is reached"}
    assert all(2 <= result.nfev <= 400 for result in results)


@pytest.mark.parametrize("vectorized", [False, "rows"])
def test_ctrl_c_ends_all_runs_with_their_results_so_far(vectorized: Any) -> None:
    calls = 0

    def interrupted(X: np.ndarray) -> np.ndarray:
        nonlocal calls
        calls += 1
        if calls > 60:
            raise KeyboardInterrupt
        return kinks(X)

    results = pc.replicate(
        interrupted, np.zeros(D), seeds=range(4), method="poem", budget=1000, vectorized=vectorized
    )  # fmt: skip
    assert [result.message for result in results] == ["interrupted; this is the result so far"] * 4
    assert [result.nfev for result in results] == [2 * (60 if vectorized else 7)] * 4  # whole steps of all four


def test_an_error_brings_the_result_of_the_run_that_failed() -> None:
    def fails_far_out(x: np.ndarray) -> float:
        return float("nan") if x[0] > 0.15 else float(kinks(x))

    options: dict[str, Any] = {"method": "poem", "budget": 2000, "on_failure": "raise"}
    with pytest.raises(pc.EvaluationError) as caught:
        pc.replicate(fails_far_out, np.zeros(D), seeds=range(3), **options)
    result = caught.value.result
    with pytest.raises(pc.EvaluationError) as alone:
        pc.minimize(fails_far_out, np.zeros(D), seed=result.seed, **options)
    assert_same(result, alone.value.result)
    assert result.nit > 1


def test_points_of_callbacks_have_the_form_of_x0() -> None:
    seen = []
    pc.replicate(
        lambda p: float(abs(p["a"] - 0.3).sum()), {"a": np.zeros(3)}, seeds=range(2), method="poem", budget=60,
        callback=lambda x: seen.append(x["a"].shape),
    )  # fmt: skip
    assert set(seen) == {(3,)}
    assert len(seen) == 2 * ((60 - 20) // 2)
