"""What all samples have in common: penalties, and what points out of a domain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import poem_cma as pc
from poem_cma.auto import walks
from poem_cma.auto.common import common_gradient, common_value, dense, in_common, penalties
from poem_cma.auto.state import START, STEP

EPS = float(np.finfo(float).eps)


def walked(seed: int, ridge: float, lasso: float, share: float = 0.15) -> tuple[list[int], np.ndarray, np.ndarray]:
    """Places of a walk, their points, and the values of a logistic loss on some features, with a penalty."""
    rng = np.random.default_rng(seed)
    d = 120
    base, steps = rng.normal(size=d), rng.choice([-1.0, 1.0], size=d) * rng.uniform(0.5, 1.5, d) * 1e-4
    a = np.where(rng.random(d) < share, rng.normal(size=d), 0.0)
    places = sorted({0, d, *rng.choice(d, 60, replace=False).tolist()})
    X = base + np.where(np.arange(d) < np.array(places)[:, None], steps, 0.0)
    return places, X, np.logaddexp(0.0, X @ a) + 0.5 * ridge * (X**2).sum(axis=1) + lasso * np.abs(X).sum(axis=1)


@pytest.mark.parametrize("penalty", [(0.01, 0.0), (0.0, 0.002), (0.01, 0.002), (1e-4, 1e-3), (0.3, 0.0)])
def test_a_penalty_is_seen_along_a_walk(penalty: tuple[float, float]) -> None:
    for seed in range(20):
        places, X, F = walked(seed, *penalty)
        assert dense(places, F, EPS)
        np.testing.assert_allclose(penalties(X, F, EPS), penalty, rtol=1e-6, atol=1e-10)


def test_nothing_is_seen_where_there_is_none() -> None:
    for seed in range(20):
        places, _, F = walked(seed, 0.0, 0.0)
        assert not dense(places, F, EPS)  # a walk along few features
        _, X, F = walked(seed, 0.0, 0.0, share=1.0)
        assert not penalties(X, F, EPS).any()


def test_slopes_of_equal_size_are_no_penalty() -> None:
    """Near zero every second one is that of lambda |x|_1, and on every sample that is the same plane."""
    d = 40
    for seed in range(20):
        rng = np.random.default_rng(seed)
        base, slopes = 1e-6 * rng.normal(size=d), 0.7 * rng.choice([-1.0, 1.0], size=d)
        X = base + 1e-8 * np.tri(d + 1, d, -1)
        assert not penalties(X, X @ slopes, EPS).any()


def test_what_is_less_than_nothing_is_no_penalty() -> None:
    seen = np.array([-0.01, 0.0])
    assert not in_common(seen, seen, np.zeros(2))
    assert in_common(1e-9 * seen, np.zeros(2), -seen)


def test_one_sample_is_not_believed() -> None:
    none, seen = np.zeros(2), np.array([0.01, 0.0])
    assert not in_common(seen, none, none)
    assert not in_common(seen, 1.001 * seen, none)
    assert in_common(seen, seen * (1.0 + 1e-8), none)
    assert in_common(1e-9 * seen, none, seen)  # some more digits
    assert not in_common(np.array([0.01, 1e-12]), none, np.array([0.0, 0.002]))


@settings(max_examples=30, deadline=None)
@given(st.floats(0.0, 10.0), st.floats(0.0, 10.0), st.integers(0, 10**6))
def test_the_gradient_is_that_of_the_value(ridge: float, lasso: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, v = np.sign(rng.normal(size=5)) * rng.uniform(0.1, 2.0, 5), rng.normal(size=5)
    penalty, h = np.array([ridge, lasso]), 1e-4
    rise = common_value(penalty, np.stack([x + h * v, x - h * v]), x)
    assert rise @ [1.0, -1.0] / (2.0 * h) == pytest.approx(common_gradient(penalty, x) @ v, rel=1e-6, abs=1e-6)


# Runs


def loss(d: int = 60, n: int = 400, ridge: float = 0.0, lasso: float = 0.0) -> tuple[Any, Any, Any]:
    """A logistic loss on few features of many, with a penalty: F of rows, the sampler, and the gap."""
    rng = np.random.default_rng(0)
    A = (rng.random((n, d)) < 0.1).astype(float)
    y = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-A @ rng.normal(size=d) * 3.0)), 1.0, -1.0)

    def penalty(X: np.ndarray) -> Any:
        return 0.5 * ridge * (X**2).sum(axis=-1) + lasso * np.abs(X).sum(axis=-1)

    def f(x: np.ndarray) -> float:
        return float(np.logaddexp(0.0, -y * (A @ x)).mean() + penalty(x))

    x, v, t, L = np.zeros(d), np.zeros(d), 1.0, float(np.linalg.norm(A, 2)) ** 2 / n + ridge
    for _ in range(3000):  # FISTA, by hand
        z = v - (A.T @ (-y / (1.0 + np.exp(y * (A @ v)))) / n + ridge * v) / L
        z = np.sign(z) * np.maximum(np.abs(z) - lasso / L, 0.0)
        longer = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        x, v, t = z, z + (t - 1.0) / longer * (z - x), longer
    return (
        lambda X, i: np.logaddexp(0.0, -y[i] * (X @ A[i])) + penalty(X),
        lambda r: int(r.integers(n)),
        lambda z: (f(z) - f(x)) / (f(np.zeros(d)) - f(x)),
    )


@pytest.mark.parametrize("penalty", [{"ridge": 0.02}, {"lasso": 0.003}, {"ridge": 0.02, "lasso": 0.003}])
def test_a_penalty_costs_no_calls(penalty: dict[str, float]) -> None:
    """With it known, the run is nearly as good as on a loss that is sparse; without, several times worse."""
    F, sample, gap = loss(**penalty)

    def end(**parts: bool) -> float:
        method = pc.methods.auto(**parts)
        gaps = [
            gap(
                pc.minimize(
                    F, np.zeros(60), sample=sample, method=method, budget=6000, seed=seed, vectorized=True, evaluate=0
                ).x
            )
            for seed in range(3)
        ]
        return float(np.exp(np.mean(np.log(gaps))))

    assert end() < 0.5 * end(common=False)


def test_the_penalty_is_known_to_many_digits_and_survives_a_checkpoint(tmp_path: Any) -> None:
    F, sample, _ = loss(ridge=0.02, lasso=0.003)

    def answer(opt: pc.Optimizer) -> bool:
        probe = opt.ask()
        if probe is None:
            return False
        xi = [sample(np.random.default_rng(n)) for n in probe.numbers]
        opt.tell(probe, [float(F(x[None], i)[0]) for x, i in zip(probe.points, xi, strict=True)])
        return True

    opt = pc.Optimizer(np.zeros(60), budget=4000, seed=0)
    while opt.nfev < 2500:
        answer(opt)
    np.testing.assert_allclose(opt._state.penalty, [0.02, 0.003], rtol=1e-7)
    opt.save(tmp_path / "run")
    again = pc.Optimizer.load(tmp_path / "run")
    for one in (opt, again):
        while answer(one):
            pass
    assert again.result().x.tobytes() == opt.result().x.tobytes()


def test_a_penalty_that_is_none_biases_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean of estimates is the gradient, whatever is taken for common."""
    d = 8
    goal = np.arange(d) - 3.5

    def told(opt: pc.Optimizer) -> None:
        probe = opt.ask()
        assert probe is not None
        opt.tell(probe, [float(((x - goal) ** 2).sum() + np.sin(probe.numbers[0]) * x[0]) for x in probe.points])

    wrong = iter([np.array([3.0, 5.0])] * 2)
    monkeypatch.setattr(walks, "penalties", lambda X, F, eps: next(wrong, np.zeros(2)))
    opt = pc.Optimizer(np.zeros(d), method=pc.methods.auto(newton=False), budget=6000, seed=0)
    while not opt.done:
        told(opt)
    assert opt._state.penalty.tolist() == [3.0, 5.0]
    assert np.abs(opt.result().x - goal).max() < 0.1


