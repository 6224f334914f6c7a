"""The library of test problems: each is what it says it is, and its least value is the least."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from poem_cma import datasets, problems
from poem_cma.domains.product import product
from poem_cma.domains.sets import Box, Simplex
from poem_cma.problems import closed, programs, real
from poem_cma.problems.enclose import Logistic, Pinball, least_loss
from poem_cma.problems.problem import Problem

REAL = [name for name in problems.names() if name not in problems.names(real_data=False)]
GAUSSIAN = [name for name in problems.names() if "rank" in name]
EXAMPLES = {
    "cvar-portfolio": 1000,
    "ill-scaled-absolute": 400,
    "ill-scaled-squared": 400,
    "hinge-mushrooms": 8124,
    "logistic-mushrooms": 8124,
    "absolute-mushrooms": 8124,
    "quantile-a9a": 32561,
    "quantile-mushrooms": 8124,
}


def build(name: str) -> Problem:
    if name in REAL and name.split("-")[1] not in datasets.available():
        pytest.skip(f"the data set {name.split('-')[1]} is not here: POEM_CMA_DATA can name its folder")
    return problems.load(name)


@pytest.fixture(scope="module", params=problems.names())
def problem(request: Any) -> Problem:
    return build(request.param)


def feasible(problem: Problem, m: int, seed: int = 0) -> np.ndarray:
    """Points of the domain at all distances from x0."""
    rng = np.random.default_rng(seed)
    steps = rng.normal(size=(m, problem.d)) * np.geomspace(0.01, 1.0, m)[:, None]
    return np.array(
        [problem.x0 + s if problem.domain is None else problem.domain.project(problem.x0 + s) for s in steps]
    )


def test_it_has_the_shapes_it_promises(problem: Problem) -> None:
    xi = problem.sample(np.random.default_rng(0))
    X = feasible(problem, 5)
    values = problem.fun(X, xi)
    assert values.shape == (5,)
    assert np.isfinite(values).all()
    one_by_one = [problem.fun(x[None], xi)[0] for x in X]
    np.testing.assert_allclose(values, one_by_one, rtol=1e-9, atol=1e-9)
    assert problem.x0.shape == (problem.d,)
    assert type(problem.objective(problem.x0)) is float
    assert type(problem.optimum) is float
    assert problem.slack >= 0.0
    assert problem.certificate
    assert (xi is None) == (not problem.noisy)
    if problem.domain is not None:
        assert problem.domain.contains(problem.x0)
    with pytest.raises(ValueError, match="read-only"):
        problem.x0[0] = 1.0


def test_the_same_name_gives_the_same_problem(problem: Problem) -> None:
    again = problems.load(problem.name)
    assert (again.name, again.optimum, again.certificate) == (problem.name, problem.optimum, problem.certificate)
    X = feasible(problem, 3)
    values = [p.fun(X, p.sample(np.random.default_rng(5))) for p in (problem, again)]
    np.testing.assert_array_equal(*values)
    assert again.objective(X[0]) == problem.objective(X[0])


def test_the_mean_over_samples_is_the_objective(problem: Problem) -> None:
    X = np.vstack([problem.x0, feasible(problem, 4, seed=1)])
    f = np.array([problem.objective(x) for x in X])
    if not problem.noisy:
        np.testing.assert_allclose(problem.fun(X, None), f, rtol=1e-12)
        return
    rng = np.random.default_rng(7)
    n = 2500
    F = np.array([problem.fun(X, problem.sample(rng)) for _ in range(n)])
    stderr = F.std(axis=0, ddof=1) / np.sqrt(n)
    z = (F.mean(axis=0) - f) / np.maximum(stderr, 1e-9 * (1.0 + np.abs(f)))
    assert np.abs(z).max() < 4.0
    changes = F[:, 1:] - F[:, :1]  # also the change from x0, in which the noise is smaller
    z = (changes.mean(axis=0) - (f[1:] - f[0])) / (changes.std(axis=0, ddof=1) / np.sqrt(n) + 1e-12)
    assert np.abs(z).max() < 4.0


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_mean_over_all_examples_is_the_objective_exactly(name: str) -> None:
    problem = build(name)
    X = feasible(problem, 3, seed=2)
    mean = sum(problem.fun(X, i) for i in range(EXAMPLES[name])) / EXAMPLES[name]
    np.testing.assert_allclose(mean, [problem.objective(x) for x in X], rtol=1e-9)


@pytest.mark.parametrize("name", EXAMPLES)
def test_all_examples_are_drawn_alike(name: str) -> None:
    problem, n = build(name), EXAMPLES[name]
    rng = np.random.default_rng(14)
    draws = np.array([problem.sample(rng) for _ in range(20_000)])
    shares = np.bincount(draws * 10 // n, minlength=10) / len(draws)
    assert len(shares) == 10
    assert np.abs(shares - 0.1).max() < 4.0 * np.sqrt(0.09 / len(draws))
    assert 0 <= draws.min() <= n / 1000
    assert n - 1 - n / 1000 <= draws.max() < n


def test_it_is_convex(problem: Problem) -> None:
    rng = np.random.default_rng(3)
    ends = feasible(problem, 12, seed=3)
    for a, b in zip(ends[::2], ends[::-2], strict=True):
        xi, t = problem.sample(rng), rng.uniform()
        between = t * a + (1.0 - t) * b
        at_a, at_b, at_t = problem.fun(np.array([a, b, between]), xi)
        assert at_t <= t * at_a + (1.0 - t) * at_b + 1e-9 * (1.0 + abs(at_a) + abs(at_b))
        f_a, f_b, f_t = (problem.objective(x) for x in (a, b, between))
        assert f_t <= t * f_a + (1.0 - t) * f_b + 1e-9 * (1.0 + abs(f_a) + abs(f_b))


def test_a_smooth_one_has_no_kinks_and_another_has(problem: Problem) -> None:
    """The slope along a line, over intervals of length h: its largest jump vanishes with h, or does not."""
    direction = np.random.default_rng(4).normal(size=problem.d)
    if problem.domain is None:
        direction *= 4.0
    if problem.name.startswith("ill-scaled"):
        direction /= 1e3
    rng = np.random.default_rng(6)
    samples = [problem.sample(rng) for _ in range(40)]

    def largest_jump(intervals: int) -> float:
        t = np.linspace(-1.0, 1.0, intervals + 1)
        X = problem.x0 + t[:, None] * direction
        slopes = [np.diff(problem.fun(X, xi)) / (t[1] - t[0]) for xi in samples]
        return max(np.abs(np.diff(s)).max() / (np.ptp(s) + 1e-12) for s in slopes)

    jump = largest_jump(2000)
    assert jump < 0.02 if problem.smooth else jump > 0.3


def test_the_gradient_is_a_subgradient(problem: Problem) -> None:
    """F(z) >= F(x) + g'(z - x) for all z, and g is the slope along most lines."""
    if problem.gradient is None:
        assert problem.name == "unshared-quadratic"
        return
    rng = np.random.default_rng(21)
    points = feasible(problem, 12, seed=21)
    slopes, true = [], []
    for x in points:
        xi = problem.sample(rng)
        g = problem.gradient(x, xi)
        assert g.shape == (problem.d,)
        at_x, *at = problem.fun(np.vstack([x, points]), xi)
        size = 1.0 + abs(at_x) + np.abs(at).max()
        assert (np.array(at) >= at_x + (points - x) @ g - 1e-9 * size).all()
        v = rng.normal(size=problem.d)
        h = 1e-6 / np.linalg.norm(v) / max(1.0, 1e-3 * np.linalg.norm(g))
        plus, minus = problem.fun(np.array([x + h * v, x - h * v]), xi)
        slopes.append((plus - minus) / (2.0 * h))
        true.append(g @ v)
    off = np.abs(np.array(slopes) - true) / (1.0 + np.abs(true))
    assert np.median(off) < 1e-3
    assert np.abs(true).max() > 0.0


