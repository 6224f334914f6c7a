"""Domains: projections against independent answers, shrinking, hulls, scaling, errors."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import Generator
from scipy.optimize import Bounds, brentq, minimize

from poem_cma.domains.convex import ConvexSet
from poem_cma.domains.given import Domain, as_domain, scaled
from poem_cma.domains.sets import Ball, Box, L1Ball, Simplex

D = 7
OFFSET = np.linspace(-1.0, 2.0, D)
SETS: dict[str, ConvexSet] = {
    "ball": Ball(1.5),
    "ball-number": Ball(1.5, 0.5),
    "ball-array": Ball(0.7, OFFSET),
    "box": Box(-0.5, 0.3),
    "box-array": Box(OFFSET - 0.4, OFFSET + np.array([0.0, 0.1, 0.5, 1.0, np.inf, 0.3, 0.0])),
    "simplex": Simplex(),
    "simplex-total": Simplex(2.5),
    "l1": L1Ball(1.2),
}
SETS = {name: s.for_dimension(D) for name, s in SETS.items()}
FIXED = Box(np.where(np.arange(D) == 2, 1.0, -1.0), 1.0)  # coordinate 2 cannot move
KNOWN = SETS | {"box-fixed": FIXED}
ALL = KNOWN | {f"{name}/scale": scaled(s, np.geomspace(0.2, 5.0, D)) for name, s in KNOWN.items()}
WEIGHTS = {
    "plain": None,
    "weighted": np.geomspace(0.05, 3.0, D)[::-1].copy(),
    "wild": np.geomspace(1e-8, 1e8, D),
}

every = pytest.mark.parametrize("name", ALL)
weighted = pytest.mark.parametrize("kind", WEIGHTS)


def squared(h: np.ndarray, weight: np.ndarray | None) -> float:
    return float(np.sum(h * h if weight is None else weight * h * h))


def member(s: ConvexSet, rng: Generator, d: int = D) -> np.ndarray:
    """A random point of a set, made without `project`; corners and edges are likely."""
    sparse = rng.dirichlet(np.full(d, 0.3))
    if hasattr(s, "scale"):
        return member(s.domain, rng, d) / s.scale
    if isinstance(s, Ball):
        u = rng.standard_normal(d)
        return s.center + s.radius * rng.choice([1.0, rng.random()]) * u / np.linalg.norm(u)
    if isinstance(s, Box):
        share = rng.choice([0.0, 1.0, rng.random()], d)
        return np.minimum(s.lower + share * np.minimum(s.upper - s.lower, 3.0), s.upper)
    if isinstance(s, Simplex):
        return s.floor + sparse * (s.total - np.sum(s.floor))
    return s.radius * sparse * rng.choice([-1.0, 1.0], d) * rng.choice([1.0, rng.random()])


# --- the nearest point ----------------------------------------------------------------------------


@every
@weighted
def test_no_member_is_on_the_far_side_of_the_nearest_point(name: str, kind: str) -> None:
    """<x - Px, y - Px>_w <= 0 for every y of the set is what makes Px the nearest point."""
    s, w, rng = ALL[name], WEIGHTS[kind], np.random.default_rng(1)
    for _ in range(60):
        x = 3.0 * rng.standard_normal(D)
        p = s.project(x, w)
        assert s.contains(p)
        pull = (x - p) if w is None else w * (x - p)
        for _ in range(20):
            y = member(s, rng)
            assert s.contains(y)
            assert pull @ (y - p) <= 1e-11 * np.abs(pull) @ (np.abs(y) + np.abs(p))


@every
@weighted
def test_projection_is_idempotent_and_non_expansive(name: str, kind: str) -> None:
    s, w, rng = ALL[name], WEIGHTS[kind], np.random.default_rng(2)
    for _ in range(60):
        x, y = 2.0 * rng.standard_normal((2, D))
        p, q = s.project(x, w), s.project(y, w)
        np.testing.assert_allclose(s.project(p, w), p, rtol=1e-12, atol=1e-12)
        assert squared(p - q, w) <= squared(x - y, w) * (1.0 + 1e-9)


@every
def test_members_stay_where_they_are(name: str) -> None:
    s, rng = ALL[name], np.random.default_rng(3)
    for _ in range(50):
        y = member(s, rng)
        np.testing.assert_allclose(s.project(y), y, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", ["ball", "ball-array", "simplex-total", "l1", "box-array"])
def test_quadratic_programming_agrees(name: str) -> None:
    s, rng = SETS[name], np.random.default_rng(4)
    for w in (np.ones(D), WEIGHTS["weighted"]):
        x = 2.0 * rng.standard_normal(D)
        split = isinstance(s, L1Ball)  # y = p - n with p, n >= 0 makes its constraint smooth
        value: Callable[[np.ndarray], np.ndarray] = (lambda v: v[:D] - v[D:]) if split else (lambda v: v)
        constraints: list[dict[str, Any]] = []
        bounds: Any = None
        if isinstance(s, Ball):
            constraints = [{"type": "ineq", "fun": lambda y: s.radius**2 - np.sum((y - s.center) ** 2)}]
        elif isinstance(s, Simplex):
            constraints, bounds = [{"type": "eq", "fun": lambda y: y.sum() - s.total}], [(0, None)] * D
        elif isinstance(s, L1Ball):
            constraints, bounds = (
                [{"type": "ineq", "fun": lambda v: s.radius - v.sum()}],
                [(0, None)] * (2 * D),
            )
        else:
            bounds = Bounds(s.lower, s.upper)
        found = minimize(
            lambda v, w=w, x=x, value=value: squared(value(v) - x, w),
            np.full(2 * D if split else D, 0.1),
            method="SLSQP",
            bounds=bounds,
            constraints=constraints,
            options={"ftol": 1e-14, "maxiter": 500},
        )
        np.testing.assert_allclose(s.project(x, w), value(found.x), atol=2e-5)


@weighted
def test_a_root_finder_on_the_multiplier_agrees(kind: str) -> None:
    w = np.ones(D) if WEIGHTS[kind] is None else WEIGHTS[kind]
    rng = np.random.default_rng(5)
    for _ in range(20):
        x = 5.0 * rng.standard_normal(D)
        top = 1e3 * w.max()
        lam = brentq(lambda m, x=x: np.linalg.norm(w * x / (w + m)) - 1.5, 0.0, top, xtol=1e-300, rtol=1e-14)
        np.testing.assert_allclose(Ball(1.5).project(x, w), w * x / (w + lam), rtol=1e-9, atol=1e-12)
        low, high = (w * (x - 9.0)).min(), (w * x).max()
        tau = brentq(lambda m, x=x: np.maximum(x - m / w, 0.0).sum() - 2.5, low, high, xtol=1e-300, rtol=1e-14)
        np.testing.assert_allclose(Simplex(2.5).project(x, w), np.maximum(x - tau / w, 0.0), atol=1e-6)


def test_a_constant_weight_is_no_weight() -> None:
    x = np.random.default_rng(6).standard_normal(D) * 4.0
    for s in SETS.values():
        np.testing.assert_allclose(s.project(x, np.full(D, 1e-150)), s.project(x), rtol=1e-13, atol=1e-15)


@settings(max_examples=150, derandomize=True, deadline=None, database=None)
@given(
    exponents=st.lists(st.tuples(st.integers(-200, 200), st.floats(-9.9, 9.9)), min_size=1, max_size=6),
    size=st.integers(-200, 200),
    heavy=st.booleans(),
)
def test_any_magnitude(exponents: list[tuple[int, float]], size: int, heavy: bool) -> None:
    x = np.array([m * 10.0**e for e, m in exponents])
    w = np.geomspace(1.0, 1e6, x.size) if heavy else None
    r = 10.0**size
    for s in (Ball(r), L1Ball(r), Simplex(r), Box(-r, 2.0 * r)):
        p = s.project(x, w)
        assert np.isfinite(p).all()
        assert s.contains(p, tol=1e-9 if heavy else None)
    top = np.abs(x).max()
    if top > 10.0 * r:  # far outside: the answer is on the boundary
        p = Ball(r).project(x, w)
        assert np.sqrt(np.sum((p / r) ** 2)) == pytest.approx(1.0)
        assert np.abs(L1Ball(r).project(x, w) / r).sum() == pytest.approx(1.0)
    assert (Simplex(r).project(x, w) / r).sum() == pytest.approx(1.0)


def test_extreme_answers() -> None:
    np.testing.assert_allclose(Ball(1.0).project(np.array([3e200, -4e200])), [0.6, -0.8])
    np.testing.assert_allclose(Ball(1e-200).project(np.array([3e200, 4e200])), [6e-201, 8e-201])
    np.testing.assert_allclose(Ball(1e-200).project(np.array([3e-200, 4e-200])), [6e-201, 8e-201])
    np.testing.assert_array_equal(Simplex().project(np.array([0.0, 1e200, -1e200])), [0.0, 1.0, 0.0])
    np.testing.assert_allclose(Simplex().project(np.array([1e200, 1e200, 0.0])), [0.5, 0.5, 0.0])
    np.testing.assert_allclose(Simplex().project(np.array([1e-200, -1e-200])), [0.5, 0.5])
    np.testing.assert_array_equal(L1Ball(1.0).project(np.array([0.0, -1e200])), [0.0, -1.0])
    tiny = np.array([3e-200, 4e-200])
    assert Ball(1.0).project(tiny) is tiny
    assert not Ball(1e-201).contains(tiny)


def test_points_inside_a_ball_come_back_as_they_are() -> None:
    for dtype in (np.float64, np.float32):
        x = np.array([0.3, -0.4], dtype)
        for s in (Ball(1.0), L1Ball(1.0), scaled(Ball(1.0), 1.9), as_domain(None, 2)):
            assert s.project(x) is x
            assert s.contains(x)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@every
def test_precision_is_kept(name: str, dtype: type) -> None:
    s = ALL[name]
    rng = np.random.default_rng(7)
    for scale in (0.01, 1.0, 50.0):
        x = (scale * rng.standard_normal(D)).astype(dtype)
        for w in WEIGHTS.values():
            p = s.project(x, w)
            assert p.dtype == dtype
            assert s.contains(p)
    V = rng.standard_normal((3, D)).astype(dtype)
    assert s.tangent(V).dtype == dtype


def test_integers_and_lists_become_floats() -> None:
    np.testing.assert_array_equal(Ball(5.0).project(np.array([30, 40])), [3.0, 4.0])
    assert Ball(1).contains([0, 1])
    assert not Ball(1).contains([1, 1])


# --- membership and size --------------------------------------------------------------------------


@every
def test_membership_is_tight(name: str) -> None:
    s, rng = ALL[name], np.random.default_rng(8)
    for _ in range(30):
        x = 4.0 * rng.standard_normal(D)
        p = s.project(x)
        if np.linalg.norm(x - p) > 0.1:
            assert not s.contains(p + 1e-6 * (x - p))
            assert s.contains(p + 1e-6 * (x - p), tol=1e-2)


def test_membership_respects_each_coordinate_of_a_box() -> None:
    s = Box(0.0, [1e9, 1e-6])
    assert s.contains([1e9 * (1 + 1e-15), 1e-6])
    assert not s.contains([1e9, 1.5e-6])
    assert not s.contains([np.nan, 0.0])
    assert not Box(-np.inf, np.inf).contains([np.inf])


def test_diameters() -> None:
    assert Ball(1.5, OFFSET).diameter == 3.0
    assert Box(0.0, 2.0).for_dimension(4).diameter == pytest.approx(4.0)
    assert Box([0.0, 1e200], [3e200, 5e200]).diameter == pytest.approx(5e200)
    assert Box(0.0, [1.0, np.inf]).diameter == np.inf
    assert Simplex(3.0).diameter == pytest.approx(3.0 * np.sqrt(2.0))
    assert L1Ball(2.0).diameter == 4.0


@every
def test_diameter_bounds_every_distance(name: str) -> None:
    s, rng = ALL[name], np.random.default_rng(9)
    for _ in range(200):
        assert np.linalg.norm(member(s, rng) - member(s, rng)) <= s.diameter * (1 + 1e-12)


# --- the hull and the shrunk set ------------------------------------------------------------------


@every
def test_tangent_is_the_projection_on_the_directions_of_the_hull(name: str) -> None:
    s, rng = ALL[name], np.random.default_rng(10)
    P = s.tangent(np.eye(D))
    np.testing.assert_allclose(P, P.T, atol=1e-14)
    np.testing.assert_allclose(s.tangent(P), P, atol=1e-14)
    assert np.trace(P) == pytest.approx(s.hull_dimension(D))
    np.testing.assert_allclose(s.tangent(np.ones(D)), P @ np.ones(D), atol=1e-14)  # a single vector, too
    differences = np.array([member(s, rng) - member(s, rng) for _ in range(50)])
    np.testing.assert_allclose(s.tangent(differences), differences, atol=1e-13)
    assert np.linalg.matrix_rank(differences, tol=1e-9) == s.hull_dimension(D)


def test_tangent_hands_back_its_argument_where_every_direction_is_free() -> None:
    V = np.ones((2, D))
    for name in ("ball", "box", "l1"):
        assert SETS[name].tangent(V) is V
    assert not FIXED.tangent(V)[:, 2].any()


@pytest.mark.parametrize("share", [1e-3, 0.5, 1.0])
@pytest.mark.parametrize("kind", ["number", "array"])
@every
def test_queries_around_the_shrunk_set_stay_inside(name: str, kind: str, share: float) -> None:
    s, rng = ALL[name], np.random.default_rng(11)
    reach: Any = share * min(s.inradius, 10.0)
    if kind == "array":
        reach = reach * rng.random(D)
    core = s.shrunk(reach)
    for _ in range(50):
        x = core.project(2.0 * rng.standard_normal(D)) if rng.random() < 0.5 else member(core, rng)
        assert s.contains(x)
        h = s.tangent(rng.standard_normal((1, D)))[0]
        if kind == "array" and not np.all(reach > 0):
            continue
        h = h / np.linalg.norm(h / reach)  # on the ellipsoid, in the hull
        assert s.contains(x + h, tol=1e-11)
        assert s.contains(x - h, tol=1e-11)


@every
def test_inradius_is_where_shrinking_ends(name: str) -> None:
    s = ALL[name]
    point = s.shrunk(s.inradius)
    assert point.contains(point.project(np.ones(D)))
    with pytest.raises(ValueError, match="nothing is left of"):
        s.shrunk(1.001 * s.inradius)


def test_shrinking_by_hand() -> None:
    assert Ball(2.0).shrunk(np.array([0.1, 0.5])).radius == 1.5
    assert Ball(2.0).inradius == 2.0
    assert L1Ball(2.0).for_dimension(4).shrunk(0.5).radius == pytest.approx(1.0)
    assert L1Ball(2.0).shrunk(np.array([0.3, 0.4])).radius == pytest.approx(1.5)
    assert L1Ball(2.0).for_dimension(4).inradius == 1.0
    assert Simplex().for_dimension(4).inradius == 0.25
    np.testing.assert_allclose(Simplex().shrunk(np.array([0.1, 0.2])).project(np.array([9.0, 0.0])), [0.8, 0.2])
    assert Simplex().shrunk(np.array([0.1, 0.2])).diameter == pytest.approx(0.7 * np.sqrt(2.0))
    core = Box([0.0, 1.0], [4.0, 1.0]).shrunk(1.0)
    np.testing.assert_array_equal([core.lower, core.upper], [[1.0, 1.0], [3.0, 1.0]])
    assert Box(0.0, 3.0).shrunk(1.0).upper == 2.0
    assert Box(-np.inf, np.inf).inradius == np.inf
    assert Box(1.0, 1.0).for_dimension(2).inradius == np.inf  # one point: no direction can leave it
    alone = Simplex().for_dimension(1)
    assert alone.inradius == np.inf
    assert alone.shrunk(5.0) is alone
    twice = Simplex().for_dimension(2).shrunk(0.1).shrunk(0.2)
    np.testing.assert_allclose(twice.project(np.array([9.0, 0.0])), [0.7, 0.3])
    for s in KNOWN.values():
        assert s.shrunk(0.0) is s


def test_outside_survives_everything() -> None:
    for s in (Ball(1.0, outside=True), Box(0, 1, outside=True), Simplex(outside=True), L1Ball(1.0, outside=True)):
        bound = s.for_dimension(3)
        for made in (bound, bound.shrunk(0.1), scaled(bound, 2.0), scaled(bound, [1.0, 2.0, 3.0])):
            assert made.outside
            assert made.dimension == 3
    assert not Ball(1.0).outside


# --- scaling --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("scale", [0.3, np.full(D, 0.3), np.geomspace(0.01, 7.0, D)], ids=["number", "same", "array"])
def test_scaled_projection_is_the_weighted_one(name: str, scale: Any) -> None:
    s, rng = KNOWN[name], np.random.default_rng(12)
    z_set = scaled(s, scale)
    for _ in range(20):
        z = 3.0 * rng.standard_normal(D) / scale
        expected = s.project(z * scale, np.broadcast_to(1.0 / scale**2, D))
        np.testing.assert_allclose(z_set.project(z) * scale, expected, rtol=1e-9, atol=1e-11)
        w = rng.random(D) + 0.1
        expected = s.project(z * scale, np.broadcast_to(w / scale**2, D))
        np.testing.assert_allclose(z_set.project(z, w) * scale, expected, rtol=1e-9, atol=1e-11)


def test_scaled_sizes() -> None:
    assert scaled(Ball(3.0), 2.0).diameter == 3.0
    assert scaled(Ball(3.0), [2.0, 2.0]).diameter == 3.0
    assert scaled(Box(0.0, [2.0, 12.0]), [1.0, 2.0]).diameter == pytest.approx(np.hypot(2.0, 6.0))
    assert scaled(Ball(3.0), [2.0, 4.0]).inradius == 0.75
    assert scaled(Simplex(), [1.0, 3.0]).inradius == 0.25
    assert scaled(Simplex().for_dimension(4), 2.0).inradius == 0.125
    assert scaled(Simplex(), 2.0).for_dimension(4).inradius == 0.125
    assert scaled(as_domain(None, 3), [1.0, 2.0, 3.0]).diameter == np.inf
    extreme = scaled(Ball(1.0), [1e-150, 1e150])
    assert extreme.contains(extreme.project(np.array([1e160, 1e-140])))


# --- what users hand over -------------------------------------------------------------------------


class Halfspace:
    """x_0 >= 0 near the origin, written as a user would."""

    diameter: Any = np.inf

    def project(self, x: np.ndarray) -> np.ndarray:
        x[0] = max(x[0], 0.0)  # in place, on purpose
        return x


class Cage(Halfspace):
    outside = True
    dimension = 2

    def __init__(self, radius: float = 1.0) -> None:
        self.radius, self.diameter = radius, 2.0 * radius

    def project(self, x: np.ndarray) -> np.ndarray:
        return Ball(self.radius).project(x)

    def shrunk(self, reach: float) -> Cage:
        return Cage(self.radius - np.max(reach))


def test_no_domain_is_the_whole_space() -> None:
    s, x = as_domain(None, 3), np.array([1e300, -2.0, 0.0])
    assert s.project(x) is x
    assert s.project(x, np.ones(3)) is x
    assert (s.diameter, s.inradius, s.hull_dimension(3), s.dimension) == (np.inf, np.inf, 3, 3)
    assert s.shrunk(1e9) is s
    assert s.contains(x)


def test_scipy_bounds() -> None:
    s = as_domain(Bounds(0.0, 1.0), 3)
    assert isinstance(s, Box)
    np.testing.assert_array_equal(s.project(np.array([-1.0, 0.5, 2.0])), [0.0, 0.5, 1.0])
    assert not s.outside
    assert as_domain(Bounds([0.0, 0.0], 1.0), 2).diameter == pytest.approx(np.sqrt(2.0))
    with pytest.raises(ValueError, match="domain has dimension 2, x0 has 3"):
        as_domain(Bounds([0.0, 0.0], [1.0, 1.0]), 3)


def test_a_domain_of_the_users_own() -> None:
    own: Domain = Halfspace()
    s = as_domain(own, 2)
    x = np.array([-1.0, 5.0])
    np.testing.assert_array_equal(s.project(x), [0.0, 5.0])
    np.testing.assert_array_equal(x, [-1.0, 5.0])
    assert s.project(x.astype(np.float32)).dtype == np.float32
    assert s.contains([1.0, 2.0])
    assert not s.contains(x)
    assert (s.diameter, s.outside, s.hull_dimension(2), s.dimension) == (np.inf, False, 2, 2)
    V = np.eye(2)
    assert s.tangent(V) is V
    np.testing.assert_array_equal(scaled(s, 2.0).project(x), [0.0, 5.0])
    np.testing.assert_array_equal(scaled(s, [2.0, 2.0]).project(x), [0.0, 5.0])
    cage = as_domain(Cage(), 2)
    assert cage.outside
    assert cage.inradius == 1.0
    np.testing.assert_allclose(cage.shrunk(0.25).project(np.array([3.0, 0.0])), [0.75, 0.0])
    np.testing.assert_allclose(scaled(cage, 2.0).shrunk(0.25).project(np.array([3.0, 0.0])), [0.25, 0.0])


def test_scipy_optimize_is_not_imported() -> None:
    code = "import sys, poem_cma.domains.sets; sys.exit('scipy.optimize' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_sets_are_values() -> None:
    lower = np.zeros(3)
    s = Box(lower, 1.0)
    lower[:] = 9.0
    assert s.contains([0.0, 0.5, 1.0])
    with pytest.raises(AttributeError, match="a Box cannot change"):
        s.lower = 0.0
    with pytest.raises(ValueError, match="read-only"):
        s.lower[0] = 5.0
    with pytest.raises(ValueError, match="read-only"):
        Ball(1.0, np.zeros(3)).center[0] = 5.0
    x = np.array([3.0, -1.0, 0.2])
    for made in (pickle.loads(pickle.dumps(s)), copy.deepcopy(s), copy.copy(s)):
        np.testing.assert_array_equal(made.project(x), s.project(x))
    ball = Ball(1.0).for_dimension(3)
    assert ball.for_dimension(3) is ball


def test_what_a_set_looks_like() -> None:
    assert repr(Ball(1.0, outside=True)) == "Ball(radius=1.0, center=0.0, outside=True)"
    assert repr(Box(0, 1).for_dimension(112)) == "Box(lower=0.0, upper=1.0, dimension=112)"
    assert repr(Box([0, 0.5], 1)) == "Box(lower=[0. , 0.5], upper=1.0, dimension=2)"
    assert repr(Simplex(2.0)) == "Simplex(total=2.0)"
    assert repr(Simplex().for_dimension(2).shrunk(0.25)) == "Simplex(total=1.0, dimension=2, floor=0.25)"
    assert repr(L1Ball(3)) == "L1Ball(radius=3.0)"
    assert len(repr(Ball(1.0, np.arange(1000.0)))) < 100


class Sizeless(Halfspace):
    diameter = 0.0


class Wordy(Halfspace):
    diameter = "large"


class Short(Halfspace):
    def project(self, x: np.ndarray) -> np.ndarray:
        return x[:1]


@pytest.mark.parametrize(
    ("error", "message", "attempt"),
    [
        (ValueError, "radius must be positive and finite, got -1.0", lambda: Ball(-1.0)),
        (ValueError, "radius must be positive and finite, got inf", lambda: Ball(np.inf)),
        (ValueError, "radius must be positive and finite, got nan", lambda: L1Ball(np.nan)),
        (ValueError, "total must be positive and finite, got 0.0", lambda: Simplex(0)),
        (TypeError, "radius must be a number, got 'wide'", lambda: Ball("wide")),
        (TypeError, r"radius must be a number, got \[1.0, 2.0\]", lambda: Ball([1.0, 2.0])),
        (ValueError, "center must be finite", lambda: Ball(1.0, [0.0, np.inf])),
        (ValueError, "center must not contain NaN", lambda: Ball(1.0, np.nan)),
        (
            ValueError,
            r"center must be a number or a 1-D array, got .* \(1, 2\)",
            lambda: Ball(1.0, [[0.0, 1.0]]),
        ),
        (ValueError, r"lower must be a number or a 1-D array, got .* \(0,\)", lambda: Box([], 1.0)),
        (ValueError, "upper must not contain NaN", lambda: Box(0.0, [1.0, np.nan])),
        (ValueError, "lower has dimension 2, upper has 3", lambda: Box([0, 0], [1, 1, 1])),
        (ValueError, r"lower <= upper .* coordinate 1 has \[2.0, 1.0\]", lambda: Box([0, 2], 1.0)),
        (ValueError, r"coordinate 0 has \[inf, inf\]", lambda: Box(np.inf, np.inf)),
        (ValueError, r"coordinate 0 has \[-inf, -inf\]", lambda: Box(-np.inf, -np.inf)),
        (ValueError, "domain has dimension 3, x0 has 112", lambda: as_domain(Ball(1.0, np.zeros(3)), 112)),
        (ValueError, "domain has dimension 3, x0 has 112", lambda: Box(np.zeros(3), 1).for_dimension(112)),
        (ValueError, "domain has dimension 2, x0 has 5", lambda: as_domain(Cage(), 5)),
        (
            ValueError,
            r"^Box\(lower=0.0, upper=1.0\) has no diameter without a dim",
            lambda: Box(0, 1).diameter,
        ),
        (
            ValueError,
            "Simplex.* has no inradius without a dimension: call for_dim",
            lambda: Simplex().inradius,
        ),
        (ValueError, "L1Ball.* has no inradius without a dimension", lambda: L1Ball(1.0).shrunk(0.1)),
        (
            ValueError,
            r"Ball.* needs a 1-D array .* got shape \(1, 2\)",
            lambda: Ball(1).project(np.ones((1, 2))),
        ),
        (ValueError, r"got shape \(1,\)", lambda: Box([0, 0], 1).project(np.ones(1))),
        (
            ValueError,
            "weight must be an array of 2 positive",
            lambda: Ball(1).project(np.ones(2), np.ones(3)),
        ),
        (
            ValueError,
            "weight must be an array of 2 positive",
            lambda: Ball(1).project(np.ones(2), np.zeros(2)),
        ),
        (ValueError, "reach must be finite and not negative, got -0.1", lambda: Ball(1.0).shrunk(-0.1)),
        (ValueError, "reach must not contain NaN", lambda: Ball(1.0).shrunk(np.nan)),
        (ValueError, "domain has dimension 2, reach has 3", lambda: Box([0, 0], 1).shrunk(np.full(3, 0.1))),
        (ValueError, r"nothing is left of Ball\(radius=1.0, .* by 2.0", lambda: Ball(1.0).shrunk(2.0)),
        (ValueError, "scale must be positive and finite, got 0.0", lambda: scaled(Ball(1.0), 0.0)),
        (ValueError, "scale must be positive and finite", lambda: scaled(Ball(1.0), [1.0, np.inf])),
        (ValueError, "domain has dimension 2, scale has 3", lambda: scaled(Box([0, 0], 1), np.ones(3))),
        (ValueError, "needs a built-in domain", lambda: scaled(as_domain(Halfspace(), 2), [1.0, 2.0])),
        (ValueError, "needs a built-in", lambda: as_domain(Halfspace(), 2).project(np.ones(2), np.ones(2))),
        (ValueError, r"has no method shrunk\(reach\)", lambda: as_domain(Halfspace(), 2).shrunk(0.1)),
        (ValueError, "diameter of a domain must be positive, got 0.0", lambda: as_domain(Sizeless(), 2)),
        (TypeError, "diameter of a domain must be a number, got 'large'", lambda: as_domain(Wordy(), 2)),
        (
            ValueError,
            r"project returned .* \(1,\), expected \(2,\)",
            lambda: as_domain(Short(), 2).project(np.ones(2)),
        ),
        (TypeError, r"None, a Ball, .*Bounds, .* project\(x\) and diameter, got 3", lambda: as_domain(3, 2)),
    ],
)
def test_errors_say_what_was_wrong(error: type[Exception], message: str, attempt: Callable[[], object]) -> None:
    with pytest.raises(error, match=message):
        attempt()


def test_what_a_box_has_worked_out_is_not_handed_on() -> None:
    """Neither to a smaller box, which may hold a coordinate fixed, nor to what is printed."""
    box = Box([0.0, 0.0], [1.0, 4.0])
    printed = repr(box)
    V = np.ones((3, 2))
    assert box.tangent(V) is V
    smaller = box.shrunk(0.5)  # the first coordinate has no room left
    assert smaller.hull_dimension(2) == 1
    np.testing.assert_array_equal(smaller.tangent(V), V * [0.0, 1.0])
    assert box.hull_dimension(2) == 2
    assert repr(box) == printed
