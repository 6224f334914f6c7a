"""Functions without noise: the model, the slopes, the search along a line, and the whole of it."""

from __future__ import annotations

import pathlib
from math import inf, isnan
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize as scipy_minimize

import poem_cma as pc
from poem_cma.auto.exact_state import COMPARE, CURVATURES, CUTS, SEARCH, SLOPES, ExactState
from poem_cma.auto.quasi_newton import model_minimum, sound, updated
from poem_cma.auto.slopes import Steps, along_axes, changes, curvatures, gradient
from poem_cma.auto.state import RAY, START
from poem_cma.domains import Whole
from poem_cma.result import Status


def bowl(d: int, condition: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A positive definite matrix, and a point."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(d, d)))[0]
    return (Q * np.logspace(0.0, np.log10(condition), d)) @ Q.T, rng.normal(size=d)


def quadratic(d: int, condition: float, offset: float = 1.0) -> Any:
    B, best = bowl(d, condition)
    return lambda x: float(0.5 * (x - best) @ B @ (x - best) + offset)


def rosenbrock(x: np.ndarray) -> float:
    return float((100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum())


# The model


def textbook(B: np.ndarray, s: np.ndarray, y: np.ndarray) -> np.ndarray:
    """BFGS for B itself (Nocedal and Wright, 6.19), which `updated` never forms."""
    Bs = B @ s
    return B - np.outer(Bs, Bs) / (s @ Bs) + np.outer(y, y) / (s @ y)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), d=st.integers(1, 12), steps=st.integers(1, 20))
def test_the_model_is_that_of_the_textbook(seed: int, d: int, steps: int) -> None:
    rng = np.random.default_rng(seed)
    true, _ = bowl(d, 50.0, seed)
    B, H, diagonal = np.eye(d), np.eye(d), np.ones(d)
    for _ in range(steps):
        s = rng.normal(size=d)
        y = true @ s
        H, diagonal = updated(H, diagonal, s, y, B @ s, first=False)
        B = textbook(B, s, y)
        assert np.allclose(H @ y, s, rtol=1e-6, atol=1e-8)  # what was seen
        assert np.allclose(H @ B, np.eye(d), atol=1e-5)
        assert np.allclose(diagonal, B.diagonal(), rtol=1e-5)
        assert sound(H, diagonal)


def test_the_first_update_gives_the_model_the_size_that_was_seen() -> None:
    s = np.array([1.0, 2.0, 0.0])
    for c in (1e-9, 1.0, 1e9):
        H, diagonal = updated(np.eye(3), np.ones(3), s, c * s, s, first=True)
        assert np.allclose(H, np.eye(3) / c)
        assert np.allclose(diagonal, c)


def test_a_step_along_which_the_slope_falls_says_nothing() -> None:
    H, diagonal = updated(np.eye(2), np.ones(2), np.ones(2), -np.ones(2), np.ones(2), first=False)
    assert np.array_equal(H, np.eye(2))
    assert np.array_equal(diagonal, np.ones(2))


def test_a_model_that_rounding_has_spoilt_is_known() -> None:
    assert not sound(np.diag([1.0, -1.0]), np.ones(2))
    assert not sound(np.diag([1.0, np.nan]), np.ones(2))
    assert not sound(np.eye(2), np.array([1.0, inf]))


DOMAINS = {
    "box": (pc.Box(-0.2, 0.3), [{"type": "ineq", "fun": lambda z: np.r_[z + 0.2, 0.3 - z]}]),
    "ball": (pc.Ball(0.5), [{"type": "ineq", "fun": lambda z: 0.25 - z @ z}]),
    "simplex": (pc.Simplex(), [{"type": "ineq", "fun": lambda z: z}, {"type": "eq", "fun": lambda z: z.sum() - 1.0}]),
    "l1": (pc.L1Ball(0.7), None),
}


