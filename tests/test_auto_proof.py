"""The first scale of `auto`, on samples that had no part in it; runs that have got worse, or cannot get better."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

import poem_cma as pc
from poem_cma.auto.prove import mean_changes, proof_point
from poem_cma.auto.state import PROVE, STEP


def at_stage(stage: str, fun: Any, d: int, **options: Any) -> Any:
    """A run that has come to a stage, and all probes it was told before."""
    opt = pc.Optimizer(np.zeros(d), method=pc.methods.auto(newton=False), budget=20_000, seed=0, **options)
    told = []
    while opt._state.stage != stage:
        probe = opt.ask()
        assert probe is not None
        opt.tell(probe, [fun(x, number) for x, number in zip(probe.points, probe.numbers, strict=True)])
        told.append(probe)
    return opt, told


def saturating(x: np.ndarray, number: int) -> float:
    """Bounded, with noise that is not: the mean of a few samples falls for ever in some direction."""
    xi = np.random.default_rng(number).normal(size=len(x))
    return float(1.0 - np.exp(-0.5 * np.sum((x - 1.0) ** 2) / len(x)) + 0.1 * xi @ x)


def test_the_proof_leaves_out_the_own_gradient_of_a_sample() -> None:
    """A sample's point follows from the estimates of the seven others, worked out here from their values."""
    d, rng = 3, np.random.default_rng(1)
    slopes = rng.normal(size=(8, d)) + 1.0

    def linear(x: np.ndarray, number: int) -> float:
        return float(slopes[number % 8] @ x + 1e-3 * x @ x)

    opt, told = at_stage(PROVE, linear, d)
    state = opt._state
    first = {probe.numbers[0] for probe in told}
    assert len(first) == 8
    for j in range(8):
        others = np.delete(slopes[np.sort(list(first)) % 8], j, axis=0).sum(axis=0)
        point = proof_point(state, j, 0, 2.0)
        np.testing.assert_allclose(point, -2.0 * others / np.linalg.norm(others), rtol=1e-2)


def test_every_sample_of_the_proof_is_one_of_the_first() -> None:
    opt, told = at_stage(STEP, saturating, 5)
    numbers = [probe.numbers[0] for probe in told]
    assert set(numbers) == set(numbers[:8])
    assert opt._state.own.size == 0  # kept no longer than needed


def test_a_scale_that_only_the_first_samples_see_is_not_believed() -> None:
    """On their own ray the eight first samples mostly fall for 18 decades; the minimum is at distance sqrt(d)."""
    for_ever = 0
    for seed in range(8):
        opt, told = at_stage(STEP, lambda x, number, seed=seed: saturating(x, 1000 * seed + number), 10)
        for_ever += max(float(np.abs(x).max()) for probe in told for x in probe.points) > 1e6
        assert opt._state.R < 20.0
    assert for_ever >= 5


def test_a_ray_that_leaves_the_domain_is_not_followed_for_ever() -> None:
    """Beyond the ball all points of a ray are the same but for rounding."""
    slopes = np.random.default_rng(0).normal(size=(500, 20)) + 0.5

    def linear(x: np.ndarray, number: int) -> float:
        return float(slopes[number % 500] @ x)

    opt, told = at_stage(PROVE, linear, 20, domain=pc.Ball(1.0))
    assert len(opt._state.radii[0]) == 4
    assert max(len(probe.points) for probe in told[-16:]) <= 9


def test_means_and_errors_of_changes() -> None:
    V = np.array([[1.0, 5.0], [3.0, np.nan], [2.0, np.inf], [2.0, 9.0]])
    mean, error = mean_changes(V, np.ones(4))
    np.testing.assert_allclose(mean, [1.0, 6.0])
    np.testing.assert_allclose(error, [np.std([0, 2, 1, 1], ddof=1) / 2.0, np.std([4, 8], ddof=1) / np.sqrt(2.0)])
    mean, _ = mean_changes(np.where(np.arange(4)[:, None] < 3, np.nan, V), np.ones(4))
    assert np.isinf(mean).all()  # one of four is not enough


NEEDS = np.abs(np.random.default_rng(14).normal(size=(5, 10)))
PRICES = 0.02 * np.random.default_rng(15).uniform(0.5, 1.5, size=10)


def demand(x: np.ndarray, xi: np.ndarray) -> float:
    """A small price for every unit, and a large one for every demand that is not met: slopes see the first alone."""
    return float(PRICES @ x) + float((NEEDS @ x < 10.0 + 3.0 * xi).sum())


def mean_demand(x: np.ndarray) -> float:
    return float(PRICES @ x + norm.sf((NEEDS @ x - 10.0) / 3.0).sum())


@pytest.mark.parametrize("seed", range(4))
def test_steps_that_slopes_do_not_see(seed: int) -> None:
    """Slopes say: less of everything. Values say: much more."""
    x0 = np.ones(10)
    result = pc.minimize(
        demand, x0, sample=lambda rng: rng.normal(size=5), domain=pc.Box(0.0, 10.0), budget=10_000, seed=seed
    )
    least = min(minimize(mean_demand, level * x0, bounds=[(0.0, 10.0)] * 10).fun for level in (1.0, 2.0, 3.0))
    assert "as where F has steps" in result.message
    assert mean_demand(result.x) - least < 0.05 * (mean_demand(x0) - least)


