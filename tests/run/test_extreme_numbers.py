"""Numbers at both ends of floating point: values of 1e308, domains of 1e-300. Warnings are errors here."""

from __future__ import annotations

from fractions import Fraction
from math import isnan, sqrt
from typing import Any

import numpy as np
import pytest

import poem_cma as pc
from poem_cma.run.arithmetic import mean_and_error

METHODS = {
    "auto": pc.methods.auto(),
    "near": pc.methods.near(),
    "far": pc.methods.far(),
    "poem": pc.methods.poem(),
    "poem-cma": pc.methods.poem_cma(samples=20),
    "tpbco": pc.methods.tpbco(lipschitz=2.0, diameter=2.0),
    "tpge": pc.methods.tpge(lipschitz=2.0, diameter=2.0),
    "rsnso": pc.methods.rsnso(lipschitz=2.0, distance=2.0),
}
DOMAINS = {"none": None, "ball": pc.Ball(1.0), "box": pc.Box(-1.0, 1.0)}


def draw(rng: np.random.Generator) -> float:
    return float(rng.random())


@pytest.mark.parametrize("size", [1e308, -1e308, 1e160, "both"])
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_huge_values_in_three_of_ten_evaluations_end_no_run(method: pc.Method, size: Any) -> None:
    """Whether they come with the sample or by themselves."""

    def value(x: np.ndarray, u: float) -> float:
        if u < 0.3:
            return size if size != "both" else 1e308 if u < 0.15 else -1e308
        return float(((np.clip(x, -1e100, 1e100) - 0.3) ** 2).sum() + 0.1 * u)

    rng = np.random.default_rng(0)
    for fun, sample in ((value, draw), (lambda x: value(x, rng.random()), None)):
        for domain in DOMAINS.values():
            result = pc.minimize(fun, np.zeros(4), sample=sample, domain=domain, method=method, budget=600, seed=0)
            assert result.nfev <= 600
            assert np.isfinite(result.x).all()
            assert np.isfinite(result.x_last).all()
            assert not isnan(result.fun)
            if domain is not None:
                assert as_set(domain).contains(result.x)


def as_set(domain: Any) -> Any:
    return domain.for_dimension(4)


def test_a_step_that_would_leave_the_range_of_numbers_is_not_taken() -> None:
    """One value of 1e308 at the tenth call; the other steps are as if it had not been."""
    calls = iter(range(1000))

    def fun(x: np.ndarray) -> float:
        return 1e308 if next(calls) == 10 else float(abs(x).sum())

    result = pc.minimize(fun, np.ones(3), method=METHODS["tpbco"], budget=400, seed=0, evaluate=0)
    assert abs(result.x_last).max() < 3.0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("radius", [1e-25, 1e-160, 1e-300, 1e-310, 5e-324])
@pytest.mark.parametrize("method", ["auto", "poem", "poem-cma"])
def test_a_tiny_domain_is_searched_or_refused_with_a_reason(method: str, radius: float, dtype: Any) -> None:
    def fun(x: np.ndarray) -> float:
        return float((np.float64(1.0) * x / radius).sum()) if radius > 1e-305 else 0.0

    for inside in (False, True):
        domain = pc.Ball(radius, outside=not inside)
        if radius / 10.0 < np.finfo(dtype).tiny:
            with pytest.raises(ValueError, match=r"the search would begin with a distance of .* in smaller units"):
                pc.minimize(fun, np.zeros(4, dtype), domain=domain, method=method, budget=300, seed=0)
        else:
            result = pc.minimize(fun, np.zeros(4, dtype), domain=domain, method=method, budget=300, seed=0)
            assert domain.for_dimension(4).contains(result.x)
            assert fun(result.x) < -1.0  # the least value is -2


def test_a_scale_that_the_precision_of_x0_does_not_hold_is_refused() -> None:
    for scale in (1e-300, [1.0, 1e-300], 1e300):
        with pytest.raises(ValueError, match="scale must be positive and finite, as numbers of float32"):
            pc.minimize(lambda x: 0.0, np.zeros(2, np.float32), scale=scale, budget=100)


@pytest.mark.parametrize("size", [1.0, 5e-324, 1e-300, 1e300, 1.7e308])
def test_the_mean_and_its_error_are_those_of_exact_arithmetic(size: float) -> None:
    for values in ([0.25, 1.0, -1.0, 0.5, 1.0], [1.0, -1.0], [-1.0, -1.0], [0.0, 0.0], [1.0]):
        given = [v * size for v in values]
        n = len(given)
        exact = [Fraction(v) for v in given]
        mean = sum(exact) / n
        found, error = mean_and_error(np.array(given))
        assert found == pytest.approx(float(mean), rel=1e-14, abs=0.0)
        if n == 1:
            assert isnan(error)
            continue
        unit = Fraction(size)
        spread = sqrt(sum(((v - mean) / unit) ** 2 for v in exact) / (n - 1) / n)
        assert error == pytest.approx(float(Fraction(spread) * unit), rel=1e-12, abs=0.0)