@pytest.mark.parametrize("name", ["box", "ball", "simplex"])
@pytest.mark.parametrize("condition", [1.0, 30.0, 1e3])
def test_the_minimum_of_the_model_over_a_domain(name: str, condition: float) -> None:
    """Against SciPy's SLSQP."""
    d = 6
    given_domain, constraints = DOMAINS[name]
    domain = given_domain.for_dimension(d)
    for seed in range(5):
        B, g = bowl(d, condition, seed)
        x = domain.project(np.random.default_rng(seed).normal(size=d))
        p, Bp = model_minimum(x, 3.0 * g, np.linalg.inv(B), domain)
        assert np.allclose(Bp, B @ p)
        assert domain.contains(x + p)

        def m(z: np.ndarray, x: np.ndarray = x, g: np.ndarray = g, B: np.ndarray = B) -> float:
            return float(3.0 * g @ (z - x) + 0.5 * (z - x) @ B @ (z - x))

        best = scipy_minimize(m, x, constraints=constraints, method="SLSQP", options={"ftol": 1e-14, "maxiter": 500})
        assert m(x + p) <= best.fun + 1e-6 * abs(best.fun) + 1e-12


def test_where_no_domain_is_in_the_way_the_minimum_is_newton_s() -> None:
    B, g = bowl(5, 100.0)
    p, Bp = model_minimum(np.zeros(5), g, np.linalg.inv(B), Whole().for_dimension(5))
    assert np.allclose(p, -np.linalg.solve(B, g))
    assert np.allclose(Bp, -g)


def test_a_domain_that_knows_the_plain_distance_only() -> None:
    class Half:
        diameter = inf

        def project(self, x: np.ndarray) -> np.ndarray:
            return np.maximum(x, 0.5)

    result = pc.minimize(quadratic(6, 100.0), np.ones(6), domain=Half(), budget=4000, seed=0)
    bounds = [(0.5, None)] * 6
    best = scipy_minimize(quadratic(6, 100.0), np.ones(6), bounds=bounds, method="L-BFGS-B", options={"ftol": 1e-15})
    assert quadratic(6, 100.0)(result.x) <= best.fun + 1e-8


# Slopes


def state_of(fun: Any, d: int, stage: str, budget: int = 4000, **options: Any) -> ExactState:
    """A run of a function without noise, when it has come to a stage."""
    opt = pc.Optimizer(np.zeros(d), budget=budget, seed=0, **options)
    while not (isinstance(opt._state, ExactState) and opt._state.stage == stage):
        probe = opt.ask()
        assert probe is not None
        opt.tell(probe, [fun(x) for x in probe.points])
    state: ExactState = opt._state
    return state


@pytest.mark.parametrize("central", [False, True])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_slopes_are_as_exact_as_rounding_allows(central: bool, kind: Any) -> None:
    d = 6
    B, best = bowl(d, 10.0)
    s = state_of(lambda x: float(kind(quadratic(d, 10.0)(x))), d, SLOPES)._replace(central=central)
    assert s.eps == np.finfo(kind).eps
    F = np.array([float(kind(quadratic(d, 10.0)(x))) for x in along_axes(s, Steps()(s))])
    seen = changes(s, Steps()(s), F)
    g, mu = gradient(s, seen), seen.h.max()
    off = np.abs(g * s.unit - B @ (s.x - best)).max()
    size = np.sqrt(s.size * B.diagonal().max())  # of a slope over the length in which F changes by its own size
    assert off < 30.0 * s.eps ** (2.0 / 3.0 if central else 0.5) * size
    assert 0.0 < mu < 1.0


def test_a_call_that_failed_is_made_up_for() -> None:
    s = state_of(quadratic(4, 3.0), 4, SLOPES)
    F = np.array([quadratic(4, 3.0)(x) for x in along_axes(s, Steps()(s))])
    whole = gradient(s, changes(s, Steps()(s), F))
    F[2] = np.nan
    ahead = gradient(s, changes(s, Steps()(s), F))
    assert ahead[1] == s.g[1]  # as it was
    assert np.array_equal(np.delete(ahead, 1), np.delete(whole, 1))
    s = s._replace(central=True)
    F = np.array([quadratic(4, 3.0)(x) for x in along_axes(s, Steps()(s))])
    F[2] = np.nan
    both = gradient(s, changes(s, Steps()(s), F))
    assert both[1] == pytest.approx(whole[1], rel=1e-3)  # from the other side


