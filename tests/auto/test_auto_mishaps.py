"""`auto` where now and then a call returns what cannot be true."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import poem_cma as pc


def regression(d: int, absurd: float | None, seed: int, rate: float = 0.002, **options: Any) -> float:
    """The mean absolute error that is left, as a share of that at x_0."""
    rng = np.random.default_rng(0)
    A, solution, mishaps = rng.normal(size=(500, d)), rng.normal(size=d) / np.sqrt(d), np.random.default_rng(seed)

    def error(x: np.ndarray, i: int) -> float:
        if absurd is not None and mishaps.random() < rate:
            return absurd
        return float(abs(A[i] @ (x - solution)))

    options = {"budget": 6000, "seed": seed, "evaluate": 0} | options
    result = pc.minimize(error, np.zeros(d), sample=lambda rng: int(rng.integers(500)), **options)
    return float(np.abs(A @ (result.x - solution)).mean() / np.abs(A @ solution).mean())


EARLY = pytest.mark.xfail(strict=False, reason="an absurd slope among the first eight of near steps is not cut")


@pytest.mark.parametrize("absurd", [pytest.param(1e30, marks=EARLY), 1e300, -1e300])
@pytest.mark.parametrize("d", [10, 60])
def test_a_mishap_does_not_end_the_run(d: int, absurd: float) -> None:
    """One call in 500 is far off: at x_0, on the ray, in steps, or in the last comparison."""
    usual = [regression(d, None, seed) for seed in range(6)]
    assert np.mean([regression(d, absurd, seed) for seed in range(6)]) < 2.0 * np.mean(usual)


@EARLY
def test_many_mishaps() -> None:
    assert max(regression(10, 1e30, seed, rate=0.02) for seed in range(3)) < 0.1


@pytest.mark.xfail(strict=False, reason="one absurd value spoils the slopes of a walk")
def test_a_mishap_costs_its_own_value_and_not_the_walk() -> None:
    """Of 61 values that make a gradient one is absurd in nearly half of the walks: it is left out, and they serve."""
    assert np.median([regression(60, 1e30, seed, rate=0.01) for seed in range(5)]) < 0.75


@pytest.mark.xfail(strict=False, reason="a failed end of a walk is taken for flat")
def test_samples_with_failed_calls_are_not_taken_for_known() -> None:
    """Slopes of a walk with a gap are mixed up: such a sample, asked again, would seem to be of another kind."""
    usual = np.median([regression(10, None, seed) for seed in range(5)])
    assert np.median([regression(10, np.nan, seed, rate=0.05) for seed in range(5)]) < 1.5 * usual


@pytest.mark.xfail(reason="where one sample in ten decides, most runs return x0", strict=False)
def test_rare_large_samples_count() -> None:
    """One sample in ten is a thousand times as large as the others and pulls the other way: it is not left out."""

    def uneven(x: np.ndarray, rare: bool) -> float:
        return float(1e3 * abs(x[0] - 1.0) if rare else abs(x[0] + 1.0))

    result = pc.minimize(uneven, np.zeros(3), sample=lambda rng: bool(rng.random() < 0.1), budget=4000, seed=1)
    assert abs(result.x[0] - 1.0) < 0.1


KINDS = {
    "absolute": lambda z, x: abs(z),
    "squared": lambda z, x: z * z,
    "steps": lambda z, x: float(np.floor(z)),
    "largest": lambda z, x: float(np.abs(x - 1.0).max()),
    "mostly flat": lambda z, x: max(0.0, z - 5.0),
    "linear": lambda z, x: z,
}
DOMAINS: dict[str, Any] = {
    "none": None, "ball": pc.Ball(2.0), "box": pc.Box(-1.0, 1e5), "simplex": pc.Simplex(),
    "outside": pc.Box(-1.0, 1.0, outside=True),
}  # fmt: skip


def _example(*case: Any) -> Any:
    names = ("kind", "domain", "d", "budget", "exponent", "absurd", "rate", "paired", "seed")
    return example(**dict(zip(names, case, strict=True)))


@_example("absolute", "ball", 2, 1500, -6, 1e300, 0.01, True, 2)
@_example("absolute", "ball", 2, 20, 0, np.nan, 0.3, False, 155)
@_example("absolute", "ball", 2, 20, -9, 1e300, 0.3, True, 114)
@_example("largest", "simplex", 48, 1500, 31, 1e30, 0.01, True, 275)
@_example("mostly flat", "ball", 2, 20, 0, 1e300, 0.3, True, 1)
@_example("mostly flat", "ball", 2, 1500, 0, 1e300, 0.01, False, 0)
@_example("mostly flat", "ball", 10, 1500, 44, 1e200, 0.01, True, 340)
@_example("largest", "box", 2, 1500, 0, 1e300, 0.01, True, 559)
@_example("largest", "box", 10, 300, 0, 1e300, 0.3, True, 940)
@_example("largest", "ball", 2, 60, 0, 1e300, 0.01, True, 559)
@_example("largest", "ball", 2, 300, 0, 1e300, 0.01, True, 0)
@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(sorted(KINDS)),
    domain=st.sampled_from(sorted(DOMAINS)),
    d=st.sampled_from([2, 10, 48]),
    budget=st.sampled_from([20, 60, 300, 1500]),
    exponent=st.integers(-290, 290),
    absurd=st.sampled_from([np.nan, np.inf, -np.inf, 1e300, -1e300, 1e200, 1e30]),
    rate=st.sampled_from([0.0, 0.01, 0.3]),
    paired=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_no_crash_no_warning_and_never_out_of_the_domain(
    kind: str, domain: str, d: int, budget: int, exponent: int, absurd: float, rate: float, paired: bool, seed: int
) -> None:
    rng, mishaps = np.random.default_rng(seed), np.random.default_rng(seed + 1)
    A, inside = rng.normal(size=(50, d)), DOMAINS[domain]

    def fun(x: np.ndarray, i: int) -> float:
        if mishaps.random() < rate:
            return absurd
        return float(KINDS[kind](A[i] @ (x - 1.0), x)) * 10.0**exponent

    x0 = np.full(d, 1.0 / d) if domain == "simplex" else np.zeros(d)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = pc.minimize(
            fun, x0, sample=lambda rng: int(rng.integers(50)), paired=paired, domain=inside, budget=budget, seed=seed
        )
    assert np.isfinite(result.x).all()
    assert result.nfev <= budget
    assert inside is None or inside.for_dimension(d).contains(result.x)


@pytest.mark.parametrize("own", [1e-13, 1e-9, 1e-6])
def test_a_little_noise_of_its_own_is_taken_as_rounding(own: float) -> None:
    """As of sums whose order is not fixed, on threads or a GPU; xi is shared all the same."""
    d, rng = 20, np.random.default_rng(0)

    def fun(x: np.ndarray, xi: np.ndarray) -> float:
        value = float(((x - 1.0) ** 2).sum() + xi @ x + 50.0)
        return value * (1.0 + own * rng.uniform(-1.0, 1.0))

    for seed in range(10):
        result = pc.minimize(
            fun, np.zeros(d), sample=lambda rng: rng.normal(size=d), budget=4000, seed=seed, evaluate=0
        )
        assert float(((result.x - 1.0) ** 2).sum()) < 0.05 * d


def test_the_last_bit_of_float32_may_change() -> None:
    d, rng = 30, np.random.default_rng(0)
    A = np.random.default_rng(1).normal(size=(200, d))

    def fun(x: np.ndarray, i: int) -> float:
        value = np.float32(0.5 * (A[i] @ (x - 1.0)) ** 2)
        return float(np.nextafter(value, np.float32(np.inf if rng.random() < 0.5 else -np.inf)))

    for seed in range(3):
        result = pc.minimize(
            fun, np.zeros(d), sample=lambda rng: int(rng.integers(200)), budget=10_000, seed=seed, evaluate=0
        )
        assert float(((A @ (result.x - 1.0)) ** 2).mean()) < 0.5 * float(((A @ np.ones(d)) ** 2).mean())


# Numbers that were printed


@pytest.mark.parametrize("decimals", [4, 6, 9])
def test_a_program_may_print_its_result(decimals: int) -> None:
    solution = np.random.default_rng(0).normal(size=20)

    def printed(X: np.ndarray) -> np.ndarray:
        return np.round(np.sqrt(1.0 + (X - solution) ** 2).sum(axis=1), decimals)

    at_x0 = float(printed(np.zeros((1, 20)))[0]) - 20.0
    for seed in range(3):
        result = pc.minimize(printed, np.zeros(20), budget=4000, seed=seed, vectorized=True)
        assert float(np.sqrt(1.0 + (result.x - solution) ** 2).sum()) - 20.0 < 0.01 * at_x0