# Domains of lower dimension


def test_what_points_out_of_a_simplex_does_not_shorten_steps() -> None:
    """Adding c sum(x), which is constant on the simplex, changes nothing but rounding."""
    d = 12
    rng = np.random.default_rng(1)
    R = 1.0 + 0.1 * rng.normal(size=(500, d)) + 0.02 * np.arange(d)
    ends = []
    for c in (0.0, 100.0):
        result = pc.minimize(
            lambda X, i, c=c: c * X.sum(axis=1) - np.log(X @ R[i]), np.full(d, 1.0 / d), domain=pc.Simplex(1.0),
            sample=lambda r: int(r.integers(500)), budget=6000, seed=0, vectorized=True, evaluate=0,
        )  # fmt: skip
        ends.append(float(-np.log(R @ result.x).mean()))
    best, start = float(-np.log(R[:, -1]).mean()), float(-np.log(R.mean(axis=1)).mean())
    assert max(ends) < start - 0.7 * (start - best)
    assert ends[1] == pytest.approx(ends[0], abs=0.1 * (start - best))


def test_walks_on_a_simplex_are_whole() -> None:
    """Along some axes only, most of a slope would be what points out of it."""
    d = 20
    opt = pc.Optimizer(np.full(d, 1.0 / d), domain=pc.Simplex(1.0), budget=3000, seed=0)
    while (probe := opt.ask()) is not None:
        s = opt._state
        if s.stage == STEP and s.kind == "walk":
            assert s.q == d
        elif s.stage == START:
            assert s.q in (d, d - 1) or s.kind == "haar"
        rng = np.random.default_rng(probe.numbers[0])
        r = 1.0 + 0.1 * rng.normal(size=d) + 0.02 * np.arange(d)
        opt.tell(probe, [-float(np.log(max(x @ r, 1e-9))) for x in probe.points])
