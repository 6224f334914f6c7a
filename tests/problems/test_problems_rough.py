"""The suite of rough functions: samples, judges, known minima, and what makes each of them rough."""

from __future__ import annotations

import sys
from math import isfinite
from typing import Any

import numpy as np
import pytest

from poem_cma.problems import rough
from poem_cma.problems.black_box import BlackBox
from poem_cma.problems.rough import bounds
from poem_cma.problems.suites import black_boxes

NAMES = list(rough.BLACK_BOXES)
QUADRATICS = [name for name in NAMES if name.startswith("quadratic-")]
FAMILY = [name for name in QUADRATICS if "-10pct-" not in name]  # the level of noise does not change f
ROUNDED = [name for name in NAMES if name.startswith(("stairs", "one-integer"))]


def build(name: str) -> BlackBox:
    if name.startswith("zero-one"):
        pytest.importorskip("sklearn", reason="the data comes from scikit-learn")
    return rough.BLACK_BOXES[name]()


def near(box: BlackBox, rng: np.random.Generator, size: float) -> np.ndarray:
    x = box.x0 + size * rng.standard_normal(box.d)
    return x if box.domain is None else box.domain.project(x)


def test_the_names() -> None:
    assert black_boxes("rough") == NAMES
    assert len(QUADRATICS) == 54
    assert set(rough.LEAST) == {name for name in NAMES if not name.startswith(("queue", "zero-one"))}
    assert len(set(rough.CORE)) == len(rough.CORE)
    assert set(rough.CORE) - set(QUADRATICS) == set(NAMES) - set(QUADRATICS)
    six = [name.split("-")[1:] for name in rough.CORE if name in QUADRATICS]
    assert [len(set(part)) for part in zip(*six, strict=True)] == [3, 3, 2, 3]


@pytest.mark.parametrize("name", NAMES)
def test_a_record_is_whole(name: str) -> None:
    box = build(name)
    assert (box.name, box.suite) == (name, "rough")
    assert box.shared != (name.endswith("-own") or name == "noise-vanishes" or name in QUADRATICS)
    if box.domain is not None:
        assert np.array_equal(box.domain.project(box.x0), box.x0)
        assert box.box is not None
    assert isfinite(box.judge(box.x0))


@pytest.mark.parametrize("name", NAMES)
def test_equal_samples_give_equal_values(name: str) -> None:
    box, again, rng = build(name), build(name), np.random.default_rng(1)
    samples = [box.sample(rng) for _ in range(4)]
    points = [box.x0, near(box, rng, 0.5)]
    values = [box.fun(x, xi) for x in points for xi in samples]
    assert values == [again.fun(x, xi) for x in points for xi in samples]
    assert all(type(value) is float for value in values)
    away = [box.fun(points[1], box.sample(rng)) for _ in range(20)]
    assert len(set(away)) > 1
    repeated = box.sample(np.random.default_rng(3)), box.sample(np.random.default_rng(3))
    assert np.array_equal(*repeated)


@pytest.mark.parametrize("name", NAMES)
def test_the_judge_is_the_mean_over_samples(name: str) -> None:
    box, rng = build(name), np.random.default_rng(2)
    number = {"queue": 300, "queue-own": 300, "rounded-simulator": 10_000}.get(name, 3000)
    points = [box.x0, near(box, rng, 0.3), near(box, rng, 2.0)]
    if name in rough.LEAST:
        points.append(rough.LEAST[name]()[0])
    for x in points:
        values = np.array([box.fun(x, box.sample(rng)) for _ in range(number)])
        middle, error = centre(values, robust=name.startswith("outliers"))
        if name.startswith("queue"):  # the judge has samples of its own
            error *= np.sqrt(1.0 + number / 400.0)
        assert abs(middle - box.judge(x)) <= 4.5 * error + 1e-12


