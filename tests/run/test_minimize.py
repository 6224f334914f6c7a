"""The function users call: stopping, callbacks, evaluation, bad input."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from typing import Any

import numpy as np
import pytest
from problems import hinge

import poem_cma as pc
from poem_cma.result import Status

P = hinge(d=4)
SETTINGS: dict[str, Any] = {"sample": P.sample, "domain": pc.Ball(1.0), "method": "poem", "seed": 0}


def run(fun: Any = P.fun, x0: Any = (0.0,) * 4, **settings: Any) -> pc.Result:
    return pc.minimize(fun, x0, **(SETTINGS | settings))


# Stopping


def test_the_budget_is_the_normal_end() -> None:
    result = run(budget=500)
    assert (result.success, result.status, result.message) == (True, 0, "the budget of 500 calls is spent")
    assert result.nfev == 500
    assert result.nit == 225  # 25 samples measure x and x0
    assert result.seed == 0
    assert P.full(result.x) < P.full(np.zeros(4))


def test_a_target_stops_the_run_once_the_smoothed_value_is_below_it() -> None:
    result = run(lambda x: float(x @ x), [1.0, 1.0, 1.0, 1.0], sample=None, domain=None, budget=50_000, target=0.5)
    assert result.status == Status.TARGET
    assert result.success
    assert "below the target of 0.5" in result.message
    assert result.nfev < 20_000
    assert result.history["fun"][-1] < 0.5
    assert run(budget=1000, target=-1.0).status == Status.BUDGET


def test_one_lucky_value_is_not_the_target() -> None:
    """Single samples of the hinge loss are often zero, long before the mean is near."""
    result = run(budget=400, target=0.05)
    assert result.status == Status.BUDGET
    assert result.history["fun"].min() > 0.05


def test_a_time_limit_leaves_time_for_the_final_evaluation() -> None:
    def slow(x: np.ndarray, i: int) -> float:
        time.sleep(0.002)
        return P.fun(x, i)

    started = time.monotonic()
    result = run(slow, budget=100_000, time_limit=1.0, evaluate=50)
    elapsed = time.monotonic() - started
    assert result.status == Status.TIME
    assert result.success
    assert "time limit of 1 s" in result.message
    assert np.isfinite(result.fun)
    assert result.nit > 5
    assert elapsed < 30.0  # not a measurement: it ended because of the limit


def test_ctrl_c_ends_with_the_result_so_far() -> None:
    calls = 0

    def interrupted(x: np.ndarray, i: int) -> float:
        nonlocal calls
        calls += 1
        if calls == 300:
            os.kill(os.getpid(), signal.SIGINT)
        return P.fun(x, i)

    assert threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    try:
        result = run(interrupted, budget=100_000)
    finally:
        signal.signal(signal.SIGINT, before)
    assert result.status == Status.INTERRUPTED
    assert not result.success
    assert result.message.startswith("interrupted")
    assert 145 <= result.nit <= 150
    assert np.isnan(result.fun)
    assert P.full(result.x) < P.full(np.zeros(4))


def test_callback_gets_intermediate_results_and_may_stop() -> None:
    seen = []

    def callback(intermediate_result: pc.Result) -> None:
        seen.append(intermediate_result)
        if len(seen) == 7:
            raise StopIteration

    result = run(callback=callback, budget=1000)
    assert len(seen) == 7
    assert [r.nit for r in seen] == list(range(1, 8))
    assert result.status == Status.CALLBACK
    assert result.nit == 7
    assert np.isfinite(seen[-1].fun)
    np.testing.assert_array_equal(seen[-1].x, result.x)
    assert all(r.status == Status.RUNNING for r in seen)


def test_callback_with_another_parameter_name_gets_the_point() -> None:
    seen = []
    result = run(callback=lambda xk: seen.append(xk), budget=50)
    assert len(seen) == result.nit
    np.testing.assert_array_equal(seen[-1], result.x)


def test_an_error_in_the_callback_is_not_swallowed() -> None:
    def callback(intermediate_result: pc.Result) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        run(callback=callback, budget=100)


# What comes back


def test_fun_is_the_mean_over_fresh_samples_with_its_standard_error() -> None:
    errors = []
    for seed in range(40):
        result = run(budget=1500, evaluate=400, seed=seed)
        errors.append((result.fun - P.full(result.x)) / result.fun_stderr)
    assert abs(np.mean(errors)) * np.sqrt(len(errors)) < 4.0
    assert 0.6 < np.std(errors) < 1.5


def test_results_cannot_change_the_run() -> None:
    opt = pc.Optimizer(np.zeros(4), method="poem", budget=100, seed=0)
    first = opt.result()
    first.x[:] = 99.0
    first.x_last[:] = 99.0
    assert (opt.result().x == 0.0).all()
    x0 = np.zeros(4)
    opt = pc.Optimizer(x0, method="poem", budget=100, seed=0)
    x0[:] = 5.0
    probe = opt.ask()
    assert probe is not None
    assert np.abs(probe.points.mean(axis=0)).max() < 1e-12


def test_a_function_that_overwrites_its_argument_does_no_harm() -> None:
    def rude(x: np.ndarray, i: int) -> float:
        value = P.fun(x, i)
        x[:] = np.nan
        return value

    assert run(rude, budget=500).x.tobytes() == run(budget=500).x.tobytes()


def test_vectorized_evaluations_give_the_same_run() -> None:
    plain = run(budget=600, batch=3)
    by_sample = run(P.rows, budget=600, batch=3, vectorized=True)
    by_row = run(P.rows, budget=600, batch=3, vectorized="rows")
    np.testing.assert_allclose(by_sample.x, plain.x, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(by_row.x, plain.x, rtol=1e-6, atol=1e-9)
    assert plain.fun == pytest.approx(by_sample.fun) == pytest.approx(by_row.fun)


def test_vectorized_is_called_once_for_each_sample_and_rows_once_for_all() -> None:
    shapes: list[tuple[Any, ...]] = []

    def fun(X: np.ndarray, xi: Any) -> np.ndarray:
        shapes.append((X.shape, np.shape(xi)))
        return P.rows(X, xi)

    run(fun, budget=24, batch=3, vectorized=True, evaluate=0)
    assert shapes == [((2, 4), ())] * 12
    shapes.clear()
    run(fun, budget=24, batch=3, vectorized="rows", evaluate=0)
    assert shapes == [((6, 4), (6,))] * 4
    shapes.clear()
    run(fun, budget=100, method=pc.methods.poem_cma(samples=20), vectorized="rows", evaluate=0)
    assert shapes[0] == ((40, 4), (40,))  # all pairs of Algorithm 2 at once


def test_samples_of_rows_may_be_anything() -> None:
    def fun(X: np.ndarray, xi: list[Any]) -> np.ndarray:
        assert isinstance(xi, list)
        return np.array([P.fun(x, d["i"]) for x, d in zip(X, xi, strict=True)])

    result = run(fun, sample=lambda rng: {"i": int(rng.integers(P.n))}, budget=300, vectorized="rows")
    assert result.x.tobytes() == run(budget=300).x.tobytes()


def test_auto_is_the_default_method() -> None:
    assert pc.minimize(lambda x: float(x @ x), [1.0, 2.0], budget=100, seed=0).method == "auto()"


def test_progress_draws_to_standard_error_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("FORCE_COLOR", "1"), ("NO_COLOR", "1"), ("COLUMNS", "200")):  # as in a terminal
        monkeypatch.setenv(name, value)
    result = run(budget=300, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "poem" in err
    assert "300/300" in err
    assert result.x.tobytes() == run(budget=300).x.tobytes()


def test_the_representation_is_short_and_names_everything() -> None:
    text = repr(pc.minimize(lambda x: float(x @ x), np.ones(1000), budget=100, seed=0, method="poem"))
    assert len(text) < 2000
    assert "(1000 numbers)" in text
    assert "message: the budget of 100 calls is spent" in text


# Bad input


@pytest.mark.parametrize(
    ("settings", "error", "match"),
    [
        ({"x0": [[0.0, 0.0]]}, ValueError, r"x0 must be a vector, but has shape \(1, 2\)"),
        ({"x0": []}, ValueError, "x0 is empty"),
        ({"x0": [0.0, np.nan, 0.0, 0.0]}, ValueError, r"x0\[1\] is nan"),
        ({"x0": [0.0, 0.0, 0.0, np.inf]}, ValueError, r"x0\[3\] is inf"),
        ({"x0": "abc"}, TypeError, "x0 must be a vector of numbers"),
        ({"budget": 1}, ValueError, "one step costs 2 calls"),
        ({"budget": 0}, ValueError, "budget must be positive"),
        ({"budget": 10.5}, ValueError, "whole number"),
        ({"budget": "many"}, TypeError, "budget must be a whole number"),
        (
            {"method": "sgd"},
            ValueError,
            "unknown method 'sgd'; the known ones are auto, near, far, poem-cma, poem, tpbco, tpge",
        ),
        ({"method": 3}, TypeError, "method must be one of auto, near, far, poem-cma"),
        ({"method": "tpbco"}, ValueError, r"tpbco needs the Lipschitz constant.*methods.tpbco\(lipschitz=...\)"),
        ({"method": pc.methods.tpbco(lipschitz=1.0), "domain": None}, ValueError, "needs the diameter of the domain"),
        ({"method": pc.methods.tpge(lipschitz=1.0), "domain": None}, ValueError, "needs the diameter of the domain"),
        ({"method": pc.methods.rsnso(lipschitz=1.0), "domain": None}, ValueError, "bound on the distance from x0"),
        ({"fun": lambda x: 0.0}, TypeError, r"sample= is given, so the objective is called as fun\(x, xi\)"),
        ({"fun": lambda x, xi: 0.0, "sample": None}, TypeError, r"no sample= is given, so .* fun\(x\)"),
        ({"fun": 3}, TypeError, "fun must be callable"),
        ({"sample": 3}, TypeError, "sample must be callable"),
        ({"domain": pc.Box([0.0] * 3, [1.0] * 3)}, ValueError, "domain has dimension 3, x0 has 4"),
        ({"domain": "ball"}, TypeError, "Ball"),
        ({"scale": -1.0}, ValueError, "scale must be positive"),
        ({"scale": [1.0, 2.0]}, ValueError, "one entry for each of the 4 variables"),
        ({"batch": 0}, ValueError, "batch must be a whole number"),
        ({"seed": -1}, ValueError, "seed must not be negative"),
        ({"seed": 1.5}, TypeError, "seed must be a whole number"),
        ({"vectorized": "columns"}, ValueError, "vectorized must be"),
        ({"on_failure": "ignore"}, ValueError, "on_failure must be"),
        ({"evaluate": -1}, ValueError, "evaluate must be a whole number"),
        ({"target": np.nan}, ValueError, "target must be a finite number"),
        ({"time_limit": 0.0}, ValueError, "time_limit must be a positive number"),
    ],
    ids=lambda v: v.replace(" ", "-")[:40] if isinstance(v, str) else "",
)
def test_bad_input_is_refused_with_a_reason(settings: dict[str, Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        run(**settings)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: pc.methods.poem_cma(tol=1.5), "tol must be between 0 and 1"),
        (lambda: pc.methods.poem_cma(samples=0), "samples must be a whole number from 1 up"),
        (lambda: pc.methods.poem_cma(ridge=-1.0), "ridge must be between"),
        (lambda: pc.methods.poem_cma(whitening="none"), 'whitening must be "paper" or "exact"'),
        (lambda: pc.methods.poem(initial_distance=0.0), "initial_distance must be positive"),
        (lambda: pc.methods.tpbco(lipschitz=-1.0), "lipschitz must be positive"),
        (lambda: pc.methods.rsnso(lipschitz=1.0, steps=0), "steps must be a whole number"),
    ],
)
def test_constructors_check_their_arguments(make: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        make()


def test_without_a_budget_a_fixed_horizon_is_missing() -> None:
    for method in (pc.methods.tpbco(lipschitz=1.0), pc.methods.rsnso(lipschitz=1.0)):
        with pytest.raises(ValueError, match="fixes its step by the number of steps: give budget="):
            pc.Optimizer(np.zeros(2), method=method, domain=pc.Ball(1.0))
    pc.Optimizer(np.zeros(2), method=pc.methods.tpbco(lipschitz=1.0, steps=100), domain=pc.Ball(1.0))


def test_x0_outside_the_domain_is_projected_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="x0 lies outside the domain; the run starts from its projection, 1 away"):
        result = run(x0=[2.0, 0.0, 0.0, 0.0], budget=100)
    assert pc.Ball(1.0).contains(result.x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(x0=[1.0, 0.0, 0.0, 0.0], budget=100)


def test_a_fresh_seed_is_reported_and_repeats_the_run() -> None:
    first = run(budget=200, seed=None)
    assert run(budget=200, seed=first.seed).x.tobytes() == first.x.tobytes()
    assert run(budget=200, seed=None).seed != first.seed