@pytest.mark.parametrize("domain", [None, pc.Box(0.0, 100.0, inside=True)])
def test_a_run_that_has_got_worse_begins_again(domain: pc.Box | None) -> None:
    """A scale a thousand times too large, where every slope points back; in a box a run begins at its corner again."""

    def bowl(x: np.ndarray, number: int) -> float:
        xi = np.random.default_rng(number).normal(size=len(x))
        return float(np.sum((x - 1e-2) ** 2) ** 2 + 1e-3 * xi @ x)

    opt, _ = at_stage(STEP, bowl, 6, domain=domain)
    far = 50.0 * np.ones(6)
    opt._state = opt._state._replace(
        R=1e3,
        x=far,
        averages=np.tile(far, (3, 1)),
        check_at=opt.nfev,
        G=1e12 * np.ones(6),
        promised=0.0,
        promised_squares=0.0,
    )
    begun_again = False
    while (probe := opt.ask()) is not None:
        assert domain is None or probe.points.min() >= 0.0
        opt.tell(probe, [bowl(x, number) for x, number in zip(probe.points, probe.numbers, strict=True)])
        begun_again |= opt._state.stage == STEP and bool((opt._state.x == 0.0).all())
    assert begun_again
    assert opt._state.R <= 250.0
    assert bowl(opt.result().x, 0) < 1e-3


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_a_function_without_a_minimum_is_called_so(noise: float) -> None:
    result = pc.minimize(
        lambda x, xi: float(x.sum() + noise * xi @ x), np.zeros(4), sample=lambda rng: rng.normal(size=4), budget=3000
    )
    assert "F may have no minimum" in result.message
    bounded = pc.minimize(lambda x: float(x.sum()), np.zeros(4), domain=pc.Box(-1e12, 1e12), budget=3000)
    assert "no minimum" not in bounded.message
    assert bounded.x.max() < -0.9e12


def test_a_function_that_never_changes_is_called_so() -> None:
    result = pc.minimize(lambda x, xi: xi, np.ones(3), sample=lambda rng: rng.normal(), budget=3000)
    assert "F did not change at any distance" in result.message
    np.testing.assert_array_equal(result.x, np.ones(3))


def linear_noise(f: Any, size: float) -> Any:
    """F with slopes of its own for every sample: each falls for ever in some direction, whatever f does."""
    return lambda X, e: f(X) + size * (X @ e)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize(
    "f",
    [
        lambda X: np.abs(X - 1.0).sum(axis=-1),
        lambda X: np.sqrt(1.0 + (X - 1.0) ** 2).sum(axis=-1) - 10.0,
        lambda X: np.sqrt(((X - 1.0) ** 2).sum(axis=-1)),
    ],
    ids=["absolute", "rounded", "length"],
)
def test_samples_that_fall_for_ever_do_not_set_the_scale(f: Any, scale: float) -> None:
    """Where f itself grows no faster than its samples fall, only a change of slope with the distance tells how far."""
    gaps = []
    for seed in range(5):
        x = pc.minimize(
            linear_noise(lambda X: scale * f(X / scale), 3.0), np.zeros(10), sample=lambda r: r.normal(size=10),
            budget=20_000, seed=seed, vectorized=True, evaluate=0,
        ).x  # fmt: skip
        gaps.append(float(f(x / scale) / f(np.zeros(10))))
    assert max(gaps) < 0.1


@pytest.mark.parametrize("budget", [400, 20_000])
def test_samples_without_any_bend_begin_at_the_scale_of_poem(budget: int) -> None:
    """Noise alone, and no function: nothing says how far to go."""
    opt = pc.Optimizer(np.zeros(10), budget=budget, seed=0)
    while opt._state.stage != STEP:
        probe = opt.ask()
        assert probe is not None
        noise = [np.random.default_rng(number).normal(size=10) for number in probe.numbers]
        opt.tell(probe, [float(x @ e) for x, e in zip(probe.points, noise, strict=True)])
    assert opt._state.run.initial_distance == opt._state.R


def test_the_scale_is_longer_where_the_first_estimates_have_not_seen_every_dimension() -> None:
    """One sample that all share, seen along 8 x 32 random directions of 1000: most of the ray is at random."""
    xs = np.random.default_rng(0).normal(size=1000)

    def cone(x: np.ndarray, number: int) -> float:
        return float(np.linalg.norm(x - xs))

    opt, told = at_stage(STEP, cone, 1000)
    s = opt._state
    assert s.kind != "walk" or s.t == 0
    furthest = max(float(np.linalg.norm(x)) for x in told[-1].points)  # of the proof, which is where the ray says
    assert pytest.approx(2.0 * furthest, rel=0.01) == s.R


@pytest.mark.parametrize("seed", range(3))
def test_rounding_is_no_proof_of_a_fall(seed: int) -> None:
    """Most samples do not see each other's features: close to x_0 the last bit of F = 1 is all that changes."""
    rng = np.random.default_rng(8)
    A = rng.normal(size=(600, 8)) * (rng.random((600, 8)) < 0.1)
    y = np.sign(A @ rng.normal(size=8) + 0.5 * rng.normal(size=600))

    def hinge(X: np.ndarray, i: int) -> Any:
        return np.maximum(0.0, 1.0 - y[i] * (X @ A[i]))

    x = pc.minimize(
        hinge, np.zeros(8), sample=lambda r: int(r.integers(600)), domain=pc.Box(np.zeros(8), np.full(8, np.inf)),
        budget=4000, seed=seed, vectorized=True, evaluate=0,
    ).x  # fmt: skip
    assert np.maximum(0.0, 1.0 - y * (A @ x)).mean() < 0.97
