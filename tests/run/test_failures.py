"""Calls that raise, return NaN, or return nonsense."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from inside import state_of
from problems import hinge

import poem_cma as pc

P = hinge(d=5)
FORWARD = [pc.methods.tpge(lipschitz=P.lipschitz), pc.methods.rsnso(lipschitz=P.lipschitz)]
CENTRAL = [
    pc.methods.poem(),
    pc.methods.poem_cma(samples=30),
    pc.methods.tpbco(lipschitz=P.lipschitz),
    pc.methods.auto(),
]


def run(fun: Callable[..., Any], method: Any = CENTRAL[0], budget: int = 4000, **settings: Any) -> pc.Result:
    return pc.minimize(
        fun, np.zeros(P.d), sample=P.sample, domain=pc.Ball(1.0), method=method, budget=budget, seed=0, **settings
    )


def failing(share: float, how: str, seed: int = 1) -> tuple[Callable[..., float], list[int]]:
    """P.fun, of which a share of the calls fails; and the number of those, as it grows."""
    rng = np.random.default_rng(seed)
    failed = [0]

    def fun(x: np.ndarray, i: int) -> float:
        if rng.random() >= share:
            return P.fun(x, i)
        failed[0] += 1
        if how == "raise":
            raise RuntimeError("the simulator crashed")
        return {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}[how]

    return fun, failed


@pytest.mark.parametrize("how", ["raise", "nan", "inf", "-inf"])
@pytest.mark.parametrize("method", CENTRAL + FORWARD, ids=lambda m: m.name)
def test_failed_calls_are_dropped_and_counted(method: pc.Method, how: str) -> None:
    fun, failed = failing(0.2, how)
    result = run(fun, method)
    assert result.failures == failed[0] > 0
    assert result.nfev <= 4000
    assert np.isfinite(result.x).all()
    assert np.isfinite(result.fun)
    assert result.success
    assert f"{failed[0]} calls failed" in result.message
    assert ("RuntimeError: the simulator crashed" if how == "raise" else "fun returned") in result.message
    assert P.full(result.x) < 0.85 * P.full(np.zeros(P.d))


@pytest.mark.parametrize("method", CENTRAL[:2], ids=lambda m: m.name)
def test_a_failed_leg_never_becomes_a_gradient(method: pc.Method) -> None:
    """A failed pair is as if it had not been asked: the iterates are those of the other pairs."""
    fun, _ = failing(0.3, "nan")
    result = run(fun, method, budget=2000)
    assert result.history["gradient_norm"].max() <= P.lipschitz * P.d * (1 if method.name == "poem" else 4) * 1.01
    assert result.nit < 1000


def test_the_remaining_slopes_of_a_step_are_rescaled() -> None:
    """With a batch of four and one pair lost, the estimate is the mean of the other three."""
    opt = pc.Optimizer(np.zeros(P.d), method="poem", domain=pc.Ball(1.0), batch=4, budget=8, seed=2)
    probes = [opt.ask() for _ in range(4)]
    before, slopes, v = state_of(opt), [1.0, 2.0, -3.0], []
    for n, p in enumerate(probes):
        assert p is not None
        v.append((p.points[0] - p.points[1]) / (2 * before.mu))
        if n == 3:
            opt.tell(p, [float("nan"), 1.0])
        else:
            opt.tell(p, [2 * before.mu * slopes[n], 0.0])
    g = P.d * sum(s * w for s, w in zip(slopes, v[:3], strict=True)) / 3
    np.testing.assert_allclose(opt.result().x_last, -0.1 * g / np.linalg.norm(g), rtol=1e-9)
    assert state_of(opt).g_norm * state_of(opt).unit == pytest.approx(np.linalg.norm(g))
    assert opt.failures == 1


@pytest.mark.parametrize("method", FORWARD, ids=lambda m: m.name)
def test_a_failed_base_value_is_asked_again_on_the_same_sample(method: pc.Method) -> None:
    opt = pc.Optimizer(np.zeros(P.d), method=method, domain=pc.Ball(1.0), budget=9, seed=0)
    first = opt.ask()
    assert first is not None
    opt.tell(first, [float("nan"), 1.0])
    again = opt.ask()
    assert again is not None
    assert again.points.tobytes() == first.points[:1].tobytes()
    assert again.samples.tolist() == first.samples[:1].tolist()
    assert again.id != first.id
    with pytest.raises(ValueError, match="not waiting"):
        opt.tell(first, [1.0, 1.0])
    opt.tell(again, [0.5])
    assert (opt.nit, opt.nfev, opt.failures) == (1, 3, 1)  # the slope was saved

    second = opt.ask()
    assert second is not None
    opt.tell(second, [float("nan"), 1.0])
    again = opt.ask()
    assert again is not None
    opt.tell(again, [float("nan")])
    assert (opt.nit, opt.nfev, opt.failures) == (1, 6, 3)  # the step was skipped
    third = opt.ask()
    assert third is not None
    assert third.points[0].tobytes() != second.points[0].tobytes() or method.name == "rsnso"
    assert third.samples[0] != second.samples[0]
    opt.tell(third, [float("nan"), 1.0])
    last = opt.ask()
    assert last is not None
    opt.tell(last, [1.0])
    assert opt.done  # nine calls, and not one more
    assert opt.nfev == 9


def test_a_base_value_is_not_asked_again_beyond_the_budget() -> None:
    opt = pc.Optimizer(np.zeros(P.d), method=FORWARD[1], domain=pc.Ball(1.0), budget=2, seed=0)
    probe = opt.ask()
    assert probe is not None
    opt.tell(probe, [float("nan"), 1.0])
    assert opt.ask() is None
    assert opt.nfev == 2


@pytest.mark.parametrize("method", CENTRAL + FORWARD, ids=lambda m: m.name)
def test_a_run_in_which_everything_fails_stops_early_and_says_why(method: pc.Method) -> None:
    """If every call raises, the exception is the user's: `test_first_failures`."""

    def broken(x: np.ndarray, i: int) -> float:
        return float("nan")

    result = run(broken, method, budget=1_000_000)
    assert result.nfev <= 300
    assert not result.success
    assert f"all {result.nfev} calls failed" in result.message
    assert result.message.startswith("fun returned nan")
    assert (result.x == 0.0).all()