def test_noise_that_cannot_be_shared() -> None:
    problem = problems.load("unshared-quadratic")
    assert not problem.shareable
    assert all(problems.load(name).shareable for name in problems.names(real_data=False) if name != problem.name)
    measure = problem.with_noise(np.random.default_rng(0))
    at_x0 = measure(np.repeat(problem.x0[None], 2000, axis=0))
    assert len(set(at_x0)) == 2000
    assert at_x0.std() == pytest.approx(0.1, rel=4.0 / np.sqrt(2 * 2000))
    z = (at_x0.mean() - problem.objective(problem.x0)) / (0.1 / np.sqrt(2000))
    assert abs(z) < 4.0
    x = problem.solve(method="poem", budget=2000, seed=3).x
    np.testing.assert_array_equal(x, problem.solve(method="poem", budget=2000, seed=3).x)
    assert problem.gap(x) < 1.0


def test_no_point_is_below_the_optimum_and_a_run_ends_above_it(problem: Problem) -> None:
    lowest = problem.optimum - 1e-12 * (1.0 + abs(problem.optimum))
    for x in feasible(problem, 20, seed=8):
        assert problem.objective(x) >= lowest
    assert problem.gap(problem.x0) == 1.0
    result = problem.solve(budget=1500, seed=0, evaluate=0)
    assert result.success == bool((result.x != problem.x0).any())
    assert result.nfev <= 1500
    assert result.x.shape == (problem.d,)
    if problem.domain is not None:
        assert problem.domain.contains(result.x)
    assert problem.objective(result.x) >= lowest


