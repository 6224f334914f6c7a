"""Parameters as nests of arrays and numbers: the vector's run behind a change of form, the same to the last bit."""

from __future__ import annotations

import dataclasses
import pathlib
from collections import OrderedDict
from typing import Any, NamedTuple

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import poem_cma as pc
from poem_cma.parameters.nest import Structure, structure_of


class Line(NamedTuple):
    slope: Any
    offset: Any


@dataclasses.dataclass
class Net:
    w: Any
    inner: Any = 0.0


numbers = st.floats(-1e6, 1e6)
arrays = hnp.arrays(np.float64, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3), elements=numbers)


def containers(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.dictionaries(st.one_of(st.text(max_size=3), st.integers(0, 9)), parts, max_size=3),
        st.lists(parts, max_size=3),
        st.lists(parts, max_size=3).map(tuple),
        st.builds(Line, parts, parts),
        st.builds(Net, parts, parts),
    )


nests = st.recursive(st.one_of(numbers, arrays), containers, max_leaves=8)


def leaves(value: Any) -> list[float]:
    """Every number in a nest, in order; written without the library."""
    if isinstance(value, np.ndarray):
        return value.ravel().tolist()
    if isinstance(value, dict):
        return [n for part in value.values() for n in leaves(part)]
    if dataclasses.is_dataclass(value):
        return [n for f in dataclasses.fields(value) for n in leaves(getattr(value, f.name))]
    if isinstance(value, list | tuple):
        return [n for part in value for n in leaves(part)]
    return [value]


def same(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if dataclasses.is_dataclass(a):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(a))
    return bool(a == b)


@settings(max_examples=300, deadline=None)
@given(nests)
def test_there_and_back(nest: Any) -> None:
    form = Structure(nest)
    flat = form.flatten(nest)
    assert flat.tolist() == leaves(nest)
    assert form.size == len(flat)
    assert same(form.unflatten(flat), nest)


@settings(max_examples=200, deadline=None)
@given(nests, st.integers(0, 4))
def test_rows_are_nests_side_by_side(nest: Any, m: int) -> None:
    form = Structure(nest)
    X = np.arange(m * form.size, dtype=float).reshape(m, form.size)
    together = form.unflatten_rows(X)
    flat = Structure(together)
    assert sorted(flat.flatten(together).tolist()) == X.ravel().tolist()
    for i in range(m):
        row = form.flatten(form.unflatten(X[i])).tolist()
        assert row == X[i].tolist()
        assert leaves(_row(together, i)) == row


def _row(value: Any, i: int) -> Any:
    if isinstance(value, np.ndarray):
        return value[i]
    if isinstance(value, dict):
        return {k: _row(v, i) for k, v in value.items()}
    if dataclasses.is_dataclass(value):
        return [_row(getattr(value, f.name), i) for f in dataclasses.fields(value)]
    return [_row(v, i) for v in value]


START = {"w": np.full((3, 2), 0.5), "line": Line(np.zeros(2), 1.0), "rest": [Net(np.ones(1), 2), (0.25,)]}
TARGET = np.linspace(-1.0, 1.0, 12)


def flat_loss(x: np.ndarray, xi: float) -> float:
    return float(np.abs(x - TARGET).sum() + xi * x[3])


def loss(p: dict[str, Any], xi: float) -> float:
    assert p["w"].shape == (3, 2)
    assert isinstance(p["line"], Line)
    assert isinstance(p["rest"][1][0], float)
    return flat_loss(np.array(leaves(p)), xi)


def draw(rng: np.random.Generator) -> float:
    return float(rng.normal())


RUN: dict[str, Any] = {"sample": draw, "budget": 600, "seed": 4}
FLAT = np.array(leaves(START), dtype=float)


