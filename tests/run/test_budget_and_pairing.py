"""Calls are counted and never exceeded; xi's are shared, or not, as asked."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from problems import hinge

import poem_cma as pc
from poem_cma.run.algorithm import Method

P = hinge(d=3)
METHODS = [
    pc.methods.poem_cma(),
    pc.methods.poem(),
    pc.methods.tpbco(lipschitz=2.0),
    pc.methods.tpge(lipschitz=2.0),
    pc.methods.rsnso(lipschitz=2.0),
]


def counted_run(method: Method, budget: int, **settings: Any) -> tuple[pc.Result, int]:
    calls = 0

    def fun(x: np.ndarray, i: int) -> float:
        nonlocal calls
        calls += 1
        return P.fun(x, i)

    result = pc.minimize(
        fun, np.zeros(P.d), sample=P.sample, domain=pc.Ball(1.0), method=method, budget=budget, seed=0, **settings
    )
    return result, calls


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.name)
def test_no_budget_up_to_500_is_exceeded(method: Method) -> None:
    """All of them up to 250, where every share of a budget has left its least value, then every seventh."""
    least = 4 if method.name == "poem-cma" else 2
    for budget in (*range(1, 251), *range(251, 501, 7)):
        if budget < least:
            with pytest.raises(ValueError, match=f"needs at least {least}: one step costs 2 calls"):
                counted_run(method, budget)
            continue
        result, calls = counted_run(method, budget)
        assert result.nfev == calls <= budget
        assert calls > budget - 2  # and it is used
        assert result.nit >= 1
        assert np.isfinite(result.x).all()


@pytest.mark.parametrize("batch", [3, 7])
def test_batches_count_too(batch: int) -> None:
    for budget in range(1, 100):
        if budget < 2 * batch:
            with pytest.raises(ValueError, match=f"one step costs {2 * batch} calls"):
                counted_run(METHODS[1], budget, batch=batch)
        else:
            result, calls = counted_run(METHODS[1], budget, batch=batch, evaluate=0)
            assert budget - 2 * batch < result.nfev == calls <= budget


def test_the_preliminary_pairs_are_at_most_a_quarter_of_the_budget() -> None:
    for budget in (100, 1000, 10_000):
        result, _ = counted_run(pc.methods.poem_cma(), budget)
        assert result.spectrum is not None
        assert result.spectrum.size == min(3, (budget - max(20, budget // 10)) // 8)  # floor(3 ln 3) = 3


def test_asking_for_more_pairs_than_the_budget_holds_says_what_is_needed() -> None:
    with pytest.raises(ValueError, match="needs at least 202: one step costs 2 calls after 200 preliminary ones"):
        counted_run(pc.methods.poem_cma(samples=100), 150)


def test_evaluate_is_part_of_the_budget() -> None:
    result, calls = counted_run(METHODS[1], 100, evaluate=30)  # at x and at x0
    assert calls == result.nfev == 100
    assert result.nit == 20
    assert np.isfinite(result.fun_stderr)
    result, calls = counted_run(METHODS[1], 100, evaluate=0)
    assert np.isnan(result.fun)
    assert result.nit == 50
    with pytest.raises(ValueError, match="leaves nothing of the budget"):
        counted_run(METHODS[1], 100, evaluate=50)
    with pytest.raises(ValueError, match="one step costs 2 calls; 98 of the 99 calls are kept to measure the result"):
        counted_run(METHODS[1], 99, evaluate=49)


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.name)
@pytest.mark.parametrize("paired", [True, False])
def test_the_points_of_a_pair_share_their_sample_or_do_not(method: Method, paired: bool) -> None:
    seen: list[tuple[int, bytes]] = []

    def fun(x: np.ndarray, xi: int) -> float:
        seen.append((xi, x.tobytes()))
        return float(x @ x)

    pc.minimize(
        fun, np.ones(P.d), sample=lambda rng: int(rng.integers(2**62)), paired=paired,
        method=method, domain=pc.Ball(2.0), budget=200, evaluate=0, seed=1,
    )  # fmt: skip
    times = Counter(xi for xi, _ in seen)
    assert set(times.values()) == ({2} if paired else {1})
    if paired:
        assert all(a[0] == b[0] and a[1] != b[1] for a, b in zip(seen[::2], seen[1::2], strict=True))


def test_every_method_sees_the_same_samples_at_the_same_seed() -> None:
    sequences = []
    for method in METHODS:
        seen: list[float] = []
        pc.minimize(
            lambda x, xi, seen=seen: seen.append(xi) or float(x @ x), np.ones(P.d), sample=lambda rng: rng.random(),
            method=method, domain=pc.Ball(2.0), budget=100, seed=1,
        )  # fmt: skip
        sequences.append(seen)
    assert all(s == sequences[0] for s in sequences)
    assert len(set(sequences[0])) == 40 + 10  # ten samples measure the result, xi's of their own
