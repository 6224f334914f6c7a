"""The race of `auto` between two metrics: who wins it, what it keeps, and that nothing is lost in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import poem_cma as pc
from poem_cma.auto import race
from poem_cma.auto.state import RACE, AutoState, in_unit
from poem_cma.oracle import Oracle
from poem_cma.randomness import Streams

N = 3000


def regression(sizes: Any, like_slopes: float, noise: float = 0.1) -> tuple[Callable[..., Any], Callable[..., float]]:
    """Least squares with features of these sizes; f's gap. Solutions go like sizes to the power of -`like_slopes`."""
    d, rng = len(sizes), np.random.default_rng(5)
    A = rng.normal(size=(N, d)) * sizes
    w = rng.normal(size=d) * sizes**-like_slopes
    w /= (A @ w).std()
    b = A @ w + noise * rng.normal(size=N)
    best = np.linalg.lstsq(A / sizes, b, rcond=None)[0] / sizes

    def f(x: Any) -> float:
        return float(np.mean((A @ x - b) ** 2))

    return lambda X, i: (X @ A[i] - b[i]) ** 2, lambda x: (f(x) - f(best)) / (f(np.zeros(d)) - f(best))


def example(rng: np.random.Generator) -> int:
    return int(rng.integers(N))


def run(fun: Any, d: int, seed: int, budget: int = 20_000, **parts: Any) -> tuple[pc.Optimizer, list[AutoState]]:
    """A run to its end, and its states at the end of each lap."""
    oracle = Oracle(fun, example, Streams(seed), vectorized=True)
    opt = pc.Optimizer(np.zeros(d), method=pc.methods.auto(**parts), budget=budget, seed=seed)
    laps = []
    before = opt._state
    while opt.answer(oracle.evaluate):
        if opt._state.lap != before.lap:
            laps.append(before)
        before = opt._state
    return opt, laps


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("like_slopes", "by_units"), [(0.0, False), (1.0, True)])
def test_the_better_metric_wins(like_slopes: float, by_units: bool, seed: int) -> None:
    """Variables whose slopes are small matter little if they are as large as the others, but not if they are larger."""
    fun, gap = regression(np.geomspace(1.0, 1e-6, 20), like_slopes)
    opt, laps = run(fun, 20, seed)
    assert laps
    assert opt._state.by_units == by_units
    assert opt._state.lap == 0
    assert opt._state.aside.size == opt._state.aside_numbers.size == 0
    assert gap(opt.result().x) < 0.002


def test_without_the_race_slopes_decide_and_may_be_wrong() -> None:
    """Many variables that hardly matter: measured by their slopes they take the calls of those that do."""
    fun, gap = regression(np.geomspace(1.0, 1e-6, 100), 0.0)
    ends = [[gap(run(fun, 100, seed, race=on)[0].result().x) for seed in range(4)] for on in (True, False)]
    assert 5.0 * np.median(ends[0]) < np.median(ends[1])


def test_slopes_of_one_size_and_short_runs_make_no_race() -> None:
    even, _ = regression(np.ones(20), 0.0)
    uneven, _ = regression(np.geomspace(1.0, 1e-4, 20), 0.0)
    assert not run(even, 20, 0)[1]
    assert not run(uneven, 20, 0, budget=9000)[1]
    assert not run(uneven, 20, 0, race=False)[1]
    assert not run(uneven, 20, 0, units=False)[1]
    laps = run(uneven, 20, 0, budget=12_000)[1]
    assert laps
    assert all(0 < s.check_at - s.nfev <= 21 for s in laps[1:2])  # a lap ends with the step under way


def in_race() -> AutoState:
    fun, _ = regression(np.geomspace(1.0, 1e-4, 20), 0.5)
    return run(fun, 20, 0)[1][1]


PATH = ("x", "s", "G", "metric", "averages", *race._NUMBERS)


def test_a_path_that_was_kept_aside_is_as_it_was() -> None:
    s = in_race()
    there = race._exchanged(s)
    back = race._exchanged(there)
    assert there.by_units != s.by_units
    assert not np.array_equal(there.x, s.x)
    for name in PATH:
        assert np.array_equal(getattr(back, name), getattr(s, name)), name
        assert type(getattr(back, name)) is type(getattr(s, name)), name


