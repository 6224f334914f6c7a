"""The arena's rules: what is counted, what is written down when, and that common random numbers are common."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from bench_helpers import BALL, Book, play
from hypothesis import given
from hypothesis import strategies as st

from poem_cma import problems
from poem_cma.experiments.bench.players import PLAYERS, choose, takes_part
from poem_cma.experiments.bench.task import WORST, Spent, Task, call_grid

SHARING = [name for name, player in PLAYERS.items() if player.start.get("shared") or player.start.get("paired")]


@given(st.integers(10, 10**6), st.integers(1, 30))
def test_the_grid_ends_at_the_budget_and_grows(budget: int, per_decade: int) -> None:
    grid = call_grid(budget, per_decade)
    assert grid[-1] == budget
    assert grid[0] == 10
    assert all(a < b for a, b in pairwise(grid))


@given(st.lists(st.integers(1, 40), min_size=1, max_size=30), st.integers(20, 200))
def test_the_notebook_against_brute_force(requests: list[int], budget: int) -> None:
    """At c calls the recommendation counts that was made last before call c + 1 was asked for."""
    book = Book(3)
    task = Task(book.problem, budget, seed=0)
    made: list[tuple[int, float]] = [(0, 0.0)]  # after so many calls, this point
    for j, m in enumerate(requests):
        try:
            task.values(np.zeros((m, 3)))
        except Spent:
            break
        task.recommend(np.full(3, 0.01 * (j + 1)))
        made.append((task.nfev, 0.01 * (j + 1)))
    found = task.finish()
    assert found["calls"] == call_grid(budget)
    for c, gap in zip(found["calls"], found["gaps"], strict=True):
        value = [v for after, v in made if after <= c][-1]
        assert gap == pytest.approx((1.0 - value) ** 2)
    assert found["nfev"] == len(book.entries) <= budget


def test_a_request_beyond_the_budget_is_refused_and_costs_nothing() -> None:
    book = Book()
    task = Task(book.problem, 20, seed=0)
    with pytest.raises(Spent):
        task.values(np.zeros((7, 4)), batch=3)
    with pytest.raises(Spent):
        task.values(np.zeros((7, 4)), batch=3, shared=False)
    assert task.nfev == len(book.entries) == 0
    task.values(np.zeros((5, 4)), batch=4, shared=False)
    assert task.nfev == len(book.entries) == 20


def test_means_over_shared_and_own_samples() -> None:
    book = Book()
    task = Task(book.problem, 1000, seed=3)
    X = np.random.default_rng(0).normal(size=(6, 4))
    common = task.values(X, batch=5)
    assert book.runs() == [6] * 5
    xi = dict.fromkeys(entry[0] for entry in book.entries)
    assert len(xi) == 5
    book.entries.clear()
    own = task.values(X, batch=5, shared=False)
    assert len({entry[0] for entry in book.entries}) == 30
    assert not set(xi) & {entry[0] for entry in book.entries}  # never seen before
    noise = [v - 0.5 * ((X - 1.0) ** 2).sum(axis=1) for v in (common, own)]
    slopes = np.linalg.lstsq(X, noise[0], rcond=None)
    assert np.abs(X @ slopes[0] - noise[0]).max() < 1e-9  # one xi'x for all, so linear in x
    assert np.abs(X @ np.linalg.lstsq(X, noise[1], rcond=None)[0] - noise[1]).max() > 1e-3


def test_where_noise_cannot_be_shared_it_is_not() -> None:
    book = Book(shareable=False)
    task = Task(book.problem, 1000, seed=3)
    task.values(np.zeros((6, 4)), batch=2)
    task.at(np.zeros((3, 4)), [0, 1])
    assert len({entry[0] for entry in book.entries}) == len(book.entries) == task.nfev == 18


def test_all_players_see_the_same_sequence_of_samples() -> None:
    one, two = Book(), Book()
    Task(one.problem, 100, seed=5).values(np.zeros((2, 4)), batch=3)
    Task(two.problem, 100, seed=5).values(np.zeros((9, 4)), batch=3)
    assert list(dict.fromkeys(e[0] for e in one.entries)) == list(dict.fromkeys(e[0] for e in two.entries))


def test_a_recommendation_that_is_no_number_is_the_worst() -> None:
    task = Task(Book().problem, 30, seed=0)
    task.recommend(np.full(4, np.nan))
    task.values(np.zeros((20, 4)))
    task.recommend(np.full(4, 1e200))
    assert task.finish()["gaps"] == [WORST] * len(call_grid(30))


@pytest.mark.parametrize("name", SHARING)
def test_a_peer_with_common_random_numbers_shares_them_and_without_does_not(name: str) -> None:
    player = PLAYERS[name]
    flag = "paired" if "paired" in player.start else "shared"
    batch = player.start.get("batch", 1)
    for shares in (True, False):
        book = Book(6)
        task = Task(book.problem, 600, seed=1)
        task.slope_size = lambda *_, **__: 1.0  # type: ignore[method-assign]  # its calls are not charged
        result = play(player, task, {**player.start, flag: shares})
        assert result["nfev"] == len(book.entries) <= 600
        # The last call of noisyopt is of the end point alone, on a xi of its own.
        together: dict[float, int] = {}
        for xi, _ in book.entries:
            together[xi] = together.get(xi, 0) + 1
        sizes = set(list(together.values())[: 2 * batch])
        assert min(sizes) >= 2 if shares else sizes == {1}


@pytest.mark.parametrize("name", PLAYERS)
@pytest.mark.parametrize("domain", [None, BALL], ids=["all", "ball"])
def test_every_player_keeps_to_the_budget_and_recommends_points_of_the_domain(name: str, domain: Any) -> None:
    player = PLAYERS[name]
    for setting in [player.default, *([player.start] if player.axes else [])]:
        d = 40 if name == "ng-ngopt" else 5  # its model of few variables breaks down with numpy 2.4
        book = Book(d, domain=domain)
        task = Task(book.problem, 250, seed=2)
        task.slope_size = lambda *_, **__: 1.0  # type: ignore[method-assign]
        result = play(player, task, setting)
        if player.role != "limit":
            assert result["nfev"] == len(book.entries)
        assert result["nfev"] <= 250
        assert len(result["gaps"]) == len(call_grid(250))
        assert all(np.isfinite(result["gaps"]))
        point = task._point() if callable(task._point) else task._point
        assert point.shape == (d,)
        if domain is not None:
            assert task.gap(point) >= (1.0 - 1.0 / np.sqrt(d)) ** 2 - 1e-12  # nothing in the ball is better


@pytest.mark.parametrize("name", [n for n, p in PLAYERS.items() if p.role != "deterministic"])
def test_the_same_seed_gives_the_same_run(name: str) -> None:
    player = PLAYERS[name]
    setting = player.start if player.axes and not name.startswith("ng-") else player.default
    runs = [play(player, Task(problems.load("box-corner"), 200, seed=s), setting)["gaps"] for s in (4, 4, 5)]
    assert runs[0] == runs[1]
    if name not in ("ng-oneplusone", "ng-spsa"):  # they may stay where they are
        assert runs[0] != runs[2]


def test_noisyopt_leaves_the_global_generator_as_it_was() -> None:
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    play(PLAYERS["noisyopt-spsa"], Task(Book().problem, 100, seed=0), PLAYERS["noisyopt-spsa"].start)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_who_takes_part_where() -> None:
    noisy, quiet = problems.load("noisy-quadratic"), problems.load("max-affine")
    assert not takes_part(PLAYERS["scipy-powell"], noisy)
    assert takes_part(PLAYERS["scipy-powell"], quiet)
    assert not takes_part(PLAYERS["dog"], problems.load("unshared-quadratic"))  # it has no gradients to give
    assert not takes_part(PLAYERS["cmaes"], problems.load("absolute-rank1-of-1000"))
    with pytest.raises(ValueError, match="no method 'pycmaa'; did you mean pycma"):
        choose(["pycmaa"])