def equal(nested: pc.Result, flat: pc.Result) -> None:
    for name in ("x", "x_last", "x_average"):
        assert np.array(leaves(getattr(nested, name))).tobytes() == getattr(flat, name).tobytes()
    for name in ("fun", "fun_stderr", "nfev", "nit", "failures", "message", "method"):
        assert repr(getattr(nested, name)) == repr(getattr(flat, name))
    assert isinstance(nested.x["line"], Line)
    assert isinstance(nested.x["rest"][0], Net)


@pytest.mark.parametrize("method", ["auto", "poem", "poem-cma"])
def test_the_same_bytes_as_the_flat_run(method: str) -> None:
    equal(pc.minimize(loss, START, method=method, **RUN), pc.minimize(flat_loss, FLAT, method=method, **RUN))


@settings(max_examples=15, deadline=None)
@given(nests.filter(lambda nest: structure_of(nest) is not None and len(leaves(nest)) > 0))
def test_any_nest_runs_as_its_vector_does(nest: Any) -> None:
    def bowl(x: np.ndarray) -> float:
        return float(np.abs(x).sum())

    nested = pc.minimize(lambda p: bowl(np.array(leaves(p))), nest, budget=60, seed=1)
    flat = pc.minimize(bowl, np.array(leaves(nest)), budget=60, seed=1)
    assert np.array(leaves(nested.x)).tobytes() == flat.x.tobytes()
    assert same(Structure(nested.x).unflatten(flat.x), nested.x)


@pytest.mark.parametrize("vectorized", [True, "rows"])
def test_vectorized_leaves_have_a_first_axis_more(vectorized: Any) -> None:
    def many(p: dict[str, Any], xi: Any) -> Any:
        m = len(p["line"].offset)
        assert p["w"].shape == (m, 3, 2)
        assert p["rest"][1][0].shape == (m,)
        each = [_row(p, i) for i in range(m)]
        return [flat_loss(np.array(leaves(one)), np.broadcast_to(xi, m)[i]) for i, one in enumerate(each)]

    equal(pc.minimize(many, START, vectorized=vectorized, **RUN), pc.minimize(flat_loss, FLAT, **RUN))
    for run, seed in zip(pc.replicate(many, START, vectorized=vectorized, seeds=(4, 5), budget=200, sample=draw),
                         (4, 5), strict=True):  # fmt: skip
        equal(run, pc.minimize(flat_loss, FLAT, sample=draw, budget=200, seed=seed))


def test_workers_and_a_store_that_goes_on(tmp_path: pathlib.Path) -> None:
    """The same interruptions, with and without a structure."""
    seen: list[Any] = []

    def stop(intermediate_result: pc.Result) -> None:
        seen.append(intermediate_result.x)
        if len(seen) % 5 == 0:
            raise StopIteration

    ended: list[pc.Result] = []
    for fun, x0, store in ((loss, START, tmp_path / "nested.db"), (flat_loss, FLAT, tmp_path / "flat.db")):
        pc.minimize(fun, x0, store=store, callback=stop, **RUN)
        pc.minimize(fun, x0, store=store, workers=2, **RUN)
        ended.append(pc.minimize(fun, x0, store=store, **RUN))  # finished: nothing is called
    equal(*ended)
    assert [np.array(leaves(x)).tolist() for x in seen[:5]] == [x.tolist() for x in seen[5:]]
    equal(pc.minimize(loss, START, workers=2, **RUN), pc.minimize(flat_loss, FLAT, **RUN))


def test_a_callback_of_a_point_gets_a_nest() -> None:
    seen: list[Any] = []
    pc.minimize(loss, START, callback=lambda p: seen.append(p["line"].slope.shape), **RUN)
    assert set(seen) == {(2,)}


def test_dimension_tools() -> None:
    form = Structure(START)
    for tool in (pc.effective_dimension, pc.gradient_spectrum):
        nested, flat = tool(loss, START, sample=draw, seed=0), tool(flat_loss, FLAT, sample=draw, seed=0)
        assert nested.vectors.tobytes() == flat.vectors.tobytes()
        assert nested.vectors.shape[0] == form.size