def test_a_run_that_starts_to_fail_for_good_stops() -> None:
    calls = 0

    def fun(x: np.ndarray, i: int) -> float:
        nonlocal calls
        calls += 1
        return P.fun(x, i) if calls <= 1000 else float("nan")

    result = run(fun, budget=100_000)
    assert 1200 <= result.nfev <= 1210
    assert not result.success
    assert "no usable difference" in result.message
    assert P.full(result.x) < P.full(np.zeros(P.d))


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_a_sample_that_fails_as_a_whole_does_not_end_the_run(noise: float) -> None:
    """All the points of its probe fail, more than would end a run if they were of many."""
    d = 250

    def fun(x: np.ndarray, xi: float) -> float:
        return float(((x - 1.0) ** 2).sum() + noise * xi * x.sum()) if xi < 0.8 else float("nan")

    result = pc.minimize(fun, np.zeros(d), sample=lambda rng: rng.random(), budget=20_000, seed=0, evaluate=0)
    assert result.success
    assert result.failures > 0
    assert ((result.x - 1.0) ** 2).sum() < 0.1 * d


@pytest.mark.parametrize("how", ["raise", "nan"])
@pytest.mark.parametrize("vectorized", [False, True, "rows"])
def test_raise_raises_with_the_point_and_the_result_so_far(how: str, vectorized: Any) -> None:
    calls = 0

    def fun(x: np.ndarray, i: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls < 40:
            return P.rows(x, i) if vectorized else P.fun(x, i)
        if how == "raise":
            raise RuntimeError("boom")
        return np.full(len(x), np.nan) if vectorized else float("nan")

    with pytest.raises(pc.EvaluationError, match="boom" if how == "raise" else "returned nan") as caught:
        run(fun, on_failure="raise", vectorized=vectorized)
    error = caught.value
    assert np.shape(error.x)[-1] == P.d
    assert error.xi is not None
    assert error.result.nit >= 19
    if how == "raise":
        assert isinstance(error.__cause__, RuntimeError)


def test_numbers_of_all_kinds_are_welcome() -> None:
    for kind in (float, np.float32, np.float64, np.array, lambda v: np.array([v]), lambda v: int(100 * v)):
        result = run(lambda x, i, kind=kind: kind(P.fun(x, i)), budget=100)
        assert result.failures == 0


def test_vectorized_functions_must_return_one_value_a_point() -> None:
    with pytest.raises(ValueError, match=r"given 2 points and must return shape \(2,\), not \(3,\)"):
        run(lambda X, i: np.zeros(3), vectorized=True)


def test_a_failed_row_fails_alone() -> None:
    def fun(X: np.ndarray, i: np.ndarray) -> np.ndarray:
        F = P.rows(X, i)
        F[0] = np.nan
        return F

    result = run(fun, vectorized="rows", batch=8, budget=800)
    assert result.success
    assert result.nit >= 45
    assert result.failures == result.nit + 1