def test_curvatures_are_seen_whatever_the_units() -> None:
    d = 8
    units = np.logspace(-3, 3, d)

    def f(x: np.ndarray) -> float:
        return float((((x / units) - 0.7) ** 2).sum() + 3.0)

    s = state_of(f, d, CURVATURES)
    F = np.array([f(x) for x in along_axes(s, Steps()(s))])
    seen = curvatures(s, changes(s, Steps()(s), F), F[0]) * s.unit
    assert np.allclose(seen * units[s.axes] ** 2, 2.0, rtol=1e-4)


# The search along a line


def test_on_a_parabola_the_second_trial_is_at_its_minimum() -> None:
    f = quadratic(5, 40.0)
    s = state_of(f, 5, SEARCH)
    assert s.slope < 0.0
    opt = pc.Optimizer(np.zeros(5), budget=4000, seed=0)
    ways = []
    while not opt.done:
        before = opt._state
        probe = opt.ask()
        assert probe is not None
        opt.tell(probe, [f(x) for x in probe.points])
        if isinstance(before, ExactState) and before.stage == SEARCH and opt._state.stage == SLOPES:
            ways.append((before.trials + 1, opt._state, before))
    early = [way for way in ways if way[1].value - 1.0 > 1e-8]
    assert len(early) >= 3
    B, best = bowl(5, 40.0)
    for trials, after, before in early:
        assert trials <= 3
        slope = (B @ (after.x - best)) @ before.p / before.unit
        assert abs(slope) <= 0.101 * abs(before.slope)  # flat, but for the precision of differences


def test_kinks_are_stepped_over() -> None:
    """Where slopes jump, the search stops as soon as F has fallen enough: the lowest point would be a trap."""
    rng = np.random.default_rng(1)
    A, b = rng.normal(size=(30, 5)), rng.normal(size=30)
    A -= A.mean(axis=0)

    def top(x: np.ndarray) -> float:
        return float((A @ x + b).max())

    opt = pc.Optimizer(np.zeros(5), budget=4000, seed=0)
    kinks = False
    while (probe := opt.ask()) is not None:
        opt.tell(probe, [top(x) for x in probe.points])
        kinks = kinks or (isinstance(opt._state, ExactState) and opt._state.kinks)
    assert kinks
    from scipy.optimize import linprog

    rows = np.c_[A, -np.ones(30)]
    best = linprog(np.r_[np.zeros(5), 1.0], A_ub=rows, b_ub=-b, bounds=[(None, None)] * 6).fun
    assert top(opt.result().x) - best < 1e-6 * (top(np.zeros(5)) - best)


# The whole


@pytest.mark.parametrize(
    ("f", "d", "best", "calls"),
    [
        (quadratic(20, 1e2), 20, 1.0, 1500),
        (quadratic(20, 1e6), 20, 1.0, 4000),
        (rosenbrock, 2, 0.0, 500),
        (rosenbrock, 10, 0.0, 2000),
        (lambda x: float(np.linalg.norm(x - 0.3) + 1.0), 10, 1.0, 4000),
        (lambda x: float(np.abs(x - 0.3).max() + 1.0), 8, 1.0, 8000),
    ],
)
def test_it_comes_to_the_minimum_and_stops(f: Any, d: int, best: float, calls: int) -> None:
    x0 = np.full(d, -0.5)
    result = pc.minimize(f, x0, budget=10_000, seed=0)
    assert f(result.x) - best <= 1e-9 * (f(x0) - best)
    assert result.status == Status.CONVERGED
    assert result.success
    assert "to the precision of the values" in result.message
    assert result.nfev <= calls
    assert result.fun == pytest.approx(f(result.x), rel=1e-12)
    assert result.fun_stderr == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e6])