def test_scale_and_domain_in_the_form() -> None:
    start = {"w": np.zeros((2, 2)), "inner": {"p": np.full(3, 1 / 3), "free": 0.0}, "b": 5.0}
    scale = {"w": np.array([[1.0, 2.0], [3.0, 4.0]]), "inner": 0.5}
    domain = {"w": pc.Ball(1.0), "inner": {"p": pc.Simplex(), "free": None}, "b": pc.Box(0.0, 2.0)}
    form = Structure(start)
    np.testing.assert_array_equal(form.scale(scale), [1, 2, 3, 4, 0.5, 0.5, 0.5, 0.5, 1])
    inner = form.domain(domain)
    x = inner.project(np.array([3.0, 0, 4, 0, 2, 0, 0, -7, 9]))
    np.testing.assert_allclose(x, [0.6, 0, 0.8, 0, 1, 0, 0, -7, 2])
    boxes = form.domain({"w": pc.Box(-1.0, 1.0), "b": pc.Box(0.0, 2.0)})
    assert isinstance(boxes, pc.Box)
    assert not boxes.outside
    np.testing.assert_array_equal(boxes.upper, [1, 1, 1, 1, np.inf, np.inf, np.inf, np.inf, 2])
    assert form.domain({"w": None}) is None

    def far(p: Any) -> float:
        return float(np.abs(p["w"] - 3).sum() + np.abs(p["inner"]["p"] - [1, 0, 0]).sum() + abs(p["b"] - 3))

    with pytest.warns(UserWarning, match="outside the domain"):
        x = pc.minimize(far, start, domain=domain, scale=scale, budget=3000, seed=0).x
    assert np.linalg.norm(x["w"]) <= 1 + 1e-9
    assert x["b"] == pytest.approx(2.0, abs=0.01)
    np.testing.assert_allclose(x["w"], np.full((2, 2), 0.5), atol=0.1)
    np.testing.assert_allclose(x["inner"]["p"], [1, 0, 0], atol=0.02)


def test_a_product_keeps_every_query_inside() -> None:
    start = {"p": np.full(4, 0.25), "w": np.zeros(3)}
    seen: list[Any] = []

    def watch(p: Any) -> float:
        seen.append(p)
        return float(p["p"] @ [3.0, 1.0, 2.0, 5.0] + np.abs(p["w"] - 1.0).sum())

    pc.minimize(watch, start, domain={"p": pc.Simplex(), "w": pc.Ball(0.5)}, budget=500, seed=0)
    assert min(p["p"].min() for p in seen) >= -1e-12
    assert max(abs(p["p"].sum() - 1.0) for p in seen) < 1e-9
    assert max(np.linalg.norm(p["w"]) for p in seen) <= 0.5 + 1e-9


@settings(max_examples=100, deadline=None)
@given(hnp.arrays(float, 7, elements=st.floats(-10, 10)), hnp.arrays(float, 7, elements=st.floats(0.1, 10)))
def test_a_product_projects_part_by_part(x: np.ndarray, weight: np.ndarray) -> None:
    form = Structure([np.zeros(3), np.zeros(2), np.zeros(2)])
    parts = [pc.Simplex(), pc.Ball(1.0), pc.L1Ball(0.5)]
    whole = form.domain(parts)
    for w in (None, weight):
        each = [
            domain.for_dimension(b - a).project(x[a:b], None if w is None else w[a:b])
            for domain, a, b in zip(parts, (0, 3, 5), (3, 5, 7), strict=True)
        ]
        np.testing.assert_allclose(whole.project(x, w), np.concatenate(each), atol=1e-12)
    assert whole.contains(whole.project(x))
    assert whole.diameter == pytest.approx(np.sqrt(2.0 + 4.0 + 1.0))
    assert whole.hull_dimension(7) == 6


