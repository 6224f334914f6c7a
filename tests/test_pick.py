"""The last comparison: the usual average, unless another candidate is better beyond chance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import poem_cma as pc
from poem_cma.auto.pick import after_pick, candidates, in_question, pick_calls, pick_samples
from poem_cma.auto.remarks import NOTHING_BETTER
from poem_cma.auto.state import DECAYS, DONE, PICK, AutoState

AVERAGE, OTHER, BEFORE, X0 = 0, 1, len(DECAYS), len(DECAYS) + 2


def at_the_end(budget: int = 20_000, replayed: int = 0) -> AutoState:
    state: AutoState = pc.Optimizer(np.zeros(5), budget=budget, seed=0)._state
    return state._replace(stage=PICK, replayed=replayed)


def told(s: AutoState, better: dict[int, float], rng: np.random.Generator, noise: float) -> AutoState:
    """The values of a round: those of a sample, lower by so much at some candidates, and noise of their own."""
    asked, n = in_question(s), pick_samples(s)
    V = (
        rng.normal(size=(n, 1))
        - np.array([better.get(i, 0.0) for i in asked])
        + noise * rng.normal(size=(n, len(asked)))
    )
    return after_pick(s, V.tolist())


@pytest.mark.parametrize("budget", [1200, 1777, 4000, 20_000, 10**6])
@pytest.mark.parametrize("replayed", [0, 5])
def test_two_rounds_keep_to_two_calls_in_a_hundred(budget: int, replayed: int) -> None:
    s = at_the_end(budget, replayed)
    calls = len(in_question(s)) * pick_samples(s)
    assert (BEFORE in in_question(s)) == (replayed > 0)  # else it is x_0, which is asked anyway
    s = told(s, {}, np.random.default_rng(0), 1.0)
    if s.stage != DONE:
        assert in_question(s) == [AVERAGE, s.rival]
        calls += 2 * pick_samples(s)
    assert 0.95 * pick_calls(s.run) - 10 <= calls <= pick_calls(s.run) <= 0.02 * budget


@pytest.mark.parametrize("better", [OTHER, X0])
def test_a_candidate_that_is_clearly_better_is_returned(better: int) -> None:
    rng, s = np.random.default_rng(1), at_the_end()
    s = told(s, {better: 1.0}, rng, noise=1.0)
    assert s.rival == better
    s = told(s, {better: 1.0}, rng, noise=1.0)
    assert (s.stage, s.picked) == (DONE, better)
    assert s.run.remark == (NOTHING_BETTER if better == X0 else "")


def test_by_chance_alone_the_average_is_left_in_few_cases() -> None:
    """Two standard errors, of which the second half is independent of the choice of the rival; one for x_0."""
    rng, others, runs = np.random.default_rng(2), [], 400
    for _ in range(runs):
        s = told(told(at_the_end(), {}, rng, 1.0), {}, rng, 1.0)
        others.append(s.picked)
    assert np.mean(np.array(others) != AVERAGE) < 0.3
    assert np.mean((np.array(others) != AVERAGE) & (np.array(others) != X0)) < 0.12


def test_what_both_rounds_have_seen_counts() -> None:
    s = at_the_end()
    first = np.zeros((pick_samples(s), len(in_question(s))))
    first[:, OTHER] = -1.0 + 0.01 * np.random.default_rng(3).normal(size=len(first))
    s = after_pick(s, first.tolist())
    second = np.zeros((pick_samples(s), 2))
    second[:, 1] = 1.0  # many more of these
    assert after_pick(s, second.tolist()).picked == AVERAGE


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_values_that_fail_or_overflow_are_survived(value: float) -> None:
    s = at_the_end()
    V: Any = np.random.default_rng(4).normal(size=(pick_samples(s), len(in_question(s))))
    V[::3, 1] = value
    s = after_pick(s, V.tolist())
    V = np.full((pick_samples(s), 2), value)
    s = after_pick(s, V.tolist())
    assert s.stage == DONE
    assert s.picked in range(len(candidates(s)))


def test_where_every_call_fails_the_average_is_returned() -> None:
    s = at_the_end()
    s = after_pick(s, np.full((pick_samples(s), len(in_question(s))), np.nan).tolist())
    assert (s.stage, s.picked) == (DONE, AVERAGE)


@pytest.mark.parametrize(("said", "returned"), [(-3.0, AVERAGE), (0.0, X0), (3.0, X0)])
def test_x0_is_returned_unless_slopes_have_said_that_it_is_worse(said: float, returned: int) -> None:
    """Samples that are all of a kind may show it to be better."""
    s = at_the_end()._replace(promised=said, promised_squares=1.0)
    rng = np.random.default_rng(0)
    while s.stage != DONE:
        s = told(s, {X0: 1.0}, rng, 0.01)
    assert s.picked == returned


def test_where_slopes_have_said_that_x0_is_better_values_need_not_be_sure() -> None:
    picked = {}
    for said in (0.0, 3.0):
        s = at_the_end(1200)._replace(promised=said, promised_squares=1.0)
        rng = np.random.default_rng(1)
        while s.stage != DONE:
            s = told(s, {X0: 0.3}, rng, 0.5)
        picked[said] = s.picked
    assert picked == {0.0: AVERAGE, 3.0: X0}