def test_the_calls_depend_on_no_scale(size: float, factor: float) -> None:
    f = quadratic(10, 1e2)
    result = pc.minimize(lambda x: factor * f(x / size), np.zeros(10), budget=4000, seed=0)
    assert f(result.x / size) - 1.0 < 1e-12 * f(np.zeros(10))
    assert 0.8 < result.nfev / pc.minimize(f, np.zeros(10), budget=4000, seed=0).nfev < 1.25


def test_variables_in_different_units() -> None:
    f, units = quadratic(10, 10.0), np.logspace(-3, 3, 10)
    result = pc.minimize(lambda x: f(x / units), np.zeros(10), budget=2000, seed=0)
    assert f(result.x / units) - 1.0 < 1e-10


@pytest.mark.parametrize(
    "domain",
    [
        pc.Box(-0.2, 0.3),
        pc.Ball(0.5),
        pc.Simplex(),
        pc.L1Ball(0.7),
        pc.Box([0.1] * 2 + [-1.0] * 6, [0.1] * 2 + [1.0] * 6),
    ],
)
def test_a_domain_that_is_in_the_way(domain: Any) -> None:
    """No better point is found by projected gradients with the true gradient, begun there."""
    d = 8
    B, best = bowl(d, 30.0)
    f = quadratic(d, 30.0)
    result = pc.minimize(f, domain.for_dimension(d).project(np.zeros(d)), domain=domain, budget=6000, seed=0)
    assert domain.contains(result.x)
    x = result.x
    for _ in range(5000):
        x = domain.project(x - B @ (x - best) / 30.0)
    assert f(result.x) - f(x) < 1e-9


def test_where_probes_must_stay_inside_they_do() -> None:
    """Differences along the axes would leave the domain: the run goes on as if there were noise."""
    box = pc.Box(0.0, 1.0, inside=True)
    asked = []

    def f(x: np.ndarray) -> float:
        asked.append(x.copy())
        return float(((x - 1.2) ** 2).sum())

    pc.minimize(f, np.full(5, 0.5), domain=box, budget=2000, seed=0)
    assert all(box.contains(x, tol=0.0) for x in asked)


def hinge_like(x: np.ndarray, xi: int) -> float:
    """The same value at x0 = 0 for every xi, and nowhere else."""
    rng = np.random.default_rng(xi)
    return max(0.0, 1.0 - float(rng.normal(size=5) @ x))


def test_noise_that_does_not_show_at_x0_is_seen() -> None:
    opt = pc.Optimizer(np.zeros(5), budget=4000, seed=0)
    while (probe := opt.ask()) is not None:
        opt.tell(probe, [hinge_like(x, n) for x, n in zip(probe.points, probe.numbers, strict=True)])
        assert not isinstance(opt._state, ExactState)


@pytest.mark.parametrize("seed", range(3))
def test_noise_that_shows_late_is_coped_with(seed: int) -> None:
    """Every sixteenth xi is off, which the first ones did not show."""

    def f(x: np.ndarray, xi: int) -> float:
        return float(np.abs(x - 0.3).sum() + (0.5 * x.sum() if xi % 16 == 15 else 0.0))

    opt = pc.Optimizer(np.zeros(5), budget=20_000, seed=seed)
    was_exact = False
    while (probe := opt.ask()) is not None:
        opt.tell(probe, [f(x, n) for x, n in zip(probe.points, probe.numbers, strict=True)])
        was_exact = was_exact or isinstance(opt._state, ExactState)
    assert was_exact
    mean = np.mean([f(opt.result().x, xi) for xi in range(16)])
    assert mean - 0.03125 * 1.5 < 0.02  # the best is at 0.3


@pytest.mark.parametrize("size", [1e-10, 1e-8, 1e-6])
def test_ripples_are_looked_over(size: float) -> None:
    """As of a simulation that is solved to some tolerance: there are minima everywhere."""

    def rippled(x: np.ndarray) -> float:
        return float(((x - 0.3) ** 2).sum() + 1.0 + size * np.sin(1e7 * x.sum() + 3e6 * x[0]))

    for seed in range(3):
        result = pc.minimize(rippled, np.zeros(8), budget=4000, seed=seed)
        assert ((result.x - 0.3) ** 2).sum() < max(100.0 * size, 1e-5)
        assert result.status == Status.CONVERGED


