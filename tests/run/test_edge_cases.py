"""Degenerate functions and extreme values: no NaN, no warning (warnings are errors here), the same progress."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from problems import hinge

import poem_cma as pc

NAMES = ["poem", "poem-cma", "auto"]
ALL = [
    pc.methods.auto(),
    pc.methods.poem_cma(),
    pc.methods.poem(),
    pc.methods.tpbco(lipschitz=1.0),
    pc.methods.tpge(lipschitz=1.0),
    pc.methods.rsnso(lipschitz=1.0),
]


def finite(result: pc.Result) -> bool:
    vectors = (result.x, result.x_last, result.x_average)
    return all(np.isfinite(v).all() for v in vectors) and all(np.isfinite(c).all() for c in result.history.values())


@pytest.mark.parametrize("method", ALL, ids=lambda m: m.name)
@pytest.mark.parametrize("value", [0.0, 3.0, -1e300, 1e-300])
def test_a_constant_function_leaves_x0_where_it_is(method: pc.Method, value: float) -> None:
    result = pc.minimize(lambda _: value, np.full(4, 0.2), method=method, domain=pc.Ball(1.0), budget=300, seed=0)
    assert (result.x_last == 0.2).all()
    np.testing.assert_allclose(result.x, 0.2, rtol=1e-14)  # an average of equal numbers, to rounding
    assert result.fun == value
    assert result.fun_stderr == 0.0
    assert finite(result)


def test_a_constant_function_has_dimension_zero() -> None:
    spectrum = pc.effective_dimension(lambda _: 1.0, np.zeros(4), seed=0)
    assert (spectrum.effective_dimension, spectrum.rank, spectrum.condition) == (0.0, 0, 1.0)


@pytest.mark.parametrize("method", ALL, ids=lambda m: m.name)
def test_one_dimension(method: pc.Method) -> None:
    result = pc.minimize(lambda x: abs(x[0] - 0.3), [0.0], method=method, domain=pc.Ball(1.0), budget=4000, seed=0)
    assert result.x == pytest.approx(0.3, abs=0.05)
    assert finite(result)


@pytest.mark.parametrize("method", ALL, ids=lambda m: m.name)
def test_an_optimum_at_x0_is_kept(method: pc.Method) -> None:
    result = pc.minimize(
        lambda x: np.abs(x).sum(), np.zeros(5), method=method, domain=pc.Ball(1.0), budget=6000, seed=0
    )
    assert np.abs(result.x).sum() < 0.2
    assert finite(result)


@pytest.mark.parametrize("factor", [1e-300, 1e-200, 1e200, 1e300])
@pytest.mark.parametrize("name", NAMES)
def test_extreme_values_make_the_same_progress(name: str, factor: float) -> None:
    P = hinge(d=6)
    settings: dict[str, Any] = {"sample": P.sample, "method": name, "domain": pc.Ball(1.0), "budget": 2000, "seed": 0}
    one = pc.minimize(P.fun, np.zeros(P.d), **settings)
    extreme = pc.minimize(lambda x, i: factor * P.fun(x, i), np.zeros(P.d), **settings)
    if name == "auto":  # rounding may turn one of its choices, but not its progress
        assert P.full(extreme.x) == pytest.approx(P.full(one.x), abs=0.02)
    else:
        np.testing.assert_allclose(extreme.x, one.x, rtol=1e-6, atol=1e-9)
        assert extreme.fun == pytest.approx(factor * one.fun, rel=1e-6)
        assert extreme.fun_stderr == pytest.approx(factor * one.fun_stderr, rel=1e-6)
    assert P.full(extreme.x) < 0.75 * P.full(np.zeros(P.d))


@pytest.mark.parametrize("factor", [1e-300, 1e300])
def test_spectra_of_extreme_values(factor: float) -> None:
    a = np.array([3.0, 1.0, 0.5])
    one = pc.effective_dimension(lambda x: a @ x, np.zeros(3), samples=40, seed=0)
    extreme = pc.effective_dimension(lambda x: factor * (a @ x), np.zeros(3), samples=40, seed=0)
    assert extreme.effective_dimension == pytest.approx(one.effective_dimension)
    assert extreme.rank == one.rank


def test_slopes_that_grow_by_hundreds_of_orders_of_magnitude() -> None:
    """The unit of F follows the steepest slope seen; the first slopes are then negligible."""
    calls = 0

    def fun(x: np.ndarray) -> float:
        nonlocal calls
        calls += 1
        return float(np.abs(x - 1.0).sum()) * (1e-300 if calls < 50 else 1e250)

    result = pc.minimize(fun, np.zeros(3), method="poem", budget=4000, seed=0)
    assert finite(result)
    assert np.abs(result.x_last - 1.0).sum() < 1.0


def test_a_single_point_is_refused() -> None:
    with pytest.raises(ValueError, match="single point"):
        pc.minimize(lambda x: x.sum(), [1.0, 2.0], domain=pc.Box([1.0, 2.0], [1.0, 2.0]), budget=100)


def test_fixed_variables_are_never_moved() -> None:
    seen = []
    box = pc.Box([0.0, 2.0, -np.inf], [1.0, 2.0, np.inf])
    result = pc.minimize(
        lambda x: seen.append(x[1]) or float((x**2).sum()), [0.5, 2.0, 1.0], domain=box, budget=500, seed=0
    )
    assert set(seen) == {2.0}
    assert result.x[1] == 2.0
    assert abs(result.x[2]) < 1.0


def test_a_large_dimension_needs_no_square_matrix() -> None:
    d = 100_000
    a = np.zeros(d)
    a[:3] = 5.0
    result = pc.minimize(lambda x: a @ x, np.zeros(d), method=pc.methods.poem_cma(samples=20), budget=80, seed=0)
    assert result.spectrum is not None
    assert result.spectrum.vectors.shape == (d, result.spectrum.rank)
    assert finite(result)


def test_a_ridge_that_is_almost_nothing() -> None:
    """The smallest eigenvalue is 290 orders of magnitude below the largest."""
    method = pc.methods.poem_cma(tol=0.0, samples=3, ridge=1e-290, whitening="exact")
    result = pc.minimize(lambda x: float(np.abs(x).sum()), np.ones(6), method=method, budget=200, seed=0)
    assert finite(result)