def test_single_precision_stays_single() -> None:
    start = {"w": np.zeros(3, np.float32), "b": np.ones((1, 1), np.float32)}
    result = pc.minimize(lambda p: float(np.abs(p["w"] - p["b"]).sum()), start, budget=200, seed=0)
    assert result.x["w"].dtype == np.float32
    assert Structure({"w": start["w"], "b": 1.0}).flatten({"w": start["w"], "b": 1.0}).dtype == np.float64


def test_mappings_come_back_as_dictionaries() -> None:
    x = pc.minimize(lambda p: abs(p["a"] - 1.0), OrderedDict(a=np.float64(0.0)), budget=100, seed=0).x
    assert type(x) is dict
    assert type(x["a"]) is float


def test_vectors_are_no_structures() -> None:
    for plain in ([0.0, 1.0], (1, 2), np.zeros(3), 1.5, [np.float64(1.0), 2], [np.array(1.0), 2.0], [[1.0], [2.0]], []):
        assert structure_of(plain) is None


@pytest.mark.parametrize(
    ("x0", "message"),
    [
        ({"w": np.zeros(2), "kind": "relu"}, r"x0\['kind'\] must be an array or a number, not 'relu'"),
        ({"w": True}, r"x0\['w'\] must be an array or a number, not True"),
        ({"a": [1.0, {"b": np.array([0.0, np.nan])}]}, r"x0\['a'\]\[1\]\['b'\] holds nan"),
        (Net(None), r"x0.w must be an array or a number"),
        ({}, "x0 is empty"),
        ({"w": np.zeros(0)}, "x0 is empty"),
    ],
)
def test_what_cannot_be_searched_is_named(x0: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        pc.minimize(lambda p: 0.0, x0, budget=20)


def test_other_mistakes_are_named() -> None:
    start = {"w": np.zeros((2, 2)), "b": 0.0}
    run = {"budget": 20, "seed": 0}
    with pytest.raises(ValueError, match=r"x0 has 'w', 'b', but no 'v'"):
        pc.minimize(lambda p: 0.0, start, domain={"v": pc.Ball(1.0)}, **run)
    with pytest.raises(ValueError, match=r"the scale of x0\['w'\] must be a number or have shape \(2, 2\), not \(4,\)"):
        pc.minimize(lambda p: 0.0, start, scale={"w": np.ones(4)}, **run)
    with pytest.raises(TypeError, match=r"turn it into one with poem_cma.parameters.Structure"):
        pc.Optimizer(start)
    with pytest.raises(ValueError, match=r"x0\['w'\] must have shape \(2, 2\), not \(3,\)"):
        Structure(start).flatten({"w": np.zeros(3), "b": 0.0})
    with pytest.raises(ValueError, match="x0 must be a dict of 'w', 'b'"):
        Structure(start).flatten({"w": np.zeros((2, 2))})
    with pytest.raises(TypeError, match=r"called as fun\(x\), but it is .*\(p, xi\)"):
        pc.minimize(lambda p, xi: 0.0, start, **run)


def test_an_error_carries_nests() -> None:
    def fails(p: Any) -> float:
        if p["b"] != 0.0:
            raise ZeroDivisionError
        return 1.0

    with pytest.raises(pc.EvaluationError) as caught:
        pc.minimize(fails, {"w": np.zeros((2, 2)), "b": 0.0}, budget=50, seed=0, on_failure="raise")
    assert caught.value.x["w"].shape == (2, 2)
    assert caught.value.result.x["w"].shape == (2, 2)


def test_ask_and_tell_with_a_structure_in_hand() -> None:
    form = Structure(START)
    opt = pc.Optimizer(form.flatten(START), method="poem", budget=400, seed=4)
    while (probe := opt.ask()) is not None:
        opt.tell(probe, [loss(form.unflatten(x), 0.0) for x in probe.points])
    flat = pc.minimize(lambda x: flat_loss(x, 0.0), FLAT, method="poem", budget=400, seed=4, evaluate=0)
    assert form.flatten(form.unflatten(opt.result().x)).tobytes() == flat.x.tobytes()