def test_at_a_jump_the_lowest_point_is_returned() -> None:
    def f(x: np.ndarray) -> float:
        return float(((x - 1.0) ** 2).sum() + np.floor(3.0 * x[0] + 0.123))

    opt = pc.Optimizer(np.zeros(4), budget=4000, seed=0)
    lowest = inf
    while (probe := opt.ask()) is not None:
        opt.tell(probe, [f(x) for x in probe.points])
        if isinstance(opt._state, ExactState):
            lowest = min(lowest, opt._state.value)
    assert f(opt.result().x) <= lowest < f(np.zeros(4))


@settings(max_examples=25, deadline=None)
@given(budget=st.integers(20, 3000), d=st.integers(1, 30), kinks=st.booleans(), fails=st.booleans())
def test_no_budget_is_exceeded_and_no_end_is_worse_than_x0(budget: int, d: int, kinks: bool, fails: bool) -> None:
    def f(x: np.ndarray) -> float:
        if fails and x[0] > 0.6:
            return np.nan
        off = np.arange(1, d + 1) * (x - 0.5)
        return float(np.abs(off).sum() if kinks else off @ off)

    result = pc.minimize(f, np.zeros(d), budget=budget, seed=3)
    assert result.nfev <= budget
    if result.status == Status.CONVERGED:
        assert f(result.x) <= f(np.zeros(d))


def test_failed_calls_are_counted_and_survived() -> None:
    def f(x: np.ndarray) -> float:
        return np.nan if x[1] > 0.95 else quadratic(6, 10.0)(x)

    result = pc.minimize(f, np.zeros(6), budget=4000, seed=0)
    _, best = bowl(6, 10.0)
    assert best[1] < 0.9
    assert f(result.x) - 1.0 < 1e-8


def test_it_can_be_switched_off() -> None:
    f = quadratic(20, 100.0)
    with_noise = pc.minimize(f, np.zeros(20), method=pc.methods.auto(newton=False), budget=4000, seed=0)
    assert with_noise.status == Status.BUDGET
    assert f(with_noise.x) > 1.0 + 1e-8


def test_a_saddle_is_left() -> None:
    """From where all slopes are zero, but points beside are lower."""
    result = pc.minimize(lambda x: float(x[0] ** 2 - x[1] ** 2 + x[1] ** 4), np.array([1.0, 0.0]), budget=4000, seed=0)
    assert result.fun == pytest.approx(-0.25, abs=1e-9)


def test_a_call_that_fails_at_x_is_no_noise() -> None:
    f, calls, opt = quadratic(4, 10.0), 0, pc.Optimizer(np.zeros(4), budget=3000, seed=0)
    while (probe := opt.ask()) is not None:
        values = [f(x) for x in probe.points]
        if getattr(opt._state, "stage", "") == SLOPES:
            calls += 1
            values[0] = np.nan if calls == 2 else values[0]
        opt.tell(probe, values)
    assert calls > 2
    assert opt.result().status == Status.CONVERGED
    assert f(opt.result().x) - 1.0 < 1e-12


def test_noise_that_shows_late_does_not_end_a_short_run() -> None:
    f = quadratic(4, 10.0)

    def noisy(x: np.ndarray, xi: int) -> float:
        return f(x) + (0.3 * float(np.sin(7.0 * xi) * x.sum()) if xi > 12 else 0.0)

    opt = pc.Optimizer(np.zeros(4), budget=600, seed=0)
    while (probe := opt.ask()) is not None:
        opt.tell(probe, [noisy(x, n) for x, n in zip(probe.points, probe.numbers, strict=True)])
    assert opt.nfev > 590
    assert f(opt.result().x) < f(np.zeros(4))


