"""Near: slopes by walks that are halved, dual averaging, and samples evaluated again."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from auto_helpers import Draws, begun, classification, drive, numbered, regression
from inside import state_of
from scipy.linalg import svd

import poem_cma as pc
from poem_cma.auto.near import phase, replay, walk
from poem_cma.auto.near.state import AGAIN, NO_WALK, Near, Walk, begin
from poem_cma.auto.near.step import CLIP, FACTOR, TERMS, step
from poem_cma.auto.near.subspace import OUTSIDE, SURE, _basis


def walked(f: Any, near: Near, run: Any, draws: Draws) -> tuple[np.ndarray, list[np.ndarray]]:
    """The slopes along all axes by a walk, and the points that it took."""
    d, seen = len(near.x), []
    near = near._replace(walk=Walk(0, d, 0, -1, False, np.full(d + 1, np.nan)))
    while places := walk.places(near.walk, near):
        points = list(walk.request(near, run, draws).points())
        assert len(points) == len(places)
        known = near.walk.known.copy()
        known[places] = [f(x) for x in points]
        seen += points
        near = near._replace(walk=near.walk._replace(known=known))
    return walk.slopes(near, run, draws)[0], seen


@pytest.mark.parametrize("d", [1, 2, 7, 64])
def test_slopes_of_a_linear_function_are_exact(d: int) -> None:
    a = np.random.default_rng(d).normal(size=d)
    for seed in range(5):
        s, draws = begun(np.zeros(d), seed=seed)
        g, seen = walked(lambda x: float(a @ x), begin(np.zeros(d), 1.0, 0.0, 0.0), s.run, draws)
        assert len(seen) == d + 1
        np.testing.assert_allclose(g, a, rtol=1e-9, atol=1e-9 * np.abs(a).max())


def test_slopes_of_a_piecewise_linear_function_are_those_of_its_piece() -> None:
    """Along each axis the slope is the difference of the values at the two places that the axis joins."""
    d = 6
    A, b = np.random.default_rng(0).normal(size=(12, d)), np.random.default_rng(1).normal(size=12)
    same = 0
    for seed in range(40):
        s, draws = begun(np.zeros(d), seed=seed)
        g, seen = walked(lambda x: float((A @ x + b).max()), begin(np.zeros(d), 1.0, 0.0, 0.0), s.run, draws)
        pieces = {int(np.argmax(A @ x + b)) for x in seen}
        if len(pieces) == 1:
            same += 1
            np.testing.assert_allclose(g, A[pieces.pop()], rtol=1e-7, atol=1e-8)
    assert same >= 30  # a walk is a hundredth as long as the radius


@pytest.mark.parametrize("active", [0, 1, 3])
def test_a_sparse_sample_costs_few_evaluations(active: int) -> None:
    """Both ends, and for each variable that matters a path of halvings."""
    d = 256
    a = np.zeros(d)
    a[[7, 90, 200][:active]] = [1.0, -2.0, 0.5][:active]
    for seed in range(5):
        s, draws = begun(np.zeros(d), seed=seed)
        g, seen = walked(lambda x: float(a @ x), begin(np.zeros(d), 1.0, 0.0, 0.0), s.run, draws)
        assert len(seen) <= 2 + 8 * active
        np.testing.assert_allclose(g, a, atol=1e-9)


def test_variables_that_mattered_come_first() -> None:
    """Then they lie side by side, and the rest is one flat stretch."""
    d = 256
    a = np.zeros(d)
    a[::32] = 1.0 + np.arange(8.0)
    s, draws = begun(np.zeros(d))
    near = begin(np.zeros(d), 1.0, 0.0, 0.0)
    _, unknown = walked(lambda x: float(a @ x), near, s.run, draws)
    g, known = walked(lambda x: float(a @ x), near._replace(active=(a != 0.0).astype(float)), s.run, draws)
    assert len(known) < 0.5 * len(unknown)
    np.testing.assert_allclose(g, a, atol=1e-9)


@pytest.mark.parametrize("domain", [pc.Box(-0.5, 0.5), pc.Ball(0.5), pc.Simplex()], ids=["box", "ball", "simplex"])
def test_walks_stay_in_the_domain(domain: Any) -> None:
    d = 5
    x = np.full(d, 1.0 / d) if isinstance(domain, pc.Simplex) else np.eye(d)[0] * 0.5
    a = np.arange(1.0, d + 1.0)
    for seed in range(10):
        s, draws = begun(x, domain=domain, seed=seed)
        g, seen = walked(lambda x: float(a @ x), begin(x, 0.4, 0.0, 0.0), s.run, draws)
        assert all(s.run.domain.contains(y, 1e-12) for y in seen)
        tangent = s.run.domain.tangent(np.eye(d))
        np.testing.assert_allclose(tangent @ g if isinstance(domain, pc.Simplex) else g, tangent @ a, atol=1e-7)


@pytest.mark.parametrize("failed", [np.nan, np.inf])
def test_failures_leave_finite_slopes(failed: float) -> None:
    d, a = 16, np.ones(16)
    for seed in range(20):
        s, draws = begun(np.zeros(d), seed=seed)
        fails = np.random.default_rng(seed)

        def f(x: np.ndarray, fails: np.random.Generator = fails) -> float:
            return np.inf if fails.random() < 0.1 else float(a @ x)

        g, _ = walked(f, begin(np.zeros(d), 1.0, 0.0, 0.0), s.run, draws)
        np.testing.assert_allclose(g[g != 0.0], 1.0, rtol=1e-7)


# Steps


@pytest.mark.parametrize("domain", [None, pc.Ball(0.7), pc.Box(-0.2, 0.5)], ids=["space", "ball", "box"])
def test_a_step_is_that_of_dual_averaging(domain: Any) -> None:
    """x_t = Proj(x_0 - R sum g / sqrt(sum |g|^2)), with R twice or half as large on evidence."""
    d, rng = 4, np.random.default_rng(0)
    s, _ = begun(np.full(d, 0.1), domain=domain)
    x0 = s.run.x0
    near = begin(x0, 0.3, 0.0, 0.0)
    total, G, R, radial, squares, terms = np.zeros(d), 0.0, 0.3, 0.0, 0.0, 0
    for t in range(60):
        g = rng.normal(size=d) + np.array([1.0, -0.5, 0.0, 0.2])
        length = float(np.linalg.norm(g))
        most = CLIP * np.sqrt(G / t) if t >= TERMS else np.inf
        g = g * min(1.0, most / length)
        inner = float(g @ (near.x - x0))
        radial, squares, terms = radial + inner, squares + inner**2, terms + (inner != 0.0)
        total, G = total + g, G + float(g @ g)
        if terms >= TERMS and abs(radial) > 3.0 * np.sqrt(squares):
            R = min(FACTOR * R, 0.5 * s.run.domain.diameter) if radial < 0.0 else R / FACTOR
            radial, squares, terms = 0.0, 0.0, 0
        near = step(near, g, s.run, fresh=True)
        assert pytest.approx(R) == near.R
        np.testing.assert_allclose(near.x, s.run.domain.project(x0 - R * total / np.sqrt(G)), rtol=1e-9, atol=1e-12)


def test_the_scale_doubles_and_halves_on_evidence() -> None:
    s, _ = begun(np.zeros(3))
    g = np.array([1.0, 2.0, -0.5])
    away = begin(np.zeros(3), 1.0, 0.0, 0.0)
    scales = []
    for _ in range(3 * TERMS):
        away = step(away, g, s.run, fresh=True)  # all gradients agree: on and on
        scales.append(away.R)
    assert max(scales) >= FACTOR
    assert all(b / a in (1.0, FACTOR) for a, b in itertools.pairwise(scales))
    back = begin(np.zeros(3), 1.0, 0.0, 0.0)._replace(x=-g)
    for _ in range(2 * TERMS):
        back = step(back, 0.1 * (back.x - back.x0), s.run, fresh=True)._replace(x=-g)  # they point back
    assert back.R <= 1.0 / FACTOR


def test_noise_changes_the_scale_rarely() -> None:
    """Gradients without a mean: a change needs two standard errors."""
    changes = 0
    for seed in range(30):
        rng, (s, _) = np.random.default_rng(seed), begun(np.zeros(5))
        near = begin(np.zeros(5), 1.0, 0.0, 0.0)
        for _ in range(200):
            before = near.R
            near = step(near, rng.normal(size=5), s.run, fresh=True)
            changes += before < near.R
    assert changes <= 30 * 8


def test_one_gradient_that_is_absurd_is_cut() -> None:
    s, _ = begun(np.zeros(3))
    rng = np.random.default_rng(0)
    near = begin(np.zeros(3), 1.0, 0.0, 0.0)
    for t in range(40):
        near = step(near, rng.normal(size=3) * (1e30 if t == 20 else 1.0), s.run, fresh=True)
    assert near.G < 1e4


def test_nothing_seen_is_nothing_done() -> None:
    s, _ = begun(np.zeros(3))
    near = step(begin(np.ones(3), 1.0, 0.0, 0.0), np.zeros(3), s.run, fresh=True)
    assert (near.x == 1.0).all()
    for absurd in (np.nan, np.inf, 1e200):
        with np.errstate(over="ignore", invalid="ignore"):
            near = step(near, np.full(3, absurd), s.run, fresh=True)
        assert (near.x == 1.0).all()


# Samples evaluated again


def test_gradients_of_samples_evaluated_again_are_those_of_a_linear_model() -> None:
    """loss(a x): along a / |a| two values give slope * a, anywhere."""
    d = 5
    s, draws = begun(np.zeros(d))
    for number in range(20):
        a = np.random.default_rng(number).normal(size=d)
        near = begin(np.full(d, 0.3), 1.0, 0.0, 0.0)
        memory = near.memory._replace(directions=(a / np.linalg.norm(a),), numbers=(number,), mode=AGAIN)
        near = near._replace(memory=memory)
        request = replay.request(near, s.run, draws, number, 0)
        assert request.sample == -1 - number
        X = np.array(list(request.points()))
        g = replay.gradient(near, s.run, draws, number, 0, 3.0 * X @ a)
        np.testing.assert_allclose(g, 3.0 * a, rtol=1e-9)
        assert not replay.gradient(near, s.run, draws, number, 0, np.array([1.0, np.nan])).any()


def test_all_known_samples_come_once_before_one_comes_twice() -> None:
    _, draws = begun(np.zeros(2))
    memory = begin(np.zeros(2), 1.0, 0.0, 0.0).memory._replace(numbers=tuple(range(9)), directions=(np.ones(2),) * 9)
    turns = [replay.chosen(memory._replace(turn=k), draws) for k in range(27)]
    assert all(sorted(turns[k : k + 9]) == list(range(9)) for k in (0, 9, 18))
    assert turns[:9] != turns[9:18]


@pytest.mark.parametrize(("kind", "again"), [("linear model", True), ("turns", False)])
def test_samples_are_evaluated_again_where_their_gradients_keep_their_direction(kind: str, again: bool) -> None:
    d = 6
    logistic = classification(lambda u: np.logaddexp(0.0, -u), d, 0)

    def turning(x: np.ndarray, n: int) -> float:
        return float(((x - 1.0) ** 2).sum() + np.cos(1e4 * x + numbered(n).normal(size=d)).sum())

    opt = pc.Optimizer(np.zeros(d), method="near", budget=3000, seed=0)

    def over(s: Any) -> bool:
        return s.phase == "judge" or (s.phase == "near" and s.search.memory.mode == AGAIN)

    s = state_of(drive(opt, logistic if kind == "linear model" else turning, over))
    assert len(s.search.memory.cosines) == replay.TRIED
    assert (s.phase == "near") == again


# The whole regime


@pytest.mark.parametrize("power", [np.abs, np.square], ids=["absolute", "squared"])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_the_scale_of_x_is_found(size: float, power: Any) -> None:
    d = 10
    ends = []
    for seed in range(3):
        f = regression(power, d, seed)
        result = pc.Optimizer(np.zeros(d), method="near", budget=3000, seed=seed)
        x = drive(result, lambda x, n, f=f: f(x / size, n)).result().x / size
        best = np.random.default_rng(seed).normal(size=d)
        ends.append(float(np.linalg.norm(x - best) / np.linalg.norm(best)))
    assert np.median(ends) < 0.15


def test_a_step_is_complete_when_its_walk_is() -> None:
    s, draws = begun(np.zeros(4))
    near = phase.opened(begin(np.zeros(4), 1.0, 0.0, 0.0), s.run, draws, 7, 3, np.inf)
    assert near.walk.sample == 3
    moved, stages = False, 0
    while not moved:
        (request,) = phase.requests(near, s.run, draws, 7)
        assert request.sample == -1 - 3
        values = [np.array([float(x @ np.arange(4.0)) for x in request.points()])]
        near, moved = phase.advance(near, s.run, draws, 7, values)
        stages += 1
    assert near.walk is NO_WALK
    assert near.t == 1
    assert 2 <= stages <= 4
    np.testing.assert_allclose(near.s, np.arange(4.0), atol=1e-9)


@pytest.mark.parametrize(("number", "d", "rank"), [(5, 40, 3), (40, 5, 2), (60, 60, 60)])
def test_the_basis_of_a_span_is_orthonormal_and_complete(number: int, d: int, rank: int) -> None:
    """Of more or fewer unit vectors than variables; the reference is a singular value decomposition of SciPy's."""
    rng = np.random.default_rng(0)
    U = rng.normal(size=(number, rank)) @ rng.normal(size=(rank, d))
    U /= np.sqrt((U * U).sum(axis=1, keepdims=True))
    Q = _basis(U)
    np.testing.assert_allclose(Q @ Q.T, np.eye(len(Q)), atol=1e-9)
    _, sizes, V = svd(U, full_matrices=False, lapack_driver="gesvd")
    wanted = V[sizes > OUTSIDE / SURE]
    np.testing.assert_allclose(Q.T @ Q, wanted.T @ wanted, atol=1e-6)
