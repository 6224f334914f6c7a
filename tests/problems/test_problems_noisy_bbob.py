"""COCO's noisy functions: what is under the noise is exact, and the noise is the published one, drawn from xi."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
from problems import refuses_to_build_without
from scipy import stats

from poem_cma.problems.black_box import BlackBox
from poem_cma.problems.noisy_bbob import BLACK_BOXES, Noiseless, cauchy, gauss, uniform

#: The function of the suite bbob that is under a function of the noisy suite, where there is one.
SAME = {103: 1, 106: 8, 109: 1, 112: 8, 115: 7, 121: 14, 124: 17, 130: 21}


@pytest.fixture(autouse=True)
def cocoex() -> Any:
    return pytest.importorskip("cocoex", reason="the noisy functions need coco-experiment")


def load(name: str) -> BlackBox:
    return BLACK_BOXES[name]()


def of(number: int, d: int = 5, instance: int = 1) -> BlackBox:
    (name,) = [name for name in BLACK_BOXES if name.startswith(f"f{number}-") and name.endswith(f"-d{d}-i{instance}")]
    return load(name)


def values(box: BlackBox, x: np.ndarray, number: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.array([box.fun(x, box.sample(rng)) for _ in range(number)])


def optimum(box: BlackBox) -> float:
    """min f, from a value that is not disturbed by the noise."""
    assert isinstance(box.judge, Noiseless)
    return box.judge.optimum


def test_the_names() -> None:
    assert len([name for name in BLACK_BOXES if name.startswith("f1")]) == 180
    assert len([name for name in BLACK_BOXES if name.startswith("bbob-")]) == 72
    assert {name.rsplit("-", 1)[1] for name in BLACK_BOXES} == {"i1", "i2", "i3"}
    assert {"f101-gauss-sphere-d5-i1", "f130-cauchy-gallagher-d20-i3", "bbob-f8-additive-d20-i2"} <= set(BLACK_BOXES)


@pytest.mark.parametrize("name", BLACK_BOXES)
def test_every_problem_is_least_at_the_known_point_and_evaluates_at_x0(name: str) -> None:
    box = load(name)
    assert isinstance(box.judge, Noiseless)
    start, least = box.judge(box.x0), box.judge(box.judge.best)
    assert 0.0 <= least < 1e-10
    assert start > 0.1
    assert (np.abs(box.x0) <= 4.0).all()
    assert box.box is not None
    assert (np.abs(box.judge.best) <= 5.0).all()
    xi, other = box.sample(np.random.default_rng(0)), box.sample(np.random.default_rng(1))
    value = box.fun(box.x0, xi)
    assert math.isfinite(value)
    assert box.fun(box.x0, xi) == value == load(name).fun(box.x0, xi)
    if "cauchy" not in name:  # where most values are equal
        assert box.fun(box.x0, other) != value
    assert not box.shared


@pytest.mark.parametrize("d", [5, 20])
@pytest.mark.parametrize("number", SAME)
def test_under_the_noise_is_the_function_without_noise(cocoex: Any, number: int, d: int) -> None:
    twin = cocoex.BareProblem("bbob", SAME[number], d, 2)
    f = Noiseless(number, d, 2)
    for x in np.random.default_rng(0).uniform(-5.0, 5.0, (5, d)):
        assert f(x) == pytest.approx(twin(x) - twin.best_value(), rel=1e-12, abs=1e-9)


def test_the_griewank_rosenbrock_function_is_a_tenth_of_the_one_without_noise(cocoex: Any) -> None:
    twin = cocoex.BareProblem("bbob", 19, 5, 1)
    f = Noiseless(127, 5, 1)
    for x in np.random.default_rng(0).uniform(-5.0, 5.0, (5, 5)):
        assert 10.0 * f(x) == pytest.approx(twin(x) - twin.best_value(), rel=1e-9)


def test_the_ellipsoid_has_a_condition_number_of_ten_thousand() -> None:
    f = Noiseless(118, 5, 1)
    directions = np.random.default_rng(0).normal(size=(4000, 5))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    curvatures = [f(f.best + 0.1 * v) / 0.01 for v in directions]
    assert 3e3 < max(curvatures) < 3e4
    assert min(curvatures) > 0.3


def test_functions_of_one_kind_differ_in_noise_alone() -> None:
    x = np.full(5, 0.3)
    assert of(107).judge(x) == of(108).judge(x) == of(109).judge(x)
    assert of(107).judge(x) == pytest.approx(of(101).judge(x), rel=1e-9)


def test_outside_the_box_there_is_a_penalty_without_noise() -> None:
    box, x = of(107), np.array([7.0, 0.0, 0.0, -6.0, 0.0])
    inside = np.linalg.norm(x - Noiseless(107, 5, 1).best) ** 2
    assert box.judge(x) == pytest.approx(inside + 500.0)
    assert (values(box, x, 200) - optimum(box)).min() > 500.0


def test_gaussian_noise_multiplies_by_a_log_normal_number() -> None:
    for number, beta in ((101, 0.01), (107, 1.0)):
        box = of(number)
        logs = np.log((values(box, box.x0, 4000) - optimum(box)) / box.judge(box.x0))
        assert stats.kstest(logs / beta, "norm").pvalue > 1e-3


def test_moderate_gaussian_noise_is_nearly_unbiased() -> None:
    box = of(101)
    ratios = (values(box, box.x0, 4000) - optimum(box)) / box.judge(box.x0)
    assert abs(ratios.mean() - math.exp(0.5e-4)) < 4.0 * ratios.std() / math.sqrt(4000)


def test_uniform_noise_has_its_published_mean() -> None:
    box = of(102)
    f = box.judge(box.x0)
    alpha = 0.01 * (0.49 + 0.2)
    power = math.log(1e9 / f) * alpha
    expected = f / 1.01 * math.expm1(power) / power  # E U^0.01 = 1 / 1.01, E c^(alpha U) = (c^alpha - 1) / log c^alpha
    found = values(box, box.x0, 4000) - optimum(box)
    assert abs(found.mean() - expected) < 4.0 * found.std() / math.sqrt(4000)


def test_cauchy_noise_leaves_most_values_alone() -> None:
    for number, alpha, p in ((103, 0.01, 0.05), (109, 1.0, 0.2)):
        box = of(number)
        shifts = values(box, box.x0, 4000) - optimum(box) - box.judge(box.x0) - 1.01e-8
        changed = np.abs(shifts - 1000.0 * alpha) > 1e-9
        assert abs(changed.mean() - p) < 4.0 * math.sqrt(p * (1.0 - p) / 4000)
        far = np.abs(shifts[changed] - 1000.0 * alpha) > alpha  # half of a Cauchy distribution is beyond 1
        assert abs(far.mean() - 0.5) < 4.0 * 0.5 / math.sqrt(changed.sum())


@pytest.mark.parametrize("number", [101, 102, 107, 108, 116, 129])
def test_values_are_distributed_as_those_of_the_package(cocoex: Any, number: int) -> None:
    suite = cocoex.Suite("bbob-noisy", "", f"function_indices:{number - 100} dimensions:5 instance_indices:1")
    noisy, box = suite.get_problem(0), of(number)
    theirs = [noisy(box.x0) for _ in range(2000)]
    assert stats.ks_2samp(theirs, values(box, box.x0, 2000)).pvalue > 1e-4


def test_noise_is_drawn_from_xi_alone() -> None:
    xi = (1.0, -2.0, 0.5, 0.25)
    assert gauss(3.0, xi, 1.0) == pytest.approx(3.0 * math.e)
    assert uniform(1e9, xi, 0.7, 1.0) == pytest.approx(5e8)
    assert uniform(10.0, xi, 0.5, 1.0) == pytest.approx(5.0 * 10.0)  # (1e9 / 10)^(0.5 / 4) = 10
    assert cauchy(3.0, xi, 1.0, 0.2) == 1003.0
    assert cauchy(3.0, xi, 1.0, 0.6) == 1003.5
    assert cauchy(3.0, (-1e9, 1.0, 0.0, 0.0), 1.0, 0.2) == 3.0


def test_at_the_least_point_there_is_no_noise() -> None:
    for number in (107, 108, 109):
        box = of(number)
        assert isinstance(box.judge, Noiseless)
        np.testing.assert_allclose(values(box, box.judge.best, 20), optimum(box), atol=1e-9)


def test_additive_noise_is_a_tenth_of_the_first_gap() -> None:
    box = load("bbob-f8-additive-d5-i1")
    sigma = 0.1 * box.judge(box.x0)
    x = np.full(5, 0.5)
    errors = values(box, x, 4000) - optimum(box) - box.judge(x)
    assert stats.kstest(errors / sigma, "norm").pvalue > 1e-3


def test_functions_can_be_sent_to_another_process() -> None:
    x = np.full(5, 0.5)
    for number in (8, 118):
        f = Noiseless(number, 5, 3)
        assert pickle.loads(pickle.dumps(f))(x) == f(x)


@pytest.mark.parametrize("number", [8, 118])
def test_a_point_that_is_no_number_has_no_value(number: int) -> None:
    assert math.isnan(Noiseless(number, 5, 1)(np.full(5, np.nan)))


def test_without_coco_names_are_listed_and_building_says_what_to_install() -> None:
    refuses_to_build_without("cocoex", "noisy_bbob", names=252, name="f101-gauss-sphere-d5-i1")