@pytest.mark.parametrize(
    "name", ["hinge-mushrooms", "absolute-rank5-of-100", "max-affine", "noisy-quadratic", "box-corner"]
)
def test_a_longer_run_comes_near_the_optimum(name: str) -> None:
    problem = build(name)
    assert 0.0 <= problem.gap(problem.solve(budget=6000, seed=1, evaluate=0).x) < 0.25


@pytest.mark.parametrize("name", REAL)
def test_the_losses_on_real_data_are_the_textbooks_and_the_least_is_certified_again(name: str) -> None:
    problem = build(name)
    kind, data = name.split("-")
    _, B, y = real._examples(data)
    for x in feasible(problem, 2, seed=15):
        prediction = y * (B @ x)
        r = y - prediction
        losses = {
            "hinge": np.maximum(0.0, 1.0 - y * prediction),
            "logistic": np.log1p(np.exp(-y * prediction)),
            "absolute": np.abs(r),
            "quantile": np.where(r >= 0.0, 0.75 * r, -0.25 * r),
        }
        assert problem.objective(x) == pytest.approx(losses[kind].mean(), rel=1e-10)
    lower, upper = problems.certify(name)
    assert lower <= upper <= lower + 2e-6  # how close the solver comes depends on the order of its sums
    assert problem.slack < 3e-7
    assert lower == pytest.approx(problem.optimum, abs=2e-6)
    assert upper == pytest.approx(problem.optimum + problem.slack, abs=2e-6)
    assert problem.optimum <= upper  # what is on record does not contradict what was found
    assert lower <= problem.optimum + problem.slack


def test_the_examples_are_the_data_times_the_labels() -> None:
    build("hinge-mushrooms")
    A, y = datasets.load("mushrooms")
    rows, sparse, labels = real._examples("mushrooms")
    np.testing.assert_array_equal(rows, A * y[:, None])
    np.testing.assert_array_equal(sparse.toarray(), rows)
    np.testing.assert_array_equal(labels, y)


@pytest.mark.parametrize("name", [*GAUSSIAN, "noisy-quadratic", "box-corner", "ill-scaled-squared"])
def test_a_solver_that_sees_the_objective_finds_the_optimum(name: str) -> None:
    from scipy.optimize import minimize

    problem = problems.load(name)
    box = [] if problem.domain is None else [(-1.0, 1.0)] * problem.d
    unit = 1.0  # the solver is to see variables of like size
    if name.startswith("ill-scaled"):
        probe = [problem.objective(e) - problem.objective(problem.x0) for e in 1e3 * np.eye(problem.d)]
        unit = 1e3 / np.sqrt(np.abs(probe))
    best = minimize(
        lambda z: problem.objective(z * unit), problem.x0, method="L-BFGS-B", bounds=box or None,
        options={"maxfun": 10**6, "ftol": 1e-14, "gtol": 1e-9, "maxiter": 500 if problem.d < 200 else 15},
    )  # fmt: skip
    x = best.x * unit
    assert -1e-12 <= problem.gap(x) < 1e-5
    rng = np.random.default_rng(13)
    F = np.array([problem.fun(x[None], problem.sample(rng))[0] for _ in range(10_000)])
    assert abs(F.mean() - problem.objective(x)) < 4.0 * F.std() / 100.0  # also where only the noise is left


