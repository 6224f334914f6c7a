"""Functions without noise that have kinks: planes below F, the small problem that they pose, and whose turn it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

import poem_cma as pc
from poem_cma.auto import cuts, turns
from poem_cma.auto.exact_state import CUTS, SLOPES, ExactState
from poem_cma.auto.lightest import lightest
from poem_cma.auto.turns import MODEL, PLANES
from poem_cma.result import Status


class Top:
    """A maximum of affine functions, and the best value of it by linear programming."""

    def __init__(self, d: int, n: int, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.A, self.b = rng.normal(size=(n, d)), rng.normal(size=n)
        self.A -= self.A.mean(axis=0)

    def __call__(self, x: np.ndarray) -> float:
        return float((self.A @ x + self.b).max())

    def best(self, bounds: tuple[float | None, float | None] = (None, None), total: float | None = None) -> float:
        n, d = self.A.shape
        equal = {} if total is None else {"A_eq": np.r_[np.ones(d), 0.0][None], "b_eq": [total]}
        found = linprog(
            np.r_[np.zeros(d), 1.0], A_ub=np.c_[self.A, -np.ones(n)], b_ub=-self.b,
            bounds=[bounds] * d + [(None, None)], **equal,
        )  # fmt: skip
        return float(found.fun)


def states(f: Any, x0: np.ndarray, budget: int, **options: Any) -> list[ExactState]:
    """Those in which planes are asked."""
    opt = pc.Optimizer(x0, budget=budget, seed=0, **options)
    seen = []
    while (probe := opt.ask()) is not None:
        if getattr(opt._state, "stage", "") == CUTS:
            seen.append(opt._state)
        opt.tell(probe, [f(x) for x in probe.points])
    return seen


# The small problem


def primal(G: np.ndarray, below: np.ndarray, N: np.ndarray, slack: np.ndarray) -> float:
    """min max_j <g_j, p> - e_j + |p|^2 / 2 where <n, p> <= c: by another solver, from the other side."""
    d = G.shape[1]
    rows = [{"type": "ineq", "fun": lambda z: z[d] - (G @ z[:d] - below)}]
    if len(N):
        rows.append({"type": "ineq", "fun": lambda z: slack - N @ z[:d]})
    found = minimize(
        lambda z: z[d] + 0.5 * float(z[:d] @ z[:d]), np.zeros(d + 1), constraints=rows, method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-13},
    )  # fmt: skip
    return float(found.fun)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), d=st.integers(1, 6), n=st.integers(1, 9), m=st.integers(0, 4))
def test_the_weights_solve_the_small_problem(seed: int, d: int, n: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    G, N = rng.normal(size=(n, d)), rng.normal(size=(m, d))
    below, slack = np.abs(rng.normal(size=n)), np.abs(rng.normal(size=m))
    weights, pressed = lightest(G, below, N, slack)
    assert (weights >= 0.0).all()
    assert (pressed >= 0.0).all()
    assert weights.sum() == pytest.approx(1.0)
    pull = weights @ G + pressed @ N
    dual = -0.5 * float(pull @ pull) - float(weights @ below) - float(pressed @ slack)
    assert dual == pytest.approx(primal(G, below, N, slack), rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_the_weights_do_not_depend_on_units(size: float) -> None:
    rng = np.random.default_rng(0)
    G, below = rng.normal(size=(6, 3)), np.abs(rng.normal(size=6))
    none = np.zeros((0, 3)), np.zeros(0)
    assert np.allclose(lightest(size * G, size**2 * below, *none)[0], lightest(G, below, *none)[0], atol=1e-9)


def test_planes_far_below_and_planes_that_are_flat_do_no_harm() -> None:
    none = np.zeros((0, 2)), np.zeros(0)
    weights, _ = lightest(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0.0, 1e12]), *none)
    assert np.allclose(weights, [1.0, 0.0])
    weights, _ = lightest(np.zeros((2, 2)), np.array([0.0, 1.0]), *none)
    assert weights.sum() == pytest.approx(1.0)
    weights, _ = lightest(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([5e20, 5e20]), *none)
    assert np.allclose(weights, [0.5, 0.5])


# The planes


def test_the_planes_are_those_of_the_function() -> None:
    """Every plane is one of the affine functions, and as far below F as it is; all but a few, where h met a kink."""
    f = Top(6, 25)
    last = [s for s in states(f, np.zeros(6), 1500) if -s.slope > 1e-6][-1]
    slopes = last.planes * last.unit
    nearest = np.abs(slopes[:, None] - f.A).max(axis=2)
    assert np.mean(nearest.min(axis=1) < 1e-5) > 0.9
    for plane, below in zip(nearest.argmin(axis=1), last.below * last.unit, strict=True):
        if nearest[:, plane].min() < 1e-5:
            assert below == pytest.approx(f(last.x) - (f.A[plane] @ last.x + f.b[plane]), abs=1e-5)


def test_no_more_planes_are_kept_than_are_needed() -> None:
    d, rng = 5, np.random.default_rng(0)
    s = states(Top(d, 20), np.zeros(d), 800)[-1]
    s = s._replace(planes=s.planes[:1], below=np.array([1e3]), weights=np.ones(1))  # far below, but it had a say
    for _ in range(100):
        s = cuts.added(s, rng.normal(size=d), float(rng.uniform()))
        assert len(s.planes) == len(s.below) <= 3 * d + 10
        s = s._replace(weights=np.eye(len(s.planes))[0])
    assert s.below[0] == 1e3
    assert np.sort(s.below)[5] < 0.1


@pytest.mark.parametrize("step", [0.1, 1e-9])
def test_a_move_keeps_every_plane_in_its_place(step: float) -> None:
    f = Top(5, 20)
    s = states(f, np.zeros(5), 800)[-1]
    x = s.x + step * np.random.default_rng(0).normal(size=5)
    after = cuts.moved(s, x, f(x))
    heights = s.value - s.unit * s.below + s.unit * (s.planes @ (x - s.x))
    assert np.allclose(np.abs(f(x) - heights), s.unit * after.below, atol=1e-12)
    back = cuts.moved(after, s.x, s.value)
    kept = heights <= f(x)  # of a plane that met a kink and lies above F at x, the side is lost
    assert np.mean(kept) > 0.9
    assert np.allclose(back.below[kept], s.below[kept], atol=1e-9)


@pytest.mark.parametrize(
    "domain",
    [pc.Box(-0.05, 0.05), pc.Ball(0.15), pc.Simplex(), pc.L1Ball(0.3)],
    ids=lambda domain: type(domain).__name__,
)
def test_the_step_stays_in_the_domain_and_is_the_best_there(domain: Any) -> None:
    """Walls are found by projections alone. No point near the step is better, by planes and distance."""
    f, d = Top(15, 60, seed=3), 15
    x0 = domain.for_dimension(d).project(np.zeros(d))
    seen = [s for s in states(f, x0, 2500, domain=domain) if len(s.walls) and -s.slope > 1e-6]
    assert seen
    rng = np.random.default_rng(0)
    for s in seen[:: max(len(seen) // 5, 1)]:
        inverse = cuts._variances(s)

        def value(p: np.ndarray, s: ExactState = s, inverse: np.ndarray = inverse) -> float:
            return float((s.planes @ p - s.below).max() + (p**2 / inverse).sum() / (2.0 * s.trust))

        assert domain.contains(s.x + s.p, tol=1e-12)
        size = float(np.abs(s.p).max())
        for _ in range(200):
            other = s.run.domain.project(s.x + s.p + size * 0.1 * rng.normal(size=d)) - s.x
            assert value(other) >= value(s.p) - 1e-4 * abs(value(s.p))


# The whole


@pytest.mark.parametrize(("d", "n", "calls"), [(3, 12, 400), (20, 60, 2500), (60, 200, 14_000)])
def test_a_maximum_of_affine_functions_is_found(d: int, n: int, calls: int) -> None:
    f = Top(d, n)
    result = pc.minimize(f, np.zeros(d), budget=calls, seed=0)
    assert f(result.x) - f.best() < 1e-6 * (f(np.zeros(d)) - f.best())


@pytest.mark.parametrize(
    ("domain", "best"),
    [(pc.Box(-0.1, 0.1), {"bounds": (-0.1, 0.1)}), (pc.Simplex(), {"bounds": (0.0, None), "total": 1.0})],
    ids=["box", "simplex"],
)
def test_also_on_a_domain(domain: Any, best: dict[str, Any]) -> None:
    f, d = Top(15, 60, seed=1), 15
    x0 = domain.for_dimension(d).project(np.zeros(d))
    result = pc.minimize(f, x0, domain=domain, budget=2500, seed=0)
    assert domain.contains(result.x, tol=1e-9)
    assert f(result.x) - f.best(**best) < 1e-6 * (f(x0) - f.best(**best))


def test_units_of_the_variables_do_not_matter() -> None:
    f, units = Top(12, 40), 10.0 ** np.random.default_rng(0).uniform(-3.0, 3.0, 12)
    result = pc.minimize(lambda x: f(units * x), np.zeros(12), budget=2500, seed=0)
    assert f(units * result.x) - f.best() < 1e-6 * (f(np.zeros(12)) - f.best())


def test_a_smooth_function_has_no_planes() -> None:
    B = np.diag(np.logspace(0.0, 3.0, 10))
    assert not states(lambda x: float((x - 1.0) @ B @ (x - 1.0)), np.zeros(10), 3000)
    assert not states(lambda x: float(np.logaddexp(0.0, x).sum() - 0.3 * x.sum()), np.zeros(10), 3000)


def test_too_many_variables_have_no_planes() -> None:
    assert not states(lambda x: float(np.abs(x - 0.3).max()), np.zeros(301), 8000)


def test_calls_that_fail_shorten_the_step() -> None:
    """F is not defined beyond a wall that the domain does not know of."""
    f = Top(4, 30)

    def walled(x: np.ndarray) -> float:
        return f(x) if x[0] < 0.02 else np.nan

    result = pc.minimize(walled, np.zeros(4), budget=1500, seed=0)
    allowed = linprog(
        np.r_[np.zeros(4), 1.0], A_ub=np.c_[f.A, -np.ones(30)], b_ub=-f.b, bounds=[(None, 0.02)] + [(None, None)] * 4
    ).fun
    assert f(result.x) - allowed < 0.05 * (f(np.zeros(4)) - allowed)


def test_noise_that_shows_while_planes_are_asked_is_seen() -> None:
    f = Top(5, 20)
    opt = pc.Optimizer(np.zeros(5), budget=6000, seed=0)
    asked = 0
    while (probe := opt.ask()) is not None and opt._state.run.method.name != "rough":
        asked += getattr(opt._state, "stage", "") == CUTS
        opt.tell(
            probe, [f(x) + (0.01 * n if asked > 3 else 0.0) for x, n in zip(probe.points, probe.numbers, strict=True)]
        )
    assert asked > 3
    assert opt._state.run.method.name == "rough"


ON_KINKS = {
    "crossing": (lambda x: 1.0 + abs(x[0] - 2.0 * x[1]) + max(abs(x[0] - 0.3), abs(x[1] - 0.3)), [0.0, 0.0], 1.1),
    "valley": (lambda x: 1.0 + max(10.0 * (x[0] - x[1]), x[1] - x[0]) + abs(x[0] + x[1] - 2.0), [0.0, 0.0], 1.0),
    "not convex": (lambda x: abs(x[0] - 1.0) / 4.0 + abs(x[1] - 2.0 * x[0] ** 2 + 1.0), [-1.0, 1.0], 0.0),
    "steep": (lambda x: 1.0 + 100.0 * abs(x @ [1.0, 2.0, -3.0]) + 0.1 * ((x - 1.0) ** 2).sum(), [0.0] * 3, 1.0),
    "zero": (lambda x: abs(x[0]) - 0.5 * x[1] + 0.5 * x[1] ** 2, [0.0, 0.0], -0.125),
    "all equal": (lambda x: np.maximum(np.exp(x) - 2.0 * x, x**2).max(), [0.0] * 5, 2.0 - 2.0 * np.log(2.0)),
}


@pytest.mark.parametrize("name", ON_KINKS)
@pytest.mark.parametrize("seed", range(3))
def test_a_start_on_a_kink_is_no_end(name: str, seed: int) -> None:
    f, x0, best = ON_KINKS[name]
    result = pc.minimize(f, np.array(x0), budget=4000, seed=seed)
    assert f(result.x) - best < 1e-5 * max(f(np.array(x0)) - best, 1e-3)


def test_the_end_is_one() -> None:
    f = Top(6, 25)
    result = pc.minimize(f, np.zeros(6), budget=8000, seed=0)
    assert result.status == Status.CONVERGED
    assert result.nfev < 4000


# Whose turn it is


@pytest.fixture
def amid() -> ExactState:
    return states(Top(6, 25), np.zeros(6), 1500)[3]


def test_the_one_with_which_more_was_won_is_used(amid: ExactState) -> None:
    assert turns.best(amid._replace(falls=np.array([1.0, 2.0]))) == PLANES
    assert turns.best(amid._replace(falls=np.array([2.0, 1.0]))) == MODEL
    assert turns.best(turns.without(amid._replace(falls=np.array([2.0, 1.0])), MODEL)) == PLANES


def test_a_turn_ends_with_what_was_won_per_gradient(amid: ExactState) -> None:
    s = amid._replace(turn=0, turn_value=amid.value + 7.0 * amid.unit, falls=np.array([3.0, 3.0]))
    count = 0
    while s.falls[PLANES] == 3.0:
        s = turns.counted(s)
        count += 1
    assert s.falls[PLANES] == pytest.approx(7.0 / (count - 1))
    assert s.falls[MODEL] == 3.0
    assert s.turn == 0
    other = turns.counted(amid._replace(stage=SLOPES, turn=100, turn_value=amid.value))
    assert other.falls[MODEL] == 0.0


def test_planes_fail_only_after_some_barren_turns(amid: ExactState) -> None:
    s, ends = amid._replace(turn_value=amid.value, hoped=-amid.slope, barren=0), 0
    while s.falls[PLANES] > 0.0:
        before = s
        s = turns.counted(s)
        ends += s.turn <= before.turn
    assert ends == 4
    nearer = amid._replace(turn=100, turn_value=amid.value, hoped=-10.0 * amid.slope, barren=3)
    assert turns.counted(nearer).falls[PLANES] > 0.0
