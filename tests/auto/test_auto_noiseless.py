"""Functions without noise: `auto` finds out, and takes quasi-Newton steps."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest
from inside import state_of

import poem_cma as pc
from poem_cma.problems import load
from poem_cma.result import Status


def bowl(d: int, condition: float) -> tuple[np.ndarray, np.ndarray]:
    """A positive definite matrix, and a point."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(d, d)))[0]
    return (Q * np.logspace(0.0, np.log10(condition), d)) @ Q.T, rng.normal(size=d)


def quadratic(d: int, condition: float) -> Any:
    B, best = bowl(d, condition)
    return lambda x: float(0.5 * (x - best) @ B @ (x - best))


def rosenbrock(x: np.ndarray) -> float:
    return float((100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum())


@pytest.mark.parametrize(
    ("d", "condition", "calls"),
    [
        (2, 1.0, 480), (2, 1e3, 480), (2, 1e6, 480), (10, 1.0, 800), (10, 1e2, 1000), (10, 1e6, 1300),
        (50, 1.0, 2400), (50, 1e2, 5500), (50, 1e6, 8000),
    ],
)  # fmt: skip
def test_a_quadratic_is_solved_to_the_precision_of_its_values(d: int, condition: float, calls: int) -> None:
    f = quadratic(d, condition)
    result = pc.minimize(f, np.zeros(d), budget=20_000, seed=0, evaluate=0)
    assert f(result.x) < 1e-10
    assert result.status == Status.CONVERGED
    assert result.nfev <= calls


@pytest.mark.parametrize(("x0", "calls"), [([-1.2, 1.0], 10_000), ([0.0] * 5, 1500), ([-0.5] * 5, 1500)])
def test_rosenbrock(x0: list[float], calls: int) -> None:
    result = pc.minimize(rosenbrock, np.array(x0), budget=10_000, seed=0, evaluate=0)
    assert rosenbrock(result.x) < 1e-10
    assert result.status in (Status.CONVERGED, Status.BUDGET)  # pairs may find the minimum before slopes are trusted
    assert result.nfev <= calls


@pytest.mark.parametrize(
    "domain",
    [pc.Box(-0.2, 0.3), pc.Ball(0.5), pc.Simplex(), pc.L1Ball(0.7), pc.Box([0.1] * 2 + [-1.0] * 6, 1.0)],
    ids=repr,
)
def test_a_domain_that_is_in_the_way(domain: Any) -> None:
    """The minimum is that of projected gradients with the true gradient, and no evaluation leaves the domain."""
    d, asked = 8, []
    B, best = bowl(d, 30.0)
    f = quadratic(d, 30.0)
    within = domain.for_dimension(d)

    def watched(x: np.ndarray) -> float:
        asked.append(x.copy())
        return float(f(x))

    result = pc.minimize(watched, within.project(np.zeros(d)), domain=domain, budget=6000, seed=0)
    assert all(within.contains(x, tol=1e-14) for x in asked)
    x = result.x
    for _ in range(2000):
        x = within.project(x - B @ (x - best) / 30.0)
    assert f(result.x) - f(x) < 1e-10
    assert result.status == Status.CONVERGED


def test_a_linear_function_on_a_box() -> None:
    result = pc.minimize(lambda x: float(x @ [1.0, -2.0, 3.0]), np.full(3, 0.3), domain=pc.Box(0.0, 1.0), budget=2000)
    assert np.array_equal(result.x, [0.0, 1.0, 0.0])
    assert result.status == Status.CONVERGED


def test_a_constant_function() -> None:
    result = pc.minimize(lambda x: 1.0, np.ones(3), budget=600, seed=0)
    assert result.fun == 1.0
    assert result.nfev <= 600


@pytest.mark.parametrize(
    ("f", "d"),
    [
        (lambda x: float(np.abs(x - 0.3).sum()), 5),
        (lambda x: float(np.abs(x - 0.3).max()), 8),
        (lambda x: float(np.linalg.norm(x - 0.3)), 10),
    ],
)
def test_kinks(f: Any, d: int) -> None:
    result = pc.minimize(f, np.full(d, -0.5), budget=6000, seed=0)
    assert f(result.x) < 1e-8


def test_a_maximum_of_affine_functions() -> None:
    problem = load("max-affine")
    result = pc.minimize(problem.objective, problem.x0, budget=20_000, seed=0)
    assert problem.objective(result.x) - problem.optimum < 1e-2


def test_the_end_does_not_depend_on_units() -> None:
    f = quadratic(6, 100.0)
    for c in (1e-4, 1e-2, 1e2, 1e4):
        result = pc.minimize(lambda x, c=c: f(x / c), np.zeros(6), budget=3000, seed=0)
        assert f(result.x / c) < 1e-10
        assert result.status == Status.CONVERGED
    for size in (1e-290, 1e298):
        result = pc.minimize(lambda x, size=size: size * f(x), np.zeros(6), budget=3000, seed=0)
        assert f(result.x) < 1e-10


def test_single_precision() -> None:
    f = quadratic(5, 10.0)
    result = pc.minimize(f, np.zeros(5, dtype=np.float32), budget=3000, seed=0)
    assert f(result.x) < 1e-8


def test_samples_that_do_nothing() -> None:
    f = quadratic(5, 10.0)
    result = pc.minimize(lambda x, xi: f(x), np.zeros(5), sample=lambda rng: int(rng.integers(9)), budget=3000, seed=0)
    assert f(result.x) < 1e-10
    assert result.status == Status.CONVERGED


def test_noise_that_shows_later_is_coped_with() -> None:
    """Samples agree within a part of the space, and not beyond it."""
    f = quadratic(4, 3.0)

    def late(x: np.ndarray, xi: float) -> float:
        return float(f(x)) + (0.05 * xi * float(x @ x) if f(x) < 0.3 else 0.0)

    opt = pc.Optimizer(np.full(4, 9.0), budget=4000, seed=0)
    phases = set()
    while (probe := opt.ask()) is not None:
        phases.add(state_of(opt).phase)
        noise = [np.random.default_rng(n).normal() for n in probe.numbers]
        opt.tell(probe, [late(x, xi) for x, xi in zip(probe.points, noise, strict=True)])
    assert "exact" in phases
    assert state_of(opt).gate.noisy
    assert opt.result().status == Status.BUDGET
    assert f(opt.result().x) < 0.05


@pytest.mark.parametrize("budget", [100, 137, 400, 411, 433, 480])
def test_the_budget_is_kept(budget: int) -> None:
    count = 0

    def f(x: np.ndarray) -> float:
        nonlocal count
        count += 1
        return rosenbrock(x)

    result = pc.minimize(f, np.zeros(6), budget=budget, seed=0)
    assert result.nfev == count <= budget
    assert rosenbrock(result.x) <= rosenbrock(np.zeros(6))


def test_every_stage_can_be_saved(tmp_path: pathlib.Path) -> None:
    f, path = quadratic(3, 50.0), tmp_path / "run"

    def trail(saved: bool) -> tuple[list[bytes], int]:
        opt, seen, exact = pc.Optimizer(np.zeros(3), budget=1500, seed=0), [], 0
        while (probe := opt.ask()) is not None:
            seen.append(probe.points.tobytes())
            exact += state_of(opt).phase == "exact"
            opt.tell(probe, [f(x) for x in probe.points])
            if saved:
                opt.save(path)
                opt = pc.Optimizer.load(path)
        seen.append(opt.result().x.tobytes())
        assert opt.result().status == Status.CONVERGED
        return seen, exact

    whole, exact = trail(saved=False)
    assert exact > 10
    assert trail(saved=True)[0] == whole
