"""The mathematics behind the reproduction: certificates, closed forms, fits and verdicts."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from reproduce_helpers import TINY

from poem_cma.experiments.reproduce import data, fig1, synthetic, table1
from poem_cma.experiments.reproduce.claims import DOES_NOT, HOLDS, IN_PART, NOT_RUN, Claim, count, in_how_many
from poem_cma.experiments.reproduce.claims_figure2 import _where
from poem_cma.experiments.reproduce.fits import Measured, fits
from poem_cma.experiments.reproduce.runs import call_grid
from poem_cma.experiments.reproduce.scale import QUICK
from poem_cma.problems.optimum import least_hinge_loss


def random_rows(n: int, d: int, size: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return size * (rng.standard_normal((n, d)) + 0.4 * rng.standard_normal(d))


@pytest.mark.parametrize("size", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_least_loss_is_enclosed_and_no_point_is_below_it(size: float, sparse: bool) -> None:
    from scipy.optimize import minimize
    from scipy.sparse import csr_array

    B = random_rows(80, 6, size, seed=1)
    best = least_hinge_loss(csr_array(B) if sparse else B)

    def loss(x: np.ndarray) -> float:
        return float(np.maximum(0.0, 1.0 - B @ x).mean())

    assert best.dual <= best.primal <= best.dual + 1e-7
    assert best.x @ best.x < 1.0
    assert loss(best.x) == pytest.approx(best.primal, abs=1e-12)
    # Another solver, on the problem with slacks.
    n, d = B.shape
    start = np.r_[np.zeros(d), np.ones(n)]
    constraints = [
        {"type": "ineq", "fun": lambda z: z[d:] - 1.0 + B @ z[:d], "jac": lambda z: np.hstack([B, np.eye(n)])},
        {"type": "ineq", "fun": lambda z: 1.0 - z[:d] @ z[:d], "jac": lambda z: np.r_[-2.0 * z[:d], np.zeros(n)]},
    ]
    gradient = np.r_[np.zeros(d), np.full(n, 1.0 / n)]
    other = minimize(
        lambda z: z[d:].mean(), start, jac=lambda z: gradient, bounds=[(None, None)] * d + [(0.0, None)] * n,
        constraints=constraints, method="SLSQP", options={"maxiter": 300},
    )  # fmt: skip
    point = other.x[:d] / max(1.0, np.linalg.norm(other.x[:d]))
    assert best.dual - 1e-9 <= loss(point) <= best.primal + 1e-4


@pytest.mark.parametrize(("name", "value"), [("mushrooms", 0.13839), ("w8a", 0.33395)])
def test_the_least_losses_of_the_papers_sets(name: str, value: float) -> None:
    folder = os.environ.get("POEM_CMA_DATA")
    if not folder or not any(Path(folder).glob(f"{name}*")):
        pytest.skip(f"no {name} in POEM_CMA_DATA")
    best = least_hinge_loss(data.hinge(name).sparse)
    assert best.dual <= best.primal <= best.dual + 1e-6
    assert best.primal == pytest.approx(value, abs=1e-5)


def test_the_regression_has_the_mean_it_claims() -> None:
    problem = table1.Regression(d=9, k=4, seed=3)
    x = np.random.default_rng(0).standard_normal(9) / 3
    values = np.array([problem.value(x, n) for n in range(40_000)])
    at_the_optimum = np.array([problem.value(np.r_[problem.star, np.ones(5)], n) for n in range(40_000)])
    difference = values - at_the_optimum
    assert abs(difference.mean() - problem.gap(x)) < 4.0 * difference.std() / np.sqrt(len(values))
    assert problem.gap(np.r_[problem.star, np.ones(5)]) == 0.0
    assert problem.value(x, 17) == values[17]  # by number, whatever was drawn before


def test_the_population_value_is_that_of_the_second_moment() -> None:
    settings = {"features": "low-rank", "start": "normal", "paired": True, "d": 12, "seed": 0}
    found = fig1.compute(settings)
    B, x0 = synthetic.make("low-rank", "normal", 12, 0)
    gradients = B * (B @ x0 < 1.0)[:, None]
    A = gradients.T @ gradients / len(B)
    lam = np.linalg.eigvalsh(12 / 14 * (np.trace(A) * np.eye(12) + 2 * A))
    assert found["population"] == pytest.approx(lam.sum() / lam[-1])
    assert found["gradients_exact"] == pytest.approx(np.trace(A) / np.linalg.eigvalsh(A)[-1])
    assert 14 / 3 <= found["population"] <= 12


@pytest.mark.parametrize("candidate", synthetic.CANDIDATES, ids=lambda c: c.label)
def test_every_reading_of_the_set_has_five_dimensions_that_count(candidate: synthetic.Candidate) -> None:
    B, x0 = synthetic.make(candidate.features, candidate.start, 20, 0)
    assert B.shape == (5000, 20)
    assert x0.shape == (20,)
    if candidate.features not in ("isotropic", "classification", "noisy"):
        assert np.linalg.matrix_rank(B) == synthetic.TRUE_DIMENSION


def test_grids_of_different_lengths_share_their_points() -> None:
    short, long = call_grid(20_000), call_grid(200_000)
    assert set(short) <= {*long, 2_000}
    assert short[-1] == 20_000
    assert all(c % 2 == 0 for c in long)


def test_known_exponents_are_found_and_most_intervals_hold_them() -> None:
    rng = np.random.default_rng(0)
    made = []
    for method in table1.METHODS:
        for against, dimensions in (("d", (8, 16, 32, 64)), ("k", (2, 4, 8))):
            for fraction in table1.FRACTIONS:
                noise = np.exp(0.2 * rng.standard_normal((len(dimensions), 9)))
                calls = 10.0 * np.array(dimensions)[:, None] ** 1.5 * noise
                if fraction == 0.1:
                    calls[-1] = np.inf  # not reached at the largest dimension
                made.append(Measured(method, against, dimensions, fraction, calls, calls, np.ones_like(calls)))
    found = fits(made)
    assert {fit.fraction for fit in found} == {0.25}
    assert all(abs(fit.exponent - 1.5) < 0.25 for fit in found)
    assert sum(fit.low <= 1.5 <= fit.high for fit in found) >= 8  # of ten intervals of 95%


def test_a_fit_of_too_few_points_is_not_known() -> None:
    calls = np.full((3, 5), np.inf)
    made = [
        Measured(m, a, (2, 4, 8), f, calls, calls, calls)
        for m in table1.METHODS
        for a in ("d", "k")
        for f in table1.FRACTIONS
    ]
    assert not any(fit.known for fit in fits(made))


def test_verdicts() -> None:
    assert [in_how_many(m) for m in ([True], [True, False], [False], [])] == [HOLDS, IN_PART, DOES_NOT, NOT_RUN]
    claim = Claim("here", "it is so", "1")
    assert count([claim, claim.found("1", HOLDS)]) == {HOLDS: 1, NOT_RUN: 1}
    assert _where(np.array([True, True, False, True]), [10, 20, 30, 1000]) == "at 10 to 20, 1,000 calls"
    assert _where(np.array([False, False]), [10, 20]) == "nowhere"


def test_seeds_and_horizon_can_be_set() -> None:
    assert QUICK.with_seeds(None) is QUICK
    scale = QUICK.with_seeds(7).with_iterations(100)
    assert {scale.seeds, scale.side_seeds, scale.figure1_seeds, scale.spectrum_seeds, scale.table_seeds} == {7}
    assert scale.iterations == 100
    assert TINY.with_iterations(None) is TINY
