"""The budget of a run in a store: never exceeded, however often the run is stopped, interrupted or given more."""

from __future__ import annotations

import contextlib
import itertools
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from runs import METHODS, P, bits, run

import poem_cma as pc
from poem_cma.auto.algorithm import Auto
from poem_cma.store import View


class Counted:
    """The objective, with the number of calls that were made of it; it may interrupt the run at one of them."""

    def __init__(self) -> None:
        self.calls = 0
        self.interrupt_at = -1

    def __call__(self, x: np.ndarray, i: int) -> float:
        if self.calls == self.interrupt_at:
            self.interrupt_at = -1
            raise KeyboardInterrupt
        self.calls += 1
        return P.fun(x, i)


def after(steps: int) -> Callable[[Any], None]:
    """A callback that stops the run after so many steps."""
    seen = itertools.count(1)

    def callback(x: np.ndarray) -> None:
        if next(seen) >= steps:
            raise StopIteration

    return callback


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_small_additions_to_the_budget_are_kept(tmp_path: pathlib.Path, method: pc.Method) -> None:
    """1,000 calls and then 1,001 once made 1,020, because the result was measured again."""
    fun = Counted()
    for budget in (1000, 1001, 1010, 1030, 1500):
        result = run(fun, method=method, budget=budget, store=tmp_path / "run.db")
        assert result.nfev == fun.calls <= budget
        assert f"{budget} calls" in result.message
        assert np.isfinite([result.fun, result.fun_stderr]).all()


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_run_that_is_stopped_every_few_steps_keeps_its_budget(tmp_path: pathlib.Path, method: pc.Method) -> None:
    """Every stop measures a result. Of 2,000 calls such a run once made 2,040."""
    fun, result = Counted(), None
    for _ in range(100):
        result = run(fun, method=method, budget=2000, evaluate=20, store=tmp_path / "run.db", callback=after(5))
        assert result.nfev == fun.calls <= 2000
        assert np.isfinite(result.fun)
        if "2000 calls is spent" in result.message:
            break
    assert result is not None
    assert "the budget of 2000 calls is spent" in result.message
    assert fun.calls > 1900


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_no_history_of_a_run_exceeds_its_budget(tmp_path: pathlib.Path, method: pc.Method, seed: int) -> None:
    """Stops, interruptions, also of the measurement, and larger budgets, in any order."""
    rng, fun, budget = np.random.default_rng(seed), Counted(), 200
    for _ in range(12):
        what = rng.choice(["more", "stop", "interrupt", "end"])
        budget += int(rng.integers(1, 60)) if what == "more" else 0
        callback = after(int(rng.integers(1, 9))) if what == "stop" else None
        fun.interrupt_at = fun.calls + int(rng.integers(1, 60)) if what == "interrupt" else -1
        with contextlib.suppress(KeyboardInterrupt):
            result = run(fun, method=method, budget=budget, store=tmp_path / "run.db", callback=callback, evaluate=20)
            assert result.nfev <= fun.calls
        assert fun.calls <= budget
    with View(tmp_path / "run.db") as view:
        assert len(view.calls()) == fun.calls


def test_a_result_that_does_not_change_is_not_measured_again(tmp_path: pathlib.Path) -> None:
    fun = Counted()
    first = run(fun, budget=1000, store=tmp_path / "run.db")
    second = run(fun, budget=1001, store=tmp_path / "run.db")
    assert fun.calls == first.nfev == second.nfev
    assert (second.fun, second.fun_stderr) == (first.fun, first.fun_stderr)
    assert second.x.tobytes() == first.x.tobytes()


def test_a_measurement_that_is_interrupted_is_completed(tmp_path: pathlib.Path) -> None:
    expected = run(budget=500, evaluate=50)
    fun = Counted()
    for stop in (460, 470, 499):
        fun.interrupt_at = stop
        part = run(fun, budget=500, evaluate=50, store=tmp_path / "run.db")
        assert part.status == 4
        assert part.nfev == fun.calls == stop
    assert bits(run(fun, budget=500, evaluate=50, store=tmp_path / "run.db")) == bits(expected)
    assert fun.calls == 500


def test_a_result_is_kept_where_its_run_cannot_go_on(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """State, budget and result change together."""
    first = run(method="auto", budget=1300, store=tmp_path / "run.db")

    def broken(*_: Any) -> None:
        raise ArithmeticError("broken")

    with monkeypatch.context() as patched:
        patched.setattr(Auto, "with_budget", broken)
        with pytest.raises(ArithmeticError, match="broken"):
            run(method="auto", budget=2600, store=tmp_path / "run.db")
    assert bits(run(method="auto", budget=1300, store=tmp_path / "run.db")) == bits(first)
    assert run(method="auto", budget=2600, store=tmp_path / "run.db").nfev > 2500


@pytest.mark.parametrize("budget", [1000, 1300, 2000])
@pytest.mark.parametrize("seed", range(3))
def test_a_finished_run_of_auto_takes_a_larger_budget(tmp_path: pathlib.Path, budget: int, seed: int) -> None:
    fun = Counted()
    first = run(fun, method="auto", budget=budget, seed=seed, store=tmp_path / "run.db")
    longer = run(fun, method="auto", budget=3 * budget, seed=seed, store=tmp_path / "run.db")
    assert first.nit < longer.nit
    assert 0.95 * 3 * budget < longer.nfev == fun.calls <= 3 * budget
