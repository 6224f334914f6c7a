"""Kinds of variables: what the function receives, what the search sees, and what it finds."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import poem_cma as pc
from poem_cma.domains.given import searched
from poem_cma.domains.variables import Variables
from poem_cma.store import StoreError

MIXED = pc.Box(
    [0.0, 1e-4, 1.0, 1.0, -3.0], [1.0, 1.0, 20.0, 1000.0, np.inf], integer=[0, 0, 1, 1, 1], log=[0, 1, 0, 1, 0]
)


# --- the box --------------------------------------------------------------------------------------


def test_a_box_projects_on_its_integers() -> None:
    x = np.array([2.0, 0.5, 6.5, 1e9, -3.4])
    np.testing.assert_array_equal(MIXED.project(x), [1.0, 0.5, 7.0, 1000.0, -3.0])
    assert MIXED.contains(MIXED.project(x))
    assert not MIXED.contains([0.5, 0.5, 6.4, 10.0, 0.0])
    half = pc.Box(0.5, 2.7, integer=True)
    assert (half.lower, half.upper) == (1.0, 2.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: pc.Box([0.0, 1.2], [1.0, 1.8], integer=True),
            r"integer between its bounds, coordinate 1 has \[1.2, 1",
        ),
        (lambda: pc.Box(0.0, 1.0, log=True), "log variable needs a positive lower bound"),
        (lambda: pc.Box([1.0, 2.0], 5.0, log=[True, False, True]), "lower has dimension 2, log has 3"),
        (lambda: pc.Box(0.0, 1.0, integer=2), "integer must be True, False or a 1-D array"),
        (lambda: pc.Integer(1, 5, start=2.5), r"start must be in Integer\(1, 5\), got 2.5"),
        (lambda: pc.Real(-1.0, 5.0, log=True), "positive lower bound"),
        (lambda: pc.Integer("one", 5), "lower must be a number, got 'one'"),
    ],
)
def test_what_cannot_be(make: Callable[[], Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        make()


@pytest.mark.parametrize(
    ("variable", "start"),
    [
        (pc.Real(0.0, 4.0), 2.0),
        (pc.Real(1e-4, 1.0, log=True), 1e-2),
        (pc.Integer(1, 20), 11.0),
        (pc.Integer(1, 100, log=True), 10.0),
        (pc.Real(), 0.0),
        (pc.Real(3.0), 3.0),
        (pc.Real(1e-3, log=True), 1.0),
        (pc.Integer(1, 20, start=4), 4.0),
    ],
)
def test_where_a_variable_starts(variable: Any, start: float) -> None:
    assert variable.start == pytest.approx(start, rel=1e-12)


# --- the change of variables ----------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.floats(-20.0, 20.0), min_size=5, max_size=5), st.sampled_from([None, 0.5, [1.0, 2.0, 3.0, 0.1, 7.0]])
)
def test_there_and_back(z: list[float], scale: Any) -> None:
    units = np.asarray(scale) if isinstance(scale, list) else scale
    kinds = Variables(MIXED, units)
    inside = searched(MIXED, units, np.zeros(5)).project(np.array(z))
    x = kinds.to_user(inside)
    assert MIXED.contains(x)
    np.testing.assert_allclose(kinds.to_user(kinds.to_search(x)), x, rtol=1e-9, atol=1e-12)
    same = kinds.rounded(inside)
    np.testing.assert_allclose(kinds.rounded(same), same, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(same[:2], kinds.to_search(x)[:2])


def test_a_step_reaches_the_next_integer() -> None:
    scale = np.array([1.0, 1.0, 4.0, 0.5, 2.0])
    kinds = Variables(MIXED, scale)
    x = np.array([0.5, 0.1, 7.0, 100.0, 2.0])
    steps = kinds.steps(kinds.to_search(x))
    np.testing.assert_allclose(steps, [0.0, 0.0, 1 / 4.0, np.log(100.5 / 99.5) / 0.5, 1 / 2.0], atol=1e-15)


def test_all_integers_have_the_same_room() -> None:
    box = searched(pc.Box(np.ones(1), 6.0, integer=True), None, np.zeros(1))
    kinds = Variables(pc.Box(np.ones(1), 6.0, integer=True), None)
    z = np.linspace(float(box.lower[0]), float(box.upper[0]), 60_001)[:-1]  # type: ignore[attr-defined]
    counts = np.bincount([int(kinds.to_user(np.array([v]))[0]) for v in z])[1:]
    assert counts.max() - counts.min() <= 1


# --- runs -----------------------------------------------------------------------------------------


def run(fun: Any, x0: Any, **told: Any) -> pc.Result:
    return pc.minimize(fun, x0, **{"budget": 600, "seed": 0, **told})


@pytest.mark.parametrize("method", ["auto", "poem", "near", "far", "poem-cma"])
@pytest.mark.parametrize("vectorized", [False, True])
def test_the_function_receives_what_was_promised(method: str, vectorized: bool) -> None:
    seen: list[np.ndarray] = []

    def fun(x: np.ndarray) -> Any:
        seen.extend(np.atleast_2d(x).copy())
        values = np.abs(np.atleast_2d(x) - [0.3, 0.01, 7.0, 50.0, 4.0]).sum(axis=1)
        return values if vectorized else float(values[0])

    result = run(fun, [0.5, 0.1, 10.0, 10.0, 0.0], domain=MIXED, method=method, vectorized=vectorized, budget=300)
    points = np.array(seen)
    for x in (*points, result.x, result.x_last, result.x_average):
        assert (x[2:] == np.round(x[2:])).all()
        assert MIXED.contains(x)
    assert len(np.unique(points[:, 3])) > 1


def test_named_variables() -> None:
    kinds: set[tuple[type, type]] = set()

    def fun(p: Any, xi: float) -> float:
        kinds.add((type(p["rate"]), type(p["servers"])))
        return float((np.log(p["rate"]) + 4.0) ** 2 + (p["servers"] - 17) ** 2 / 10 + np.abs(p["w"] - 0.3).sum() + xi)

    x0 = {"rate": pc.Real(1e-4, 1.0, log=True), "servers": pc.Integer(1, 20), "w": np.zeros(2)}
    result = run(fun, x0, sample=lambda rng: 0.1 * rng.normal(), paired=False, budget=1000)
    assert kinds == {(float, int)}
    assert type(result.x["servers"]) is int
    assert result.x["servers"] == 17
    assert np.log(result.x["rate"]) == pytest.approx(-4.0, abs=0.2)
    np.testing.assert_allclose(result.x["w"], 0.3, atol=0.1)
    several = pc.replicate(fun, x0, sample=lambda rng: 0.1 * rng.normal(), paired=False, budget=1000, seeds=[0, 1])
    assert several[0].x["rate"] == result.x["rate"]
    assert several[0].x["servers"] == result.x["servers"]


def test_declared_in_a_list_or_in_a_nest_of_domains() -> None:
    result = run(lambda v: abs(v[0] - 2) + abs(v[1] - 3.3), [pc.Integer(-5, 9), pc.Real(0.0, 10.0)])
    assert result.x == [2, pytest.approx(3.3, abs=1e-3)]
    result = run(
        lambda p: abs(p["n"] - 300) + p["a"] ** 2, {"n": 5, "a": 1.0}, domain={"n": pc.Integer(1, 1000, log=True)}
    )
    assert result.x["n"] == 300
    with pytest.raises(ValueError, match=r"x0\['n'\] has its domain from x0, and another one from domain="):
        run(lambda p: 1.0, {"n": pc.Integer(1, 5)}, domain=pc.Box(0.0, 1.0))


def test_beside_a_simplex() -> None:
    def fun(p: Any) -> float:
        assert p["shares"].sum() == pytest.approx(1.0)
        return abs(p["n"] - 4) + float(((p["shares"] - [0.2, 0.3, 0.5]) ** 2).sum())

    result = run(
        fun, {"shares": np.full(3, 1 / 3), "n": pc.Integer(1, 9)}, domain={"shares": pc.Simplex()}, budget=1500
    )
    assert result.x["n"] == 4
    np.testing.assert_allclose(result.x["shares"], [0.2, 0.3, 0.5], atol=0.05)


def test_saved_and_loaded(tmp_path: pathlib.Path) -> None:
    def fun(x: np.ndarray) -> float:
        return float(np.abs(x - [0.3, 0.01, 7.0, 50.0, 4.0]).sum())

    def steps(opt: pc.Optimizer, n: int) -> None:
        for _ in range(n):
            probe = opt.ask()
            assert probe is not None
            opt.tell(probe, [fun(x) for x in probe.points])

    opt = pc.Optimizer([0.5, 0.1, 10.0, 10.0, 0.0], domain=MIXED, budget=400, seed=0)
    steps(opt, 10)
    opt.save(tmp_path / "run")
    other = pc.Optimizer.load(tmp_path / "run")
    steps(opt, 10)
    steps(other, 10)
    np.testing.assert_array_equal(opt.result().x, other.result().x)
    stored = [run(fun, [0.5, 0.1, 10.0, 10.0, 0.0], domain=MIXED, store=tmp_path / "run.db") for _ in range(2)]
    np.testing.assert_array_equal(stored[0].x, stored[1].x)
    with pytest.raises(StoreError, match="domain"):
        run(fun, [0.5, 0.1, 10.0, 10.0, 0.0], domain=pc.Box(MIXED.lower, MIXED.upper), store=tmp_path / "run.db")


@pytest.mark.parametrize("own", [True, False], ids=["own", "shared"])
@pytest.mark.parametrize("start", [0.0, -7.0])
@pytest.mark.parametrize(("reals", "integers"), [(2, 2), (4, 4), (20, 1), (0, 3)])
def test_integers_are_found(reals: int, integers: int, start: float, own: bool) -> None:
    """|x - 2|^2 + |n - 3|^2 with noise, from the middle of a step."""
    d = reals + integers
    target = np.repeat([2.0, 3.0], [reals, integers])
    whole = np.arange(d) >= reals
    x0 = np.where(whole, start, 0.0)
    missed = 0
    for seed in range(6):
        result = run(
            (lambda x, xi: float(((x - target) ** 2).sum() + xi[0])) if own
            else (lambda x, xi: float(((x - target - xi) ** 2).sum())),
            x0, sample=lambda rng: 0.3 * rng.normal(size=d), paired=not own, seed=seed, budget=400 + 100 * d,
            domain=pc.Box(np.full(d, -np.inf), np.inf, integer=whole),
        )  # fmt: skip
        missed += bool((result.x[whole] != 3.0).any())
        assert np.abs(result.x - target)[~whole].max(initial=0.0) < 1.0
    assert missed <= 1


def test_a_variable_of_many_decades_does_not_stall_the_others() -> None:
    def fun(p: Any) -> float:
        return float((np.log10(p["rate"]) + 5.0) ** 2 + (p["a"] - 1.0) ** 2)

    result = run(fun, {"rate": pc.Real(1e-8, 1.0, log=True), "a": pc.Real(-5.0, 5.0)}, budget=300)
    assert np.log10(result.x["rate"]) == pytest.approx(-5.0, abs=0.05)
    assert result.x["a"] == pytest.approx(1.0, abs=0.05)


def test_the_last_comparison_is_among_integers() -> None:
    """The function is evaluated at the result itself, with its integers."""
    seen: list[tuple[float, ...]] = []

    def fun(x: np.ndarray, xi: float) -> float:
        seen.append(tuple(x))
        return float((x[0] - 4.4) ** 2 + 0.2 * xi)

    result = run(
        fun, [9.0], sample=lambda rng: rng.normal(), paired=False, domain=pc.Box(0.0, 20.0, integer=True), evaluate=0
    )
    assert result.x[0] == 4.0
    assert seen[-1] in {(4.0,), (5.0,), (3.0,), (9.0,)}
    assert tuple(result.x) in seen