def test_a_path_that_was_kept_aside_follows_the_unit_of_slopes() -> None:
    s = in_race()
    aside = race._exchanged(s)
    larger = race._exchanged(in_unit(aside, 4.0 * aside.unit))  # found while the other had its turn
    assert larger.unit == 4.0 * s.unit
    assert np.array_equal(4.0 * larger.s, s.s)
    assert np.array_equal(16.0 * larger.G, s.G)
    for name, power in (("radial", 1), ("promised", 1), ("radial_squares", 2), ("promised_squares", 2)):
        assert 4.0**power * getattr(larger, name) == getattr(s, name)
    assert np.array_equal(larger.x, s.x)


@pytest.mark.parametrize("units_are_last", [True, False])
@pytest.mark.parametrize("behind", [-1.0, 1.0, 0.0])
def test_the_race_ends_with_the_better_one_and_in_doubt_with_units(behind: float, units_are_last: bool) -> None:
    s = in_race()
    last = (s if s.by_units == units_are_last else race._exchanged(s))._replace(lap=6)
    after = race.after_race(last, np.array([[0.0, behind + e] for e in (-0.1, 0.1)] * 50))
    assert after.lap == 0
    assert after.check_at > after.nfev
    assert after.by_units == (True if behind == 0.0 else units_are_last == (behind < 0.0))
    assert np.array_equal(after.x, last.x) == (after.by_units == last.by_units)


def test_a_race_goes_on_while_it_is_not_decided_but_not_for_ever() -> None:
    s = in_race()._replace(lap=2)
    level = np.array([[0.0, e] for e in (-1.0, 1.0)] * 50)
    on = race.after_race(s, level)
    assert (on.lap, on.by_units) == (3, not s.by_units)
    assert on.check_at == s.nfev + 0.06 * s.run.budget
    assert race.after_race(s._replace(lap=6), level).lap == 0


def test_the_same_bytes_after_a_restart_at_any_time_of_the_race(tmp_path: Path) -> None:
    fun, _ = regression(np.geomspace(1.0, 1e-4, 10), 0.5)
    whole, _ = run(fun, 10, 1, budget=12_000)
    oracle = Oracle(fun, example, Streams(1), vectorized=True)
    opt = pc.Optimizer(np.zeros(10), budget=12_000, seed=1)
    stages: set[tuple[int, bool]] = set()
    while opt.answer(oracle.evaluate):
        now = (opt._state.lap, opt._state.stage == RACE)
        if now not in stages:
            stages.add(now)
            opt.save(tmp_path / "run")
            opt = pc.Optimizer.load(tmp_path / "run")
    assert {(1, False), (2, False), (2, True)} <= stages
    assert opt.result().x.tobytes() == whole.result().x.tobytes()


def test_runs_that_race_are_replicated_bit_for_bit() -> None:
    d = 40  # steps along random directions, too
    fun, _ = regression(np.geomspace(1.0, 1e-3, d), 0.0)
    rows = regression_rows(np.geomspace(1.0, 1e-3, d), 0.0)
    settings: dict[str, Any] = {"sample": example, "budget": 8000, "evaluate": 0}
    together = pc.replicate(rows, np.zeros(d), seeds=range(4), vectorized="rows", **settings)
    alone = [pc.minimize(rows, np.zeros(d), seed=k, vectorized="rows", **settings) for k in range(4)]
    assert any(run(fun, d, k, budget=12_000)[1] for k in range(4))
    assert [r.x.tobytes() for r in together] == [r.x.tobytes() for r in alone]


def regression_rows(sizes: Any, like_slopes: float) -> Callable[..., Any]:
    """The same with an example for each row, in sums whose order is that of the row alone."""
    fun, _ = regression(sizes, like_slopes)
    return lambda X, i: np.array([fun(x[None], j)[0] for x, j in zip(X, i, strict=True)])


def test_a_race_with_steps_ahead_keeps_to_its_budget_and_finds_the_metric() -> None:
    fun, gap = regression(np.geomspace(1.0, 1e-6, 20), 1.0)
    result = pc.minimize(fun, np.zeros(20), sample=example, budget=20_000, seed=0, vectorized=True, ahead=6, evaluate=0)
    assert result.nfev <= 20_000
    assert gap(result.x) < 0.01


def test_a_unit_that_becomes_known_late_does_not_stop_the_run() -> None:
    """Slopes too small to be seen at x_0 are seen later: what was measured in their place must not count for all."""
    fun, gap = regression(0.9 ** np.arange(200), 0.0, noise=0.05)
    for seed in range(3):
        opt, _ = run(fun, 200, seed)
        eta = opt.result().history["step_size"]
        assert (eta[-1] > 1e-3 * eta[len(eta) // 2]).all()
        assert gap(opt.result().x) < 0.7
