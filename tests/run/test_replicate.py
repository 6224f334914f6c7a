"""Many runs together give, bit for bit, what each gives alone."""

from __future__ import annotations

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