def test_the_message_says_where_calls_failed_on_the_way() -> None:
    """The way to lower values is not open."""
    result = pc.minimize(lambda x: float(x[0]) if x[0] > 0.25 else np.nan, np.array([1.0]), budget=600, seed=0)
    assert result.x[0] == pytest.approx(0.25, abs=1e-6)
    assert result.status != Status.CONVERGED or "failed" in result.message


def test_many_dimensions_have_no_matrix() -> None:
    opt = pc.Optimizer(np.zeros(2001), budget=40_000, seed=0)
    while opt.nfev < 12_000:
        probe = opt.ask()
        assert probe is not None
        opt.tell(probe, (probe.points**2 - 2.0 * probe.points).sum(axis=1))
        assert not isinstance(opt._state, ExactState)


@pytest.mark.parametrize("stage", [CURVATURES, COMPARE, SLOPES, SEARCH, CUTS])
def test_a_saved_run_goes_on_bit_for_bit(stage: str, tmp_path: pathlib.Path) -> None:
    smooth, A = quadratic(7, 1e3), np.random.default_rng(0).normal(size=(40, 7))

    def f(x: np.ndarray) -> float:
        return float((A @ x + A[:, 0]).max()) if stage == CUTS else smooth(x)

    def run(opt: pc.Optimizer) -> pc.Result:
        while (probe := opt.ask()) is not None:
            opt.tell(probe, [f(x) for x in probe.points])
        return opt.result()

    opt = pc.Optimizer(np.zeros(7), domain=pc.Ball(2.0), budget=3000, seed=5)
    while getattr(opt._state, "stage", "") != stage:
        probe = opt.ask()
        assert probe is not None
        opt.tell(probe, [f(x) for x in probe.points])
    opt.ask()  # asked and not told: it is asked again
    opt.save(tmp_path / "run")
    again = pc.Optimizer.load(tmp_path / "run")
    whole = run(pc.Optimizer(np.zeros(7), domain=pc.Ball(2.0), budget=3000, seed=5))
    resumed = run(again)
    assert resumed.x.tobytes() == whole.x.tobytes()
    assert (resumed.nfev, resumed.message) == (whole.nfev, whole.message)


def test_a_saved_run_that_has_gone_on_as_if_noisy(tmp_path: pathlib.Path) -> None:
    def f(x: np.ndarray, xi: int) -> float:
        return float(np.abs(x - 0.3).sum() + (0.5 * x.sum() if xi > 25 else 0.0))

    def go(opt: pc.Optimizer, until: int) -> pc.Optimizer:
        while opt.nfev < until and (probe := opt.ask()) is not None:
            opt.tell(probe, [f(x, n) for x, n in zip(probe.points, probe.numbers, strict=True)])
        return opt

    def fresh() -> pc.Optimizer:
        return pc.Optimizer(np.zeros(5), budget=6000, seed=0)

    opt = go(fresh(), 3000)
    assert opt._state.run.method.name == "rough"
    opt.save(tmp_path / "run")
    resumed = go(pc.Optimizer.load(tmp_path / "run"), 6000).result()
    assert resumed.x.tobytes() == go(fresh(), 6000).result().x.tobytes()


def test_a_store_keeps_the_end(tmp_path: pathlib.Path) -> None:
    calls = 0

    def f(x: np.ndarray) -> float:
        nonlocal calls
        calls += 1
        return quadratic(5, 10.0)(x)

    path = str(tmp_path / "run.db")
    first = pc.minimize(f, np.zeros(5), budget=3000, seed=0, store=path, name="a")
    made = calls
    second = pc.minimize(f, np.zeros(5), budget=3000, seed=0, store=path, name="a")
    assert calls == made
    assert first.status == second.status == Status.CONVERGED
    assert first.x.tobytes() == second.x.tobytes()


def test_workers_change_nothing() -> None:
    from concurrent.futures import ThreadPoolExecutor

    f = quadratic(8, 100.0)
    alone = pc.minimize(f, np.zeros(8), budget=3000, seed=0)
    with ThreadPoolExecutor(3) as pool:
        shared = pc.minimize(f, np.zeros(8), budget=3000, seed=0, workers=pool)
    assert alone.x.tobytes() == shared.x.tobytes()
    assert alone.nfev == shared.nfev


