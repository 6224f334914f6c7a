"""Where calls pay for one full walk and no more: it is made to the end only where that is worth it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import poem_cma as pc
from poem_cma.auto.directions import SHARED
from poem_cma.auto.start import _parallel
from poem_cma.auto.state import START, STEP

D, BUDGET = 400, 8000  # a walk is a twentieth of the calls


def sample_of(kind: str) -> Any:
    """F(x; xi) of a sample that is dense, of one that depends on few variables, and of one direction for all."""
    one = np.random.default_rng(7).normal(size=D)

    def F(x: np.ndarray, number: int) -> float:
        rng = np.random.default_rng(number)
        a = rng.normal(size=D)
        if kind == "sparse":
            a[rng.permutation(D)[12:]] = 0.0
        if kind == "parallel":
            a = float(rng.normal()) * one
        return abs(float(a @ (x - 0.1)) + 0.3 * float(rng.normal()))

    return F


def walked(kind: str, method: Any = "auto") -> tuple[pc.Optimizer, int]:
    """A run, and the calls of its first full walk."""
    opt = pc.Optimizer(np.zeros(D), method=method, budget=BUDGET, seed=0)
    F, calls = sample_of(kind), 0
    while opt.nfev < 0.5 * BUDGET:
        probe = opt.ask()
        assert probe is not None
        first = opt._state.stage == STEP and opt._state.trial and not len(opt._state.costs)
        opt.tell(probe, [F(x, number) for x, number in zip(probe.points, probe.numbers, strict=True)])
        calls += len(probe.points) if first else 0
    return opt, calls


def test_a_dense_sample_is_left() -> None:
    opt, calls = walked("dense")
    assert 32 < calls < 110  # as many as show that it is dense
    assert opt._state.costs.tolist() == [1.0]  # and no second one is tried
    assert opt._state.active_trials == 0
    assert not len(opt._state.subspace)
    assert not opt._state.sparse


def test_a_sparse_one_is_walked_to_the_end() -> None:
    opt, calls = walked("sparse")
    assert calls < 0.5 * D
    assert opt._state.active_trials > 1
    assert opt._state.costs.max() < 0.5


def test_one_direction_for_all_is_worth_all_of_it() -> None:
    opt, calls = walked("parallel")
    assert calls == D + 1
    assert opt._state.use_subspace
    assert len(opt._state.subspace) == 1


@pytest.mark.parametrize(("kind", "parallel"), [("dense", False), ("sparse", False), ("parallel", True)])
def test_the_first_estimates_see_whether_gradients_are_parallel(kind: str, parallel: bool) -> None:
    opt, _ = walked(kind)
    assert opt._state.parallel is parallel


def test_two_directions_are_the_same_for_all_first_samples() -> None:
    opt = pc.Optimizer(np.zeros(D), budget=BUDGET, seed=0)
    asked = []
    while opt._state.stage == START:
        probe = opt.ask()
        if probe is None:
            break
        asked.append(probe.points)
        opt.tell(probe, [sample_of("dense")(x, n) for x, n in zip(probe.points, probe.numbers, strict=True)])
    apart = [points[-1] - points[-SHARED] for points in asked if len(points) > 3]  # the base and two come before
    assert len(apart) > 3
    assert all(np.allclose(a, apart[0], rtol=0.0, atol=1e-12) for a in apart)


def test_slopes_that_are_parallel() -> None:
    rng = np.random.default_rng(0)
    one, c = rng.normal(size=2), rng.normal(size=(8, 1))
    assert _parallel(c * one)
    assert _parallel(np.concatenate((c * one, np.zeros((3, 2)))))  # flat samples say nothing
    assert not _parallel(c * one + 0.01 * rng.normal(size=(8, 2)))
    assert not _parallel(rng.normal(size=(8, 2)))
    assert not _parallel((c * one)[:1])
    assert not _parallel(np.where(c > 1.0, np.nan, c * one))


def test_steps_ahead_give_it_up_too() -> None:
    opt = pc.Optimizer(np.zeros(D), budget=BUDGET, seed=0, ahead=3)
    F, flight = sample_of("dense"), []
    while opt.nfev < 0.5 * BUDGET:
        while (probe := opt.ask()) is not None:
            flight.append(probe)
        probe = flight.pop(0)
        opt.tell(probe, [F(x, number) for x, number in zip(probe.points, probe.numbers, strict=True)])
    assert opt._state.costs.tolist() == [1.0]
    assert np.isfinite(opt._state.x).all()
