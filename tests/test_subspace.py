"""The few directions in which gradients live: how steps along random ones confirm them, and when they are left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_replicate import assert_same

import poem_cma as pc
from poem_cma.auto.state import AutoState, in_unit
from poem_cma.auto.subspace import agreement, still_inside
from poem_cma.oracle import Oracle
from poem_cma.randomness import Streams

D = 300
U = np.linalg.qr(np.random.default_rng(0).normal(size=(D, 3)))[0].T


def single_index(X: np.ndarray, z: Any) -> Any:
    """Of rank one: a function of <u, x> alone."""
    return np.abs(3.0 - X @ U[0] + 0.3 * z)


def normal(rng: np.random.Generator) -> float:
    return float(rng.normal())


def state_in(k: int, budget: int = 20_000) -> AutoState:
    """A run that knows k directions from full walks."""
    state: AutoState = pc.Optimizer(np.zeros(D), budget=budget, seed=0)._state
    return state._replace(stage="step", subspace=U[:k].copy(), nfev=3000, t=40)


@given(st.integers(0, 2**32 - 1), st.integers(1, 2))
def test_slopes_of_a_gradient_in_the_subspace_agree(seed: int, k: int) -> None:
    rng, s = np.random.default_rng(seed), state_in(k)
    V = np.linalg.qr(rng.normal(size=(D, 4)))[0].T
    assert agreement(s, V, V @ (rng.normal(size=k) @ U[:k])).agreed == 1


@pytest.mark.parametrize("k", [1, 2])
def test_slopes_of_other_gradients_seldom_do(k: int) -> None:
    """One in a thousand or so, of which a tenth lies beside the subspace; and five in a row are asked for."""
    rng, s, by_chance = np.random.default_rng(k), state_in(k), 0
    for _ in range(400):
        V = np.linalg.qr(rng.normal(size=(D, 4)))[0].T
        g = rng.normal(size=k) @ U[:k]
        by_chance += agreement(s, V, V @ (g + 0.1 * np.linalg.norm(g) * rng.normal(size=D) / np.sqrt(D))).agreed > 0
    assert by_chance < 8


def test_what_says_nothing_changes_nothing() -> None:
    s = state_in(2)
    V = np.eye(D)[:4]
    for slopes in (np.zeros(4), np.array([1.0, np.nan, 0.0, 0.0]), np.array([np.inf, 0.0, 0.0, 1.0])):
        assert agreement(s, V, slopes) is s
    assert agreement(s, V[:2], np.ones(2)) is s  # with as many slopes as directions, anything fits


def test_a_function_of_one_direction_is_found_out_by_a_single_walk() -> None:
    """Which takes 300 calls; a second one would be too dear. Then a gradient takes two calls instead of five."""
    opt, oracle = pc.Optimizer(np.zeros(D), budget=6000, seed=0), Oracle(single_index, normal, Streams(0), True)
    while opt.answer(oracle.evaluate):
        pass
    assert opt._state.use_subspace
    assert opt._state.active_trials == 1
    assert abs(opt.result().x @ U[0] - 3.0) < 0.02


def test_steps_in_a_subspace_become_shorter_in_the_second_half() -> None:
    opt, oracle = pc.Optimizer(np.zeros(D), budget=6000, seed=0), Oracle(single_index, normal, Streams(0), True)
    last: list[float] = []
    while (before := opt._state) is not None and opt.answer(oracle.evaluate):
        s = opt._state
        if not (s.use_subspace and before.use_subspace and s.t == before.t + 1):
            continue
        plain = before.R / np.sqrt(2.0 * (s.G / s.metric).sum())
        assert s.eta == pytest.approx(plain * min(1.0, 2.0 * (1.0 - s.nfev / 6000)), rel=1e-9)
        last.append(s.eta / plain)
    assert last[0] == pytest.approx(1.0)
    assert min(last) < 0.1


def test_replicas_and_restarts_of_such_runs_are_the_same_to_the_bit(tmp_path: Path) -> None:
    """They may be advanced together only while no step along random directions is to confirm anything."""

    def index(X: np.ndarray, z: Any) -> Any:  # the value of a row is the same in whatever company
        return np.abs(3.0 - (X * U[0]).sum(axis=-1) + 0.3 * z)

    seeds = range(6)
    together = pc.replicate(index, np.zeros(D), sample=normal, seeds=seeds, budget=5000, vectorized="rows", evaluate=0)
    for seed, result in zip(seeds, together, strict=True):
        alone = pc.minimize(index, np.zeros(D), sample=normal, seed=seed, budget=5000, vectorized=True, evaluate=0)
        assert_same(result, alone)
    opt, oracle = pc.Optimizer(np.zeros(D), budget=5000, seed=0), Oracle(index, normal, Streams(0), True)
    answers = 0
    while opt.answer(oracle.evaluate):
        answers += 1
        if answers % 97 == 0:
            opt.save(tmp_path / "run")
            opt = pc.Optimizer.load(tmp_path / "run")
    assert opt._state.use_subspace
    assert opt.result().x.tobytes() == together[0].x.tobytes()


def test_a_subspace_is_left_for_good_where_slopes_beside_it_are_seen() -> None:
    s = state_in(2)._replace(use_subspace=True, shares=np.ones(2))
    assert still_inside(s, np.ones(2)) is s  # nothing was asked beside
    assert still_inside(s, np.array([np.nan, 0.5, 1.0, 2.0])) is s  # a call has failed
    inside = still_inside(s, np.array([0.0, 0.0, 1.0, 2.0]))
    assert inside.use_subspace
    assert inside.inside == 5.0
    assert in_unit(inside._replace(unit=1.0), 2.0).inside == 1.25
    left = still_inside(s, np.array([0.5, 0.5, 1.0, 2.0]))
    assert not left.use_subspace
    assert agreement(left, np.eye(D)[:4], U[0, :4]).agreed < 0


@pytest.mark.parametrize("seed", range(3))
def test_more_calls_do_not_make_it_worse_where_gradients_change_from_place_to_place(seed: int) -> None:
    """The largest of many linear functions: gradients near x_0 lie in few directions, those further on in others."""
    rng = np.random.default_rng(5)
    xs, A = rng.normal(size=50), rng.normal(size=(100, 50))

    def largest(X: np.ndarray) -> Any:
        return np.abs((X - xs) @ A.T).max(axis=-1)

    x = pc.minimize(largest, np.zeros(50), budget=20_000, seed=seed, vectorized=True, evaluate=0).x
    assert largest(x) < 0.1 * largest(np.zeros(50))


@pytest.mark.parametrize("seed", range(3))
def test_units_are_not_taken_for_granted_where_there_are_few_first_samples(seed: int) -> None:
    """Slopes of one gradient differ in size by chance, in many dimensions by much; only a race can tell."""
    xs = np.random.default_rng(6).normal(size=D)

    def funnel(X: np.ndarray) -> Any:
        return np.abs((X - xs) @ U.T).sum(axis=-1)

    x = pc.minimize(funnel, np.zeros(D), budget=16_000, seed=seed, vectorized=True, evaluate=0).x
    assert funnel(x) < 0.01 * funnel(np.zeros(D))