def test_replicas_are_the_single_runs() -> None:
    B, best = bowl(6, 50.0)

    def rows(X: np.ndarray) -> np.ndarray:
        return np.array([(x - best) @ B @ (x - best) for x in np.atleast_2d(X)])

    together = pc.replicate(rows, np.zeros(6), seeds=range(3), vectorized="rows", budget=2000)
    for seed, result in enumerate(together):
        single = pc.minimize(rows, np.zeros(6), seed=seed, vectorized="rows", budget=2000)
        assert single.x.tobytes() == result.x.tobytes()
        assert single.nfev == result.nfev


def test_the_history_tells_of_it() -> None:
    result = pc.minimize(quadratic(6, 100.0), np.zeros(6), budget=3000, seed=0)
    assert set(result.history["directions"]) == {6.0}
    assert set(result.history["noise"]) == {0.0}
    assert (np.diff(result.history["fun"]) <= 0.0).all()
    assert not isnan(result.history["gradient_norm"][-1])
    assert result.history["gradient_norm"][-1] < 1e-3 * result.history["gradient_norm"][0]


# When there is noise, and when there seems to be none


def stages(F: Any, budget: int, d: int = 5) -> list[tuple[str, int, bool]]:
    """The stage of each probe of a run's beginning, how many points it has, and whether noise was ruled out so far."""
    opt = pc.Optimizer(np.zeros(d), budget=budget, seed=0)
    seen = []
    while (probe := opt.ask()) is not None and opt._state.stage in (START, RAY):
        seen.append((opt._state.stage, len(probe.points), bool(opt._state.exact)))
        opt.tell(probe, [F(x, n) for x, n in zip(probe.points, probe.numbers, strict=True)])
    return seen


def test_without_noise_the_first_estimates_are_of_one_sample() -> None:
    f = quadratic(5, 10.0)
    seen = stages(lambda x, _: f(x), 4000)
    calls = sum(points for stage, points, _ in seen if stage == START)
    assert calls == 2 * 2 + 4  # the ends of two walks, and the rest of one
    assert all(exact for *_, exact in seen)


def test_with_noise_they_are_of_all() -> None:
    f = quadratic(5, 10.0)
    seen = stages(lambda x, n: f(x) + float(np.random.default_rng(n).normal(size=5) @ x), 4000)
    calls = sum(points for stage, points, _ in seen if stage == START)
    assert calls == 8 * 6
    assert not any(exact for stage, _, exact in seen if stage == RAY)


@pytest.mark.parametrize("budget", [150, 300, 4000])
def test_samples_that_agree_at_the_first_point_and_not_further_out(budget: int) -> None:
    """Noise that is nothing close to x_0: it is seen along the ray, and all samples are asked."""

    def F(x: np.ndarray, n: int) -> float:
        far = max(0.0, float(np.abs(x).max()) - 1e-5)
        return float(np.abs(x - 0.3).sum() + far * np.random.default_rng(n).normal())

    opt = pc.Optimizer(np.zeros(3), budget=budget, seed=0)
    while (probe := opt.ask()) is not None:
        opt.tell(probe, [F(x, n) for x, n in zip(probe.points, probe.numbers, strict=True)])
        assert not isinstance(opt._state, ExactState)
    assert opt.nfev <= budget
    assert np.abs(opt.result().x - 0.3).sum() < 0.9


def test_samples_that_are_flat_are_not_taken_for_a_function_without_noise() -> None:
    """Most are flat near x_0, and so have the same value there."""

    def F(x: np.ndarray, n: int) -> float:
        a = np.random.default_rng(n).normal(size=4)
        return max(0.0, float(a @ x) - 0.2) + max(0.0, 0.1 - float(x.sum())) * (n % 3 == 0)

    opt = pc.Optimizer(np.zeros(4), budget=3000, seed=0)
    while (probe := opt.ask()) is not None:
        opt.tell(probe, [F(x, n) for x, n in zip(probe.points, probe.numbers, strict=True)])
        assert not isinstance(opt._state, ExactState)

    def mean(x: np.ndarray) -> float:
        return float(np.mean([F(x, n) for n in range(10**6, 10**6 + 3000)]))

    assert mean(opt.result().x) < 0.7 * mean(np.zeros(4))