def test_the_largest_of_affine_functions_against_another_solver() -> None:
    from scipy.optimize import minimize

    problem = problems.load("max-affine")
    d = problem.d
    A, b = programs._pieces()  # with one more variable, an upper bound of all pieces
    above = {"type": "ineq", "fun": lambda z: z[d] - A @ z[:d] - b, "jac": lambda z: np.c_[-A, np.ones(60)]}
    slope = np.r_[np.zeros(d), 1.0]
    other = minimize(
        lambda z: z[d], np.r_[np.zeros(d), b.max()], jac=lambda z: slope, constraints=[above], method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )  # fmt: skip
    assert problem.objective(other.x[:d]) == pytest.approx(problem.optimum, abs=1e-8)
    assert problem.slack < 1e-12


def test_the_portfolio_against_its_dual_program() -> None:
    """The largest v such that weights of the scenarios, at most 1/(1 - level) each, give every asset a loss of v."""
    from scipy.optimize import linprog

    problem = problems.load("cvar-portfolio")
    k, n = problem.d - 1, 1000
    # At t = -1 every loss is above t: F is linear in w there, and tells the losses.
    corners = np.c_[np.eye(k), np.full(k, -1.0)]
    L = np.array([(problem.fun(corners, i) + 1.0) / 20.0 - 1.0 for i in range(n)])
    dual = linprog(
        np.r_[np.zeros(n), -1.0], A_ub=np.c_[-L.T / n, np.ones(k)], b_ub=np.zeros(k),
        A_eq=np.r_[np.ones(n) / n, 0.0][None], b_eq=[1.0], bounds=[(0.0, 20.0)] * n + [(None, None)],
        method="highs-ipm",
    )  # fmt: skip
    assert -dual.fun == pytest.approx(problem.optimum, abs=1e-7)
    assert problem.slack < 1e-10
    assert problem.optimum < 0.3 * problem.objective(problem.x0)


def test_the_ill_scaled_absolute_loss_against_reweighted_least_squares() -> None:
    problem = problems.load("ill-scaled-absolute")
    C, y, sizes = programs._columns()
    x = np.zeros(problem.d)
    for _ in range(500):
        weight = 1.0 / np.maximum(np.abs(C @ x - y), 1e-6)
        x = np.linalg.solve(C.T @ (weight[:, None] * C), C.T @ (weight * y))
    assert 0.0 <= problem.gap(x / sizes) < 1e-5
    assert sizes.max() / sizes.min() == pytest.approx(1e6)


def test_the_quadratic_is_as_badly_conditioned_as_promised() -> None:
    problem = closed.noisy_quadratic()
    eye, at_0 = np.eye(problem.d), problem.objective(problem.x0)
    single = np.array([problem.objective(e) for e in eye])
    double = np.array([[problem.objective(a + b) for a in eye] for b in eye])
    H = double - single[:, None] - single[None, :] + at_0
    assert np.linalg.cond(H) == pytest.approx(1e4, rel=1e-6)


@pytest.mark.parametrize("name", GAUSSIAN)
def test_the_gradients_have_the_rank_in_the_name(name: str) -> None:
    problem = problems.load(name)
    rng = np.random.default_rng(9)
    features = np.array([problem.sample(rng)[0] for _ in range(150)])
    rank = 100 if "full" in name else int(name.split("rank")[1].split("-")[0])
    assert np.linalg.matrix_rank(features) == rank
    assert problem.d == int(name.split("-")[-1])