def centre(values: np.ndarray, robust: bool) -> tuple[float, float]:
    """The mean and its standard error, or the median and its standard error where there is no mean."""
    if not robust:
        return float(values.mean()), float(values.std() / np.sqrt(len(values)))
    rank = np.sort(values)
    half = round(np.sqrt(len(values)) / 2.0)  # a standard deviation of the rank of the median
    return float(np.median(values)), float(rank[len(values) // 2 + half] - rank[len(values) // 2 - half]) / 2.0


@pytest.mark.parametrize("name", list(rough.LEAST))
def test_the_known_minimum_is_one(name: str) -> None:
    box, rng = build(name), np.random.default_rng(4)
    minimiser, least = rough.LEAST[name]()
    assert box.judge(minimiser) == pytest.approx(least, abs=1e-12)
    assert least + 0.5 < box.judge(box.x0)
    if box.domain is not None:
        assert np.array_equal(box.domain.project(minimiser), minimiser)
    for size in 10.0 ** rng.uniform(-4.0, 0.5, size=300):
        x = minimiser + size * rng.standard_normal(box.d) * (rng.random(box.d) < rng.choice([0.2, 1.0]))
        assert box.judge(x if box.domain is None else box.domain.project(x)) >= least - 1e-12


@pytest.mark.parametrize("name", ROUNDED)
def test_rounded_variables_are_flat_within_a_step_and_real_ones_are_not(name: str) -> None:
    box, rng = build(name), np.random.default_rng(5)
    rounded = slice(20, None) if name.startswith("one") else slice(box.d // 2, None)
    xi = box.sample(rng)
    for _ in range(20):
        x = rng.uniform(-1.0, 5.0, box.d)
        x[rounded] = np.floor(x[rounded])
        other = x.copy()
        other[rounded] += rng.uniform(-0.5, 0.499, len(x[rounded]))
        assert box.fun(other, xi) == box.fun(x, xi)
        assert box.judge(other) == box.judge(x)
        x[0] += 1e-3
        assert box.fun(x, xi) != box.fun(other, xi)


def test_stairs_start_on_an_edge_or_off_it() -> None:
    for name in ("stairs-on", "stairs-on-own"):
        box = build(name)
        assert box.judge(box.x0 - [0.0, 0.0, 1e-9, 0.0]) == box.judge(box.x0) + 5.0  # (0 - 3)^2 instead of (1 - 3)^2
    for name in ("stairs-off", "stairs-off-own", "stairs-8"):
        box = build(name)
        assert box.judge(box.x0 + np.repeat([0.0, 0.49], box.d // 2)) == box.judge(box.x0)


@pytest.mark.parametrize("name", ["one-integer", "one-integer-own"])
def test_the_integer_has_more_than_half_of_the_gap(name: str) -> None:
    box = build(name)
    x, least = rough.LEAST[name]()
    x[20] = box.x0[20]
    assert box.score(x, least) == pytest.approx(9.0 / 14.0)


def test_the_rounded_simulator_answers_in_hundredths() -> None:
    box, rng = build("rounded-simulator"), np.random.default_rng(6)
    xi = box.sample(rng)
    values = np.array([box.fun(near(box, rng, 0.5), xi) for _ in range(200)])
    assert np.abs(100.0 * values - np.rint(100.0 * values)).max() < 1e-9
    assert box.fun(box.x0, xi) == box.fun(box.x0 + 1e-7, xi)
    assert isfinite(box.fun(np.full(6, 1e6), xi))


@pytest.mark.parametrize("name", ["zero-one-cancer", "zero-one-digits"])
def test_the_error_depends_on_the_direction_of_the_weights_alone(name: str) -> None:
    box, rng = build(name), np.random.default_rng(7)
    w = rng.standard_normal(box.d)
    for _ in range(10):
        batch = box.sample(rng)
        value = box.fun(w, batch)
        assert len(set(batch.tolist())) == 100
        assert value == box.fun(1024.0 * w, batch) == box.fun(w / 1024.0, batch)
        assert 100.0 * value == pytest.approx(round(100.0 * value))


def test_linear_classifiers_can_be_much_better_than_at_x0() -> None:
    """The difference of the classes' means is a classifier, and so are the means of the ten digits."""
    datasets = pytest.importorskip("sklearn.datasets", reason="the data comes from scikit-learn")
    features, labels = datasets.load_breast_cancer(return_X_y=True)
    A = (features - features.mean(axis=0)) / features.std(axis=0)
    means = np.array([A[labels == k].mean(axis=0) for k in (0, 1)])
    w = np.append(means[1] - means[0], 0.5 * (means[0] @ means[0] - means[1] @ means[1]))
    box = build("zero-one-cancer")
    assert box.judge(box.x0) == pytest.approx(357 / 569)  # all are called malignant
    assert box.judge(w) < 0.1
    features, labels = datasets.load_digits(return_X_y=True)
    means = np.array([features[labels == k].mean(axis=0) for k in range(10)]) / 16.0
    box = build("zero-one-digits")
    assert box.judge(box.x0) == pytest.approx(np.mean(labels != 0))
    assert box.judge(np.column_stack([means, -0.5 * (means**2).sum(axis=1)]).ravel()) < 0.2


@pytest.mark.parametrize("name", ["zero-one-cancer", "zero-one-digits"])
def test_hyperplanes_separate_the_classes(name: str) -> None:
    datasets = pytest.importorskip("sklearn.datasets", reason="the data comes from scikit-learn")
    linear_model = pytest.importorskip("sklearn.linear_model", reason="it finds the hyperplanes")
    if name == "zero-one-cancer":
        features, labels = datasets.load_breast_cancer(return_X_y=True)
        A, C = (features - features.mean(axis=0)) / features.std(axis=0), 1e8
    else:
        features, labels = datasets.load_digits(return_X_y=True)
        A, C = features / 16.0, 100.0
    model = linear_model.LogisticRegression(C=C, max_iter=20_000).fit(A, labels)
    assert build(name).judge(np.column_stack([model.coef_, model.intercept_]).ravel()) == 0.0


def test_without_scikit_learn_the_error_says_what_to_install(monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ImportError, match=r"^digits needs scikit-learn, but sklearn.datasets is missing: pip install "):
        rough.BLACK_BOXES["zero-one-digits"]()


@pytest.mark.parametrize(("name", "at_least"), [("ripples-rastrigin-own", 1), ("ripples-griewank", 3)])
def test_there_are_local_minima_on_the_way(name: str, at_least: int) -> None:
    box = build(name)
    minimiser, _ = rough.LEAST[name]()
    path = np.tile(minimiser, (2001, 1))
    path[:, 0] = np.linspace(box.x0[0], minimiser[0], 2001)
    values = np.array([box.judge(x) for x in path])
    assert np.count_nonzero((values[1:-1] < values[:-2]) & (values[1:-1] < values[2:])) >= at_least
    if name == "ripples-rastrigin-own":
        assert np.linalg.norm(box.x0 - minimiser) == pytest.approx(3.0, abs=0.1)


def test_a_wall_is_high_and_finite() -> None:
    box = build("wall")
    minimiser, least = rough.LEAST["wall"]()
    assert np.all((minimiser > box.domain.lower) & (minimiser < 0.05 * box.domain.upper))
    xi = box.sample(np.random.default_rng(10))
    for value in (box.judge(box.domain.lower), box.fun(box.domain.lower, xi), box.fun(np.full(8, -1.0), xi)):
        assert 1e4 * box.judge(box.x0) < value < np.inf
    assert least == pytest.approx(2.0 * (bounds.PULL @ minimiser))


def test_one_variable_acts_through_its_logarithm() -> None:
    box = build("log-variable")
    minimiser, _ = rough.LEAST["log-variable"]()
    for decades in (-1.0, 0.5, 2.0, 3.0):
        assert box.judge(minimiser * [10.0**decades, 1.0, 1.0, 1.0]) == pytest.approx(decades**2)
    assert np.log10(box.x0[0] / minimiser[0]) == pytest.approx(2.5)
    assert isfinite(box.fun(np.zeros(4), box.sample(np.random.default_rng(11))))


def test_noise_vanishes_at_x0_and_grows_with_the_distance() -> None:
    box, rng = build("noise-vanishes"), np.random.default_rng(12)
    samples = [box.sample(rng) for _ in range(500)]
    step = np.array([3.0, 0.0, 4.0, 0.0, 0.0])
    assert len({box.fun(box.x0, xi) for xi in samples}) == 1
    spreads = [np.std([box.fun(box.x0 + scale * step, xi) for xi in samples]) for scale in (0.01, 0.1, 1.0)]
    assert spreads == pytest.approx([spreads[0], 10.0 * spreads[0], 100.0 * spreads[0]])
    assert spreads[2] == pytest.approx(2.5, rel=0.15)


@pytest.mark.parametrize("name", ["outliers", "outliers-own"])
def test_a_twentieth_of_the_samples_are_outliers(name: str) -> None:
    box, rng = build(name), np.random.default_rng(13)
    off = np.abs([box.fun(box.x0, box.sample(rng)) - box.judge(box.x0) for _ in range(20_000)])
    assert np.mean(off) > 3.0 * np.median(off)
    assert off.max() > 500.0
    if name == "outliers-own":  # beyond 5 a normal error of 0.2 has nothing, and a Cauchy of scale 5 has a half
        assert np.mean(off > 5.0) == pytest.approx(0.025, rel=0.1)


@pytest.mark.parametrize("name", FAMILY)
def test_a_quadratic_has_its_condition_and_place(name: str) -> None:
    _, condition, dimension, _, where = name.split("-")
    box = build(name)
    minimiser, least = rough.LEAST[name]()
    d = int(dimension[1:])
    assert box.d == d
    assert box.judge(box.x0) - least == pytest.approx(1.0)
    base, axes = box.judge(np.zeros(d)), np.eye(d)
    single = np.array([box.judge(row) for row in axes])
    H = np.array([[box.judge(axes[i] + axes[j]) for j in range(d)] for i in range(d)]) - single - single[:, None] + base
    values = np.linalg.eigvalsh(H)
    assert values[-1] / values[0] == pytest.approx(float(condition), rel=1e-5)
    slope = np.array([box.judge(minimiser + row) - box.judge(minimiser - row) for row in axes]) / 2.0
    close = 1.0 - np.abs(minimiser)
    third = -(-d // 3)
    if where == "on":
        held = close == 0.0
        assert held.sum() == third
        assert np.all(slope[held] * minimiser[held] < -0.01 * np.abs(slope).max())
        assert np.abs(slope[~held]).max() < 1e-8
        assert box.judge(minimiser + 1e-3 * np.where(held, minimiser, 0.0)) < least
    else:
        assert np.abs(slope).max() < 1e-8
        assert (close < 0.02).sum() == (third if where == "near" else 0)
        assert close.min() > 0.0


@pytest.mark.parametrize("name", QUADRATICS)
def test_the_noise_of_a_quadratic_is_a_share_of_the_first_gap(name: str) -> None:
    box, rng = build(name), np.random.default_rng(14)
    share = 0.1 if "-10pct-" in name else 0.01
    values = [box.fun(box.x0, box.sample(rng)) for _ in range(2000)]
    assert np.std(values) == pytest.approx(share, rel=0.1)


@pytest.mark.parametrize("name", ["stairs-off", "queue-own"])
def test_the_library_solves_with_and_without_samples(name: str) -> None:
    box = build(name)
    result = box.solve(method="poem", budget=60, seed=0)
    assert box.domain is None or np.allclose(box.domain.project(result.x), result.x)
    assert isfinite(box.judge(result.x))