@pytest.mark.parametrize("d", [3, 30])
def test_a_run_goes_on_where_the_first_two_samples_are_flat(d: int) -> None:
    """They have the same value, and need no further calls; but others do."""

    def F(x: np.ndarray, n: int) -> float:
        return 0.0 if n < 2 or n % 2 else float(((x - 0.8) ** 2).sum())

    opt = pc.Optimizer(np.zeros(d), budget=3000, seed=0)
    while (probe := opt.ask()) is not None:
        opt.tell(probe, [F(x, n) for x, n in zip(probe.points, probe.numbers, strict=True)])
    assert opt.nfev > 2900
    assert np.abs(opt.result().x - 0.8).max() < 0.1


@pytest.mark.parametrize("power", [2, 4])
@pytest.mark.parametrize("d", [2, 3])
def test_samples_that_depend_on_one_variable_each(power: int, d: int) -> None:
    """The first few may be of the same, and look like a function without noise; slopes say little of units."""
    for seed in range(16):
        best = np.random.default_rng(seed).normal(size=d)

        def F(x: np.ndarray, i: int, best: np.ndarray = best) -> float:
            return float(abs((x[i] - best[i]) / np.abs(best).max()) ** power)

        result = pc.minimize(
            F, np.zeros(d), sample=lambda rng: int(rng.integers(d)), budget=1000, seed=seed, evaluate=0
        )
        assert (np.abs(result.x - best) ** power).sum() < 0.05 * (np.abs(best) ** power).sum()


def test_without_noise_two_samples_are_asked_before_the_others() -> None:
    numbers: set[int] = set()
    opt = pc.Optimizer(np.zeros(112), budget=4000, seed=0)
    while not isinstance(opt._state, ExactState):
        probe = opt.ask()
        assert probe is not None
        numbers |= set(probe.numbers)
        opt.tell(probe, [float((x - 0.3) @ (x - 0.3)) for x in probe.points])
    assert set(range(8)) - numbers  # eight would be asked if there were noise


@pytest.mark.parametrize("kinks", [False, True])
@pytest.mark.parametrize("domain", [None, pc.Box(-1.0, 1.0), pc.Box(0.0, 1.0), pc.Ball(1.0)])
def test_an_x0_that_is_the_best_is_returned(kinks: bool, domain: Any) -> None:
    at_corner = isinstance(domain, pc.Box) and domain.contains(np.zeros(4)) and not domain.contains(np.full(4, -0.5))

    def f(x: np.ndarray) -> float:
        return 1.0 + float(np.abs(x).sum() if kinks else x @ x + (x.sum() if at_corner else 0.0))

    result = pc.minimize(f, np.zeros(4), domain=domain, budget=2000, seed=0)
    assert f(result.x) <= 1.0 + 1e-12
    assert result.status == Status.CONVERGED
    assert result.nfev < 300


def test_sums_in_another_order_are_no_noise() -> None:
    """A product of matrices has other last digits for other numbers of rows."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(60, 20))
    B = A.T @ A / 60.0

    def f(X: np.ndarray) -> np.ndarray:
        return 0.5 * np.einsum("nd,nd->n", X @ B, X) * (1.0 + 2e-16 * (len(X) % 3)) + 1.0

    result = pc.minimize(f, np.ones(20), vectorized=True, budget=3000, seed=0)
    assert result.status == Status.CONVERGED
    assert f(result.x[None])[0] - 1.0 < 1e-12


def test_few_calls_are_enough() -> None:
    f = quadratic(5, 100.0)
    result = pc.minimize(f, np.zeros(5), budget=200, seed=0)
    assert f(result.x) - 1.0 < 1e-10