@pytest.mark.parametrize("radius", [0.3, 5.0])
@pytest.mark.parametrize("tau", [0.5, 0.8, None])
def test_the_enclosing_solver_against_another(radius: float, tau: float | None) -> None:
    from scipy.optimize import minimize
    from scipy.sparse import csr_array

    rng = np.random.default_rng(11)
    n, d = 60, 5
    y = rng.choice([-1.0, 1.0], size=n)
    B = rng.normal(size=(n, d)) + 0.3
    loss = Logistic() if tau is None else Pinball(tau, y)
    best = least_loss(B, loss, radius)
    assert best.dual <= best.primal <= best.dual + 1e-7
    assert best.x @ best.x < radius**2
    assert loss(B @ best.x).mean() == pytest.approx(best.primal, abs=1e-12)
    assert least_loss(csr_array(B), loss, radius).primal == pytest.approx(best.primal, abs=2e-7)
    ball = {"type": "ineq", "fun": lambda z: radius**2 - z[:d] @ z[:d]}
    if tau is None:
        other = minimize(lambda x: loss(B @ x).mean(), np.zeros(d), constraints=[ball], method="SLSQP")
    else:  # with p - q = y (1 - b'x), and tau p + (1 - tau) q to pay
        pay = np.r_[np.zeros(d), np.full(n, tau / n), np.full(n, (1.0 - tau) / n)]
        rows = np.c_[y[:, None] * B, np.eye(n), -np.eye(n)]
        same = {"type": "eq", "fun": lambda z: rows @ z - y, "jac": lambda z: rows}
        start = np.r_[np.zeros(d), np.maximum(y, 0.0), np.maximum(-y, 0.0)]
        bounds = [(None, None)] * d + [(0.0, None)] * (2 * n)
        other = minimize(
            lambda z: pay @ z, start, jac=lambda z: pay, constraints=[ball, same], bounds=bounds, method="SLSQP",
            options={"maxiter": 300, "ftol": 1e-9},
        )  # fmt: skip
    x = other.x[:d] / max(1.0, np.linalg.norm(other.x[:d]) / radius)
    assert best.dual - 1e-9 <= loss(B @ x).mean() <= best.primal + 1e-4


def test_the_domain_of_weights_and_threshold() -> None:
    domain = product([(0, 5, Simplex()), (5, 6, Box(-1.0, 1.0))])
    assert domain is not None
    rng = np.random.default_rng(12)
    inside = [np.r_[rng.dirichlet(np.ones(5)), rng.uniform(-1.0, 1.0)] for _ in range(50)]
    for weight in (None, np.geomspace(0.01, 1.0, 6)):
        x = rng.normal(size=6) * 3.0
        nearest = domain.project(x, weight)
        w = np.ones(6) if weight is None else weight
        assert domain.contains(nearest)
        assert nearest[:5].sum() == pytest.approx(1.0)
        assert all((w * (x - nearest)) @ (z - nearest) <= 1e-12 for z in inside)
    assert domain.diameter == pytest.approx(np.sqrt(6.0))
    assert domain.hull_dimension(6) == 5
    along = domain.tangent(rng.normal(size=(4, 6)))
    np.testing.assert_allclose(along[:, :5].sum(axis=1), 0.0, atol=1e-12)
    np.testing.assert_array_equal(domain.tangent(along, np.ones(6)).shape, (4, 6))
    for reach in (0.05, np.array([0.01, 0.05, 0.02, 0.03, 0.04, 0.5])):
        small = domain.shrunk(reach)
        for x in inside:
            u = rng.normal(size=6)
            move = domain.tangent(reach * u / np.linalg.norm(u))  # no further than the reach along the hull
            move *= min(1.0, 1.0 / np.linalg.norm(move / reach))
            assert domain.contains(small.project(x) + move)
    with pytest.raises(ValueError, match="nothing is left"):
        domain.shrunk(0.5)


def test_names_and_errors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert len(problems.names()) == len(set(problems.names())) >= 12
    with pytest.raises(ValueError, match="did you mean hinge-mushrooms"):
        problems.load("hinge-mushroom")
    with pytest.raises(ValueError, match="no problem"):
        problems.certify("zzz")
    monkeypatch.setenv("POEM_CMA_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("POEM_CMA_MIRROR", "http://127.0.0.1:9")
    monkeypatch.setattr(datasets, "_cache", lambda: tmp_path)
    real._examples.cache_clear()
    with pytest.raises(datasets.DatasetError, match="POEM_CMA_DATA"):
        problems.load("hinge-mushrooms")


def test_settings_reach_the_run() -> None:
    problem = problems.load("cvar-portfolio")
    result = problem.solve(method="poem", budget=300, seed=4, paired=False)
    assert result.method.startswith("poem")
    assert result.nfev <= 300
    np.testing.assert_array_equal(result.x, problem.solve(method="poem", budget=300, seed=4, paired=False).x)
