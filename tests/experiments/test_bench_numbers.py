"""Ratios by hand, profiles by brute force, tuning by exhaustion."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import inf, sqrt
from typing import Any

import numpy as np
import pytest
from bench_helpers import TINY
from hypothesis import given
from hypothesis import strategies as st

from poem_cma import problems
from poem_cma.experiments.bench import profiles, tables
from poem_cma.experiments.bench.plan import Request
from poem_cma.experiments.bench.player import Axis
from poem_cma.experiments.bench.players import PLAYERS
from poem_cma.experiments.bench.ratios import calls_to_reach, geometric_mean, ratio, ratios
from poem_cma.experiments.bench.results import Curve, ProblemResults, Results
from poem_cma.experiments.bench.solved import make_profiles
from poem_cma.experiments.bench.tuning import axes_for, tune

CALLS = np.array([10, 100, 1000])


def curve(name: str, *gaps: list[float], variant: Any = "default", overhead: float = 1e-5) -> Curve:
    return Curve(PLAYERS[name], variant, {}, CALLS, np.array(gaps), overhead, ())


def problem(*curves: Curve, name: str = "p", noisy: bool = True, d: int = 9) -> ProblemResults:
    return ProblemResults(name, d, noisy, True, curves, {})


AUTO = curve("auto", [1.0, 0.1, 0.01], [1.0, 0.1, 0.01], [1.0, 0.9, 0.9])  # median 1, 0.1, 0.01


def test_ours_is_ahead_and_reaches_the_peers_end_on_the_grid() -> None:
    found = ratio(problem(AUTO, curve("pycma", [1.0, 0.5, 0.1])))
    assert found is not None
    assert (found.ahead, found.our_calls, found.peer_calls, found.value) == (True, 100.0, 1000.0, 10.0)


def test_or_between_two_points_of_the_grid() -> None:
    found = ratio(problem(AUTO, curve("pycma", [1.0, 0.5, 0.1 / sqrt(10.0)])))
    assert found is not None
    assert found.our_calls == pytest.approx(100.0 * sqrt(10.0))  # half way from 0.1 to 0.01 on a log axis
    assert found.value == pytest.approx(sqrt(10.0))


def test_the_peer_is_ahead_and_the_question_is_asked_from_the_other_side() -> None:
    found = ratio(problem(AUTO, curve("pycma", [1.0, 0.01, 0.001])))
    assert found is not None
    assert (found.ahead, found.our_calls, found.peer_calls) == (False, 1000.0, 100.0)  # 0.01 is where we end
    assert found.value == pytest.approx(0.1)


def test_a_lucky_dip_counts_for_nobody() -> None:
    peer = curve("pycma", [1.0, 0.5, 0.1])
    dipped = ratio(problem(curve("auto", [1.0, 0.001, 0.2]), peer))  # below the peer's end, but not at the end
    assert dipped is not None
    assert not dipped.ahead
    assert dipped.value < 1.0
    lucky = ratio(problem(AUTO, curve("pycma", [0.001, 0.5, 0.1])))
    assert lucky is not None
    assert lucky.value == 10.0


def test_a_peer_that_is_done_early_is_not_charged_its_budget() -> None:
    found = ratio(problem(curve("auto", [1.0, 0.5, 1e-9]), curve("pycma", [1.0, 1e-9, 1e-9])))
    assert found is not None
    assert found.value == pytest.approx(0.1)


def test_the_same_curve_has_ratio_one_and_swapping_inverts() -> None:
    same = ratio(problem(AUTO, curve("pycma", [1.0, 0.1, 0.01])))
    assert same is not None
    assert same.value == 1.0
    slow = [1.0, 0.8, 0.2]
    ahead = ratio(problem(AUTO, curve("pycma", slow)))
    behind = ratio(problem(curve("auto", slow), curve("pycma", [1.0, 0.1, 0.01])))
    assert ahead is not None
    assert behind is not None
    assert ahead.value * behind.value == pytest.approx(1.0)


def test_the_best_peer_is_the_best_of_defaults_and_tuned_and_the_limit_is_no_peer() -> None:
    p = problem(
        AUTO, curve("poem", [1.0, 0.001, 0.0001]), curve("dog", [1.0, 0.001, 0.0001]),
        curve("pycma", [1.0, 0.9, 0.3], variant="tuned"), curve("pycma", [1.0, 0.9, 0.2]),
        curve("zo-sgd", [1.0, 1.0, 0.4]),
    )  # fmt: skip
    found = ratio(p)
    assert found is not None
    assert (found.peer.player.name, found.peer.variant) == ("pycma", "default")
    assert ratio(problem(AUTO)) is None
    assert ratio(problem(curve("pycma", [1.0, 1.0, 1.0]))) is None


def test_the_table_of_ratios() -> None:
    two = [problem(AUTO, curve("pycma", [1.0, 0.5, 0.1]), name="a"), problem(AUTO, curve("zo-sgd", [1.0, 0.01, 0.001]))]
    quiet = problem(AUTO, curve("pycma", [1.0, 0.5, 0.1]), name="quiet", noisy=False)
    found = ratios([*two, quiet])
    assert [r.value for r in found] == pytest.approx([10.0, 0.1])
    rows = tables.ratio_table(found, 1000).rows
    assert rows[0][-2:] == ["auto reaches the peer's last gap after 100 calls", "10.00"]
    assert rows[1][-2:] == ["not reached; the peer reaches auto's last gap after 100 calls", "0.10"]
    assert rows[2][-2:] == ["at least 1 on 1 of 2 problems", "1.00"]


levels = st.lists(st.sampled_from([1.0, 0.5, 0.2, 0.1, 0.05]), min_size=4, max_size=4)


@given(levels, st.sampled_from([0.9, 0.5, 0.15, 0.1, 0.01]))
def test_calls_to_reach_a_level(gaps: list[float], level: float) -> None:
    calls = [10, 30, 100, 1000]
    found = calls_to_reach(calls, gaps, level)
    first = next((j for j in range(4) if all(gap <= level for gap in gaps[j:])), None)
    if first is None:
        assert found is None
        return
    assert found is not None
    assert (calls[first - 1] if first else calls[0]) <= found <= calls[first]
    if first and gaps[first] < level:  # on the straight line between the two points
        t = np.log(found / calls[first - 1]) / np.log(calls[first] / calls[first - 1])
        assert gaps[first - 1] ** (1 - t) * gaps[first] ** t == pytest.approx(level)


matrices = st.lists(
    st.lists(st.sampled_from([10.0, 20.0, 35.0, 40.0, 900.0, inf]), min_size=4, max_size=4), min_size=1, max_size=5
)


@given(matrices)
def test_performance_profile_against_brute_force(calls: list[list[float]]) -> None:
    factors = [1.0, 1.5, 2.0, 4.0, 90.0]
    found = profiles.performance_profile(np.array(calls), factors)
    for s, row in enumerate(calls):
        for k, factor in enumerate(factors):
            solved = sum(t < inf and t <= factor * min(other[p] for other in calls) for p, t in enumerate(row))
            assert found[s, k] == solved / 4


@given(matrices)
def test_data_profile_against_brute_force(calls: list[list[float]]) -> None:
    dimensions, gradients = [1, 4, 9, 99], [0.5, 1.0, 4.0, 8.0, 10.0]
    found = profiles.data_profile(np.array(calls), dimensions, gradients)
    for s, row in enumerate(calls):
        for k, many in enumerate(gradients):
            solved = sum(t <= many * (d + 1) for t, d in zip(row, dimensions, strict=True))
            assert found[s, k] == solved / 4


def test_profiles_of_results_are_of_noisy_problems_and_tuned_peers() -> None:
    slow, fast = [1.0, 0.5, 0.1], [1.0, 0.1, 0.05]
    found = [
        problem(AUTO, curve("pycma", slow), curve("pycma", fast, variant="tuned"), curve("dog", fast), d=9),
        problem(AUTO, curve("zo-sgd", slow), name="q", d=99),
        problem(curve("pycma", fast), name="quiet", noisy=False),
    ]
    request = Request(replace(TINY, budget=1000), ("p", "q", "quiet"), ("auto", "pycma", "zo-sgd", "dog"))
    made = make_profiles(Results(request, tuple(found)), 0.1)
    assert made is not None
    assert set(made.names) == {"auto", "pycma", "zo-sgd"}
    row = {name: made.performance[i] for i, name in enumerate(made.names)}
    assert row["auto"][0] == 1.0  # first, or level, on both
    assert row["pycma"].tolist() == [0.5] * 201  # level on the first, did not play the second
    assert row["zo-sgd"][0] == 0.0
    assert row["zo-sgd"][-1] == 0.5  # ten times as many calls
    data = {name: made.data[i] for i, name in enumerate(made.names)}
    assert data["auto"][np.searchsorted(made.gradients, 1.0)] == 0.5  # 100 calls are 1 of 100, and 10 of 10
    assert data["auto"][-1] == 1.0
    assert made.names[0] == "auto"


def test_staircase_and_area() -> None:
    x, y = profiles.steps([1.0, 2.0, 4.0], [0.0, 0.5, 1.0])
    assert x.tolist() == [1.0, 2.0, 2.0, 4.0, 4.0]
    assert y.tolist() == [0.0, 0.0, 0.5, 0.5, 1.0]
    assert geometric_mean([]) != geometric_mean([])


def test_tuning_keeps_the_best_and_tries_nothing_twice() -> None:
    asked: list[tuple[float, str]] = []

    def score(s: Any) -> float:
        asked.append((s["a"], s["b"]))
        return abs(s["a"] - 3.0) + (s["b"] == "x")

    axes = [Axis("a", (1.0, 10.0)), Axis("a", (0.3, 3.0), factors=True), Axis("b", ("x", "y"))]
    best, tried = tune(score, {"a": 1.0, "b": "x"}, axes)
    assert best == {"a": 3.0, "b": "y"}
    assert len(asked) == len(set(asked)) == len(tried)
    everything = [(abs(a - 3.0) + (b == "x"), a, b) for a, b in product((0.3, 1.0, 3.0, 10.0), "xy")]
    assert min(everything)[1:] == (best["a"], best["b"])


def test_axes_depend_on_the_problem() -> None:
    ball, free, own = (problems.load(n) for n in ("box-corner", "noisy-quadratic", "unshared-quadratic"))
    names = [[axis.name for axis in axes_for(PLAYERS["pycma"], p, 9)] for p in (ball, free, own)]
    assert names == [
        ["reach", "reach", "batch", "shared", "penalty"], ["reach", "reach", "batch", "shared"],
        ["reach", "reach", "batch"],
    ]  # fmt: skip
    assert axes_for(PLAYERS["noisyopt-spsa"], own, 9)[0].name == "c"
    for player in PLAYERS.values():
        tries = sum(len(axis.values) for axis in player.axes)
        assert tries <= 11
        assert all(axis.name in player.start for axis in player.axes)


def test_the_other_tables() -> None:
    own = {"zo-sgd": {"tried": [
        {"setting": {"shared": True}, "score": 0.1}, {"setting": {"shared": True}, "score": 0.2},
        {"setting": {"shared": False}, "score": 0.4},
    ]}}  # fmt: skip
    p = ProblemResults(
        "p", 9, True, True, (AUTO, curve("zo-sgd", [1, 1, 0.4]), curve("zo-sgd", [1, 1, 0.1], variant="tuned")), own
    )
    results = Results(Request(TINY, ("p",), ("auto", "zo-sgd")), (p,))
    assert tables.noise_table(results).rows == [["ZO-SGD", "1", "4.00", "4.00", "4.00"]]
    assert tables.finals(results).rows == [["p", "0.01 ★", "0.1"]]
    assert tables.overview(results, []).rows == [
        ["auto", "1", "1", "nothing to tune", "10 µs"], ["ZO-SGD", "1", "0", "4.0", "10 µs"],
    ]  # fmt: skip
