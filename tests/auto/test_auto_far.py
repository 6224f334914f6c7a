"""Far: pairs at a distance, a learned covariance, and a step size that respects noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from auto_helpers import Draws, begun, drive, numbered
from inside import state_of
from statistics_helpers import assert_unbiased

import poem_cma as pc
from poem_cma.auto.far import generation, noise
from poem_cma.auto.far.curvature import bend
from poem_cma.auto.far.rates import population, rates
from poem_cma.auto.far.state import Far, begin, decomposed


def asked(far: Far, run: Any, draws: Draws, address: int) -> np.ndarray:
    """The points of the pairs, without the centre and those that are repeated."""
    (first, *_) = generation.requests(far, run, draws, address)
    X = np.array(list(first.points()))[1:]
    return X[: population(len(far.x))]


# Rates


@pytest.mark.parametrize("size", [6, 8, 20])
@pytest.mark.parametrize("d", [2, 3, 10, 40, 99])
def test_rates_are_the_published_defaults(d: int, size: int) -> None:
    cma = pytest.importorskip("cma", reason="compares with the package cma")
    strategy = cma.CMAEvolutionStrategy(np.zeros(d), 1.0, {"popsize": size, "verbose": -9})
    ours, theirs = rates(d, size, True), strategy.sp
    np.testing.assert_allclose(ours.positive + ours.negative, np.array(theirs.weights), rtol=1e-9)
    np.testing.assert_allclose(
        [ours.mu_eff, ours.c_1, ours.c_mu, ours.c_c, ours.chi],
        [theirs.weights.mueff, theirs.c1, theirs.cmu, theirs.cc, strategy.const.chiN],
        rtol=1e-9,
    )


@pytest.mark.parametrize("d", [1, 2, 10, 1000])
def test_the_step_size_has_the_rates_of_the_tutorial(d: int) -> None:
    r = rates(d, population(d), d <= 100)
    assert r.c_sigma == pytest.approx((r.mu_eff + 2) / (d + r.mu_eff + 5))
    assert r.d_sigma == pytest.approx(1 + 2 * max(0.0, np.sqrt((r.mu_eff - 1) / (d + 1)) - 1) + r.c_sigma)
    assert r.positive.sum() == pytest.approx(1.0)
    assert 0.0 < r.c_1 + r.c_mu <= 1.0
    assert population(d) % 2 == 0


@pytest.mark.parametrize("d", [1, 3, 30, 200])
def test_a_diagonal_covariance_never_loses_its_definiteness(d: int) -> None:
    """The factor with which C is kept, less the most that negative weights take from it, is positive."""
    r = rates(d, population(d), False)
    keep = 1 - r.c_1 - r.c_mu * (r.positive.sum() + r.negative.sum())
    assert keep + d * r.c_mu * r.negative.sum() >= -1e-12


# Samples


@pytest.mark.parametrize("d", [2, 5, 30])
def test_pairs_are_mirrored_orthogonal_and_have_the_covariance(d: int) -> None:
    s, draws = begun(np.zeros(d))
    A = np.random.default_rng(0).normal(size=(d, d))
    C = A @ A.T / d + 0.1 * np.eye(d)
    far = begin(np.ones(d), 1.0)._replace(sigma=0.5, shape=decomposed(C))
    half = population(d) // 2
    squares = []
    for address in range(3000):
        Y = (asked(far, s.run, draws, address) - far.x) / far.sigma
        np.testing.assert_allclose(Y[:half], -Y[half:], atol=1e-12)
        Z = far.shape.whiten(Y[: min(half, d)])
        products = Z @ Z.T
        assert np.abs(products - np.diag(np.diag(products))).max() < 1e-9
        squares.append((Y[:half].T @ Y[:half] / half)[np.triu_indices(d)])
    assert_unbiased(np.array(squares), C[np.triu_indices(d)])


# Bounds

DOMAINS: dict[str, Any] = {
    "box": lambda d: pc.Box(0.0, 1.0),
    "ball": lambda d: pc.Ball(1.0),
    "simplex": lambda d: pc.Simplex(),
}


@pytest.mark.parametrize("d", [2, 6, 15])
@pytest.mark.parametrize("name", DOMAINS)
def test_a_minimum_on_a_bound_is_found_with_noise_of_its_own(name: str, d: int) -> None:
    """f is linear, so its minimum is a corner. The noise of an evaluation is a tenth of the fall from x0."""
    domain = DOMAINS[name](d).for_dimension(d)
    a = np.random.default_rng(d).uniform(0.5, 1.5, size=d)
    x0 = domain.project(np.full(d, 0.5) if name == "box" else np.zeros(d) if name == "ball" else np.full(d, 1.0 / d))
    best = {"box": 0.0, "ball": -float(np.linalg.norm(a)), "simplex": float(a.min())}[name]
    fall = float(a @ x0) - best
    ends = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        opt = pc.Optimizer(x0, method="far", domain=domain, budget=4000, seed=seed)
        while (probe := opt.ask()) is not None:
            for x in probe.points:
                assert np.allclose(domain.project(x), x, rtol=0.0, atol=1e-12)
            opt.tell(probe, [float(a @ x) + 0.1 * fall * rng.normal() for x in probe.points])
        ends.append((float(a @ opt.result().x) - best) / fall)
    assert np.median(ends) < 0.15
    assert min(ends) >= -1e-12


@pytest.mark.parametrize("method", ["auto", "near", "far"])
@pytest.mark.parametrize("name", DOMAINS)
def test_no_evaluation_leaves_the_domain(name: str, method: str) -> None:
    d = 5
    domain = DOMAINS[name](d).for_dimension(d)
    for seed in range(3):
        opt = pc.Optimizer(domain.project(np.full(d, 0.9)), method=method, domain=domain, budget=1500, seed=seed)

        def f(x: np.ndarray, n: int) -> float:
            assert np.allclose(domain.project(x), x, rtol=0.0, atol=1e-12)
            return float(abs(numbered(n).normal(size=d) @ (x - 0.1)))

        drive(opt, f)


# Kinds of functions


@pytest.mark.parametrize("d", [1, 2, 10, 120])
def test_the_sphere_converges(d: int) -> None:
    """Log-linearly: in twice the evaluations the gap is squared, within a factor in the exponent."""

    def gap(budget: int) -> float:
        result = pc.minimize(lambda x: float(((x - 1.0) ** 2).sum()), np.zeros(d), method="far", budget=budget, seed=0)
        return float(((result.x - 1.0) ** 2).sum()) / d

    first = gap(80 * (d + 4))
    assert first < 0.1
    assert (
        gap(160 * (d + 4)) < first**1.5 + 1e-12
    )  # where values are rounded, squares of 1e-16 and not much less can be seen


def test_variables_that_are_rounded() -> None:
    goal = np.array([3, -7, 12, 0, 5])

    def away(x: np.ndarray) -> float:
        return float((np.round(x) - goal) @ (np.round(x) - goal))

    ends = [away(pc.minimize(away, np.zeros(5), budget=2000, seed=seed).x) for seed in range(5)]
    assert np.median(ends) == 0.0


def test_an_objective_that_counts() -> None:
    """Of 2000 examples, how many a linear classifier gets wrong, on a sample of 50 at a time."""
    rng = np.random.default_rng(4)
    A, w = rng.normal(size=(2000, 6)), np.ones(6)
    y = A @ w > 0.0

    def wrong(x: np.ndarray, rows: np.ndarray) -> float:
        return float(np.count_nonzero((A[rows] @ x > 0.0) != y[rows]))

    x0 = w + 1.5 * rng.normal(size=6)
    every = np.arange(2000)
    ends = [
        wrong(pc.minimize(wrong, x0, sample=lambda r: r.integers(2000, size=50), budget=2000, seed=seed).x, every)
        for seed in range(5)
    ]
    assert np.median(ends) < 0.35 * wrong(x0, every)


# Noise


@pytest.mark.parametrize("kind", ["none", "own", "half"])
def test_the_share_of_noise_is_measured(kind: str) -> None:
    """Of D = f + e, with e new in every evaluation, the share is E e^2 / E D^2: over runs, in standard errors.

    It does not depend on the unit of the values, which falls by a factor of ten from generation to generation.
    """
    change, size = {"none": (1.0, 0.0), "own": (0.0, 1.0), "half": (1.0, 1.0)}[kind]
    expected = size**2 / (size**2 + change**2)
    shares = []
    for seed in range(400):
        rng, s = np.random.default_rng(seed), noise.begin()
        for k in range(40):
            f = change * rng.choice((-1.0, 1.0), 4)
            up = np.concatenate([0.5 * f, -0.5 * f])
            first, again = (10.0**-k * (up + size * rng.normal(size=8) / np.sqrt(2.0)) for _ in range(2))
            s = noise.update(s._replace(wait=0), first, slice(None), again)
        shares.append(1.0 - s.both / s.all)
    if kind == "none":
        assert max(shares) < 1e-12
    else:
        # the ratio of two means of n = 10 effective terms is biased by order 1 / n; outliers are cut at three
        error = np.std(shares) / np.sqrt(len(shares))
        assert abs(np.mean(shares) - expected) < 4.0 * error + 0.1 * (kind == "half")


@pytest.mark.parametrize(("own", "of_samples"), [(0.0, 0.0), (3.0, 0.0), (0.0, 3.0)])
def test_noise_is_seen_in_a_run(own: float, of_samples: float) -> None:
    """Pure noise of an evaluation, pure noise of samples, and none, on a slope of length one.

    The share is measured on the last ten or so repeated differences: over runs, in standard errors.
    """
    d, shares = 5, []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        opt = pc.Optimizer(np.zeros(d), method="far", domain=pc.Ball(1.0), budget=1500, seed=seed)

        def f(x: np.ndarray, n: int, rng: np.random.Generator = rng, seed: int = seed) -> float:
            ways = np.random.default_rng([seed, n]).normal(size=d)
            return float(0.01 * x[0] + own * rng.normal() + of_samples * ways @ x)

        shares.append(noise.share(state_of(drive(opt, f)).search.noise))
    noisy = own + of_samples > 0.0
    assert np.median(shares) > noise.RULES if noisy else max(shares) == 0.0
    error = np.std(shares, ddof=1) / np.sqrt(len(shares))
    assert abs(np.mean(shares) - noisy) < 4.0 * error + 0.1  # a share is no more than one


def test_pure_noise_makes_steps_shorter_and_shorter() -> None:
    """After n generations of it the learning rate is (1 + n / 5)^(-1/2); where noise falls, the rate grows again."""
    rng, s, seen_rates = np.random.default_rng(0), noise.begin(), []
    for _ in range(400):
        first, again = rng.normal(size=(2, 8))
        s = noise.update(s, first, slice(None), again)
        seen_rates.append(s.rate)
    for n in (50, 200, 400):
        assert seen_rates[n - 1] == pytest.approx((1.0 + n / 5.0) ** -0.5, rel=0.3)
    clear = np.concatenate([np.ones(4), -np.ones(4)])
    for _ in range(2000):
        s = noise.update(s, clear, slice(None), clear)
    assert s.rate == 1.0


def test_one_outlier_does_not_make_noise_rule() -> None:
    s, F = noise.begin(), np.array([1.0, 0.0])
    for k in range(20):
        again = np.array([1.0 if k != 10 else 1e9, 0.0])
        s = noise.update(s._replace(wait=0), F, slice(None), again)
    assert not noise.rules(s)


@pytest.mark.parametrize("sigma", [0.3, 3.0])
def test_a_bowl_with_noise_of_its_own_is_found(sigma: float) -> None:
    """After n evaluations the gap is a small part of what a single difference can tell."""
    d = 6
    ends = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        result = pc.minimize(
            lambda x, rng=rng: float(((x - 1.0) ** 2).sum() + sigma * rng.normal()), np.zeros(d), budget=4000, seed=seed
        )
        ends.append(float(((result.x - 1.0) ** 2).sum()) / d)
    assert np.median(ends) < 0.05 * max(1.0, sigma)


# Curvature


@pytest.mark.parametrize("condition", [10.0, 1e4])
def test_curvatures_keep_the_determinant_and_lower_the_condition(condition: float) -> None:
    """Of H^(1/2) C H^(1/2), which is one where pairs see every direction alike."""
    d, rng = 6, np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(d, d)))[0]
    H = (Q * np.geomspace(1.0, condition, d)) @ Q.T
    root = (Q * np.sqrt(np.geomspace(1.0, condition, d))) @ Q.T
    shape, sums = begin(np.zeros(d), 1.0).shape, np.zeros(3)
    seen = [np.linalg.cond(root @ shape.C @ root)]
    for _ in range(60):
        Z = np.linalg.qr(rng.normal(size=(d, d)))[0][:4] * np.sqrt(d)
        Y = shape.stretch(Z)
        k = np.einsum("ij,jk,ik->i", Y, H, Y) / (shape.whiten(Y) ** 2).sum(axis=1)
        shape, sums = bend(shape, sums, Y, k, noise.begin())
        assert np.linalg.slogdet(shape.C)[1] == pytest.approx(0.0, abs=1e-6)
        seen.append(np.linalg.cond(root @ shape.C @ root))
    assert seen[-1] < 1.1 * condition**0.3


def test_curvatures_that_are_noise_change_nothing() -> None:
    d, rng = 5, np.random.default_rng(1)
    shape, sums = begin(np.zeros(d), 1.0).shape, np.zeros(3)
    before = shape.C.copy()
    pure = noise.begin()._replace(seen=10.0, all=1.0, both=0.0)
    for _ in range(20):
        shape, sums = bend(shape, sums, rng.normal(size=(4, d)), 1.0 + 0.1 * rng.random(4), pure)
    np.testing.assert_array_equal(shape.C, before)


def test_an_ill_conditioned_quadratic_is_solved() -> None:
    d = 8
    scales = np.geomspace(1.0, 1e4, d)
    result = pc.minimize(
        lambda x: float((scales * (x - 1.0) ** 2).sum()), np.zeros(d), method="far", budget=4000, seed=0
    )
    assert float((scales * (result.x - 1.0) ** 2).sum()) < 1e-3


# Failures, and functions without a minimum


def test_a_sample_that_fails_as_a_whole_changes_nothing() -> None:
    s, draws = begun(np.zeros(3))
    far = begin(np.zeros(3), 1.0)
    values = [np.full(r.size, np.nan) for r in generation.requests(far, s.run, draws, 0)]
    after = generation.advance(far, s.run, draws, 0, values)
    assert (after.x == far.x).all()
    assert after.sigma == far.sigma


def test_the_mean_stays_among_points_that_have_succeeded() -> None:
    """F fails outside a ball, which is convex: so the mean never leaves it."""
    opt = pc.Optimizer(np.zeros(2), method="far", budget=3000, seed=0)
    while (probe := opt.ask()) is not None:
        assert np.linalg.norm(state_of(opt).x) <= 1.0
        opt.tell(probe, [float(np.abs(x - 0.9).sum()) if x @ x <= 1.0 else np.nan for x in probe.points])
    result = opt.result()
    assert result.success
    assert np.abs(result.x - 2**-0.5).max() < 0.1


@pytest.mark.parametrize("f", [lambda x: 1.0, lambda x: float(-x.sum()), lambda x: -(float(np.abs(x).max()) ** 0.5)])
@pytest.mark.parametrize("method", ["near", "far"])
def test_functions_without_a_minimum_stay_finite(f: Any, method: str) -> None:
    result = pc.minimize(f, np.zeros(2), method=method, budget=40_000, seed=0)
    assert np.isfinite(result.x).all()
    assert all(np.isfinite(column).all() for column in result.history.values())
    assert result.failures == 0
    assert f(result.x) <= f(np.zeros(2))
