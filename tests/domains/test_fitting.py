"""Points of one probe are moved into a domain together: their differences stay, and no point is outside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import poem_cma as pc

D = 6
CORNERS = {
    "box": (pc.Box, (-1.0, 1.0), np.ones(D)),
    "box, edge": (pc.Box, (-1.0, 1.0), np.array([1.0, -1.0, 0.0, 0.3, 0.999, -0.9999])),
    "ball": (pc.Ball, (1.0,), np.full(D, D**-0.5)),
    "simplex": (pc.Simplex, (1.0,), np.eye(D)[2]),
    "simplex, edge": (pc.Simplex, (1.0,), np.array([0.5, 0.5, 0.0, 0.0, 0.0, 0.0])),
    "l1 ball": (pc.L1Ball, (1.0,), -np.eye(D)[1]),
}
METHODS = {
    "poem": pc.methods.poem(0.01),
    "tpbco": pc.methods.tpbco(lipschitz=1.0, diameter=0.01),
    "tpge": pc.methods.tpge(lipschitz=1.0, diameter=0.01),
    "rsnso": pc.methods.rsnso(lipschitz=1.0, distance=0.01),
}


def first_pair(method: pc.Method, domain: Any, x0: np.ndarray, seed: int) -> np.ndarray:
    probe = pc.Optimizer(x0, method=method, domain=domain, budget=1000, seed=seed).ask()
    assert probe is not None
    return probe.points


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("corner", CORNERS)
def test_a_pair_is_moved_not_cut(corner: str, method: str) -> None:
    make, size, x0 = CORNERS[corner]
    inside, free = make(*size), make(*size, outside=True)
    moved = 0
    for seed in range(50):
        pair, wanted = (first_pair(METHODS[method], domain, x0, seed) for domain in (inside, free))
        length = np.linalg.norm(wanted[1] - wanted[0])
        np.testing.assert_allclose(pair[1] - pair[0], wanted[1] - wanted[0], rtol=0.0, atol=5e-3 * length)
        assert all(inside.for_dimension(D).contains(x) for x in pair)
        moved += not np.allclose(pair, wanted, rtol=0.0, atol=1e-9 * length)
        reach = max(np.linalg.norm(wanted - x0, axis=1))
        assert np.linalg.norm(pair - wanted, axis=1).max() <= 3.0 * reach
    assert moved >= 10


def test_a_pair_at_a_bound_begins_at_the_bound() -> None:
    """The difference is one-sided along a bound at x, and two-sided along all others."""
    x0 = np.array([1.0, -1.0, 0.0])
    for seed in range(20):
        pair = first_pair(METHODS["poem"], pc.Box(-1.0, 1.0), x0, seed)
        assert pair[:, 0].max() == 1.0
        assert pair[:, 1].min() == -1.0
        assert pair[:, 2].mean() == pytest.approx(0.0, abs=1e-15)


def test_a_domain_narrower_than_the_pair_still_holds_it() -> None:
    thin = pc.Box(np.array([0.0, -50.0]), np.array([1e-3, 50.0]))
    for seed in range(20):
        pair = first_pair(pc.methods.poem(5.0), thin, np.array([1e-3, 0.0]), seed)
        assert ((pair >= thin.lower) & (pair <= thin.upper)).all()
        assert abs(pair[0, 1] - pair[1, 1]) > 1e-3


def test_parts_that_may_be_left_are_kept_where_others_may_not() -> None:
    """Only if all parts of a nest of domains say so may points be outside."""
    seen: list[Any] = []

    def fun(p: Any) -> float:
        seen.append(p)
        return float(p["a"].sum() - p["b"].sum())

    boxes = {"a": pc.Box(0.0, 1.0), "b": pc.Box(0.0, 1.0, outside=True)}
    pc.minimize(fun, {"a": np.ones(2), "b": np.ones(2)}, domain=boxes, method="poem", budget=300, seed=0)
    assert all((p["a"] >= 0.0).all() and (p["a"] <= 1.0).all() for p in seen)


def test_the_set_of_ones_own_needs_no_more_than_project() -> None:
    class Slab:
        diameter = np.inf

        def project(self, x: np.ndarray) -> np.ndarray:
            y = x.copy()
            y[0] = np.clip(y[0], -0.2, 0.2)
            return y

    seen: list[float] = []

    def fun(x: np.ndarray) -> float:
        seen.append(float(x[0]))
        return float(abs(x[0] - 1.0) + abs(x[1] - 0.5))

    result = pc.minimize(fun, np.zeros(2), domain=Slab(), method="poem", budget=3000, seed=0)
    assert max(np.abs(seen)) <= 0.2
    np.testing.assert_allclose(result.x, [0.2, 0.5], atol=0.02)
