"""A scale that is far too small, and that the distance of the average cannot show to be so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import poem_cma as pc
from poem_cma.auto import algorithm
from poem_cma.auto.further import TIMES, at_larger_scale, further_points
from poem_cma.auto.state import CHECK, DECAYS, FURTHER, HAAR, STEP, WORSE

D, RANK, BUDGET = 300, 12, 6000
U = np.linalg.qr(np.random.default_rng(1).normal(size=(D, RANK)))[0]
GOAL = U @ np.full(RANK, 1.0)


def F(x: np.ndarray, number: int) -> float:
    rng = np.random.default_rng(number)
    return abs(float((U @ rng.normal(size=RANK)) @ (x - GOAL)) + 0.2 * float(rng.normal()))


def distance(x: np.ndarray) -> float:
    return float(np.linalg.norm(U.T @ (x - GOAL)) / np.linalg.norm(U.T @ GOAL))


def run(shrunk: float, seed: int = 0) -> tuple[pc.Optimizer, float, float]:
    """To the end, from a first scale that is so many times too small, if any; and that scale, and the largest."""
    opt = pc.Optimizer(np.zeros(D), budget=BUDGET, seed=seed)
    first = largest = 0.0
    while (probe := opt.ask()) is not None:
        opt.tell(probe, [F(x, number) for x, number in zip(probe.points, probe.numbers, strict=True)])
        s = opt._state
        if shrunk and s.stage == STEP and not first:
            first, x0 = s.R / shrunk, s.run.x0
            opt._go_on_from(s._replace(R=first, x=x0, centre=x0, r=0.0, averages=np.tile(x0, (len(DECAYS), 1))))
        largest = max(largest, opt._state.R) if first else 0.0
    return opt, first, largest


def test_it_grows_by_what_values_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """By itself the distance of the average lets it grow a few times only."""
    left = np.median([distance(run(100.0, seed)[0].result().x) for seed in range(5)])
    assert left < 0.5
    monkeypatch.setattr(algorithm, "further_points", lambda s: [])
    assert distance(run(100.0)[0].result().x) > 0.9


def test_where_the_scale_is_right_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    def ends() -> np.ndarray:
        return np.array([distance(run(0.0, seed)[0].result().x) for seed in range(6)])

    left = ends()
    monkeypatch.setattr(algorithm, "further_points", lambda s: [])
    assert np.exp(np.log(left / ends()).mean()) < 1.1


def state(**changes: Any) -> Any:
    opt = pc.Optimizer(np.zeros(D), budget=BUDGET, seed=0)
    while opt._state.stage != CHECK:
        probe = opt.ask()
        assert probe is not None
        opt.tell(probe, [F(x, number) for x, number in zip(probe.points, probe.numbers, strict=True)])
    s = opt._state
    assert s.kind == s.choice == HAAR
    return s._replace(t=1000, **changes)


def test_the_points_are_on_the_way_that_the_average_has_gone() -> None:
    s = state()
    [point] = further_points(s)
    assert np.allclose(point - s.run.x0, TIMES[0] * (s.average - s.run.x0))
    near, far = further_points(s._replace(alarmed=FURTHER))
    assert np.array_equal(near, point)
    assert np.allclose(far - s.run.x0, TIMES[1] * (s.average - s.run.x0))
    assert not further_points(s._replace(alarmed=WORSE))


@pytest.mark.parametrize("changes", [{"use_subspace": True}, {"dual": True}, {"choice": "walk"}, {"t": 0}])
def test_elsewhere_the_distance_tells(changes: dict[str, Any]) -> None:
    assert not further_points(state()._replace(**changes))


def test_iterates_at_the_smaller_scale_count_for_less() -> None:
    s = state()
    after = at_larger_scale(s, 3.0)
    assert after.R == 3.0 * s.R
    assert after.path_weight == pytest.approx(s.path_weight / 9.0)
