"""What must not change the run, or must change it in a known way."""

from __future__ import annotations

import numpy as np
import pytest
from problems import hinge

import poem_cma as pc
from poem_cma.run.algorithm import Method

P = hinge(d=6)
METHODS = [
    pc.methods.poem(),
    pc.methods.poem_cma(samples=20),
    pc.methods.poem_cma(samples=4, whitening="exact"),
]
SCALED = [*METHODS, pc.methods.auto()]


def run(fun, x0=None, domain=None, seed=3, method=METHODS[0], budget=400, **settings) -> pc.Result:
    return pc.minimize(
        fun,
        np.zeros(P.d) if x0 is None else x0,
        sample=P.sample,
        domain=pc.Ball(1.0) if domain is None else domain,
        method=method,
        budget=budget,
        seed=seed,
        **settings,
    )


@pytest.mark.parametrize("exponent", [-997, -40, 3, 500, 990])
@pytest.mark.parametrize("method", SCALED, ids=repr)
def test_scaling_F_by_a_power_of_two_changes_no_bit(method: Method, exponent: int) -> None:
    c = 2.0**exponent
    one, scaled = run(P.fun, method=method), run(lambda x, i: c * P.fun(x, i), method=method)
    for name in ("x", "x_last", "x_average"):
        assert getattr(one, name).tobytes() == getattr(scaled, name).tobytes()
    assert scaled.fun == c * one.fun
    assert one.history["smoothing"].tobytes() == scaled.history["smoothing"].tobytes()


@pytest.mark.parametrize("exponent", [-900, 900])
@pytest.mark.parametrize("name", ["tpbco", "tpge", "rsnso"])
def test_scaling_F_and_L_together_changes_no_bit(name: str, exponent: int) -> None:
    c = 2.0**exponent
    make = getattr(pc.methods, name)
    one = run(P.fun, method=make(lipschitz=P.lipschitz))
    scaled = run(lambda x, i: c * P.fun(x, i), method=make(lipschitz=c * P.lipschitz))
    assert one.x.tobytes() == scaled.x.tobytes()


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_adding_a_constant_to_F_changes_nothing_but_rounding(method: Method) -> None:
    one, moved = run(P.fun, method=method), run(lambda x, i: P.fun(x, i) + 4.0, method=method)
    np.testing.assert_allclose(one.x, moved.x, rtol=1e-6, atol=1e-9)
    assert moved.fun == pytest.approx(one.fun + 4.0)


@pytest.mark.parametrize("factor", [1e-6, 0.3, 1e5])
@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_rescaling_and_translating_space_rescales_and_translates_the_iterates(method: Method, factor: float) -> None:
    shift = factor * np.linspace(-1.0, 2.0, P.d)
    one = run(P.fun, method=method)
    moved = run(lambda x, i: P.fun((x - shift) / factor, i), shift, pc.Ball(factor, center=shift), method=method)
    np.testing.assert_allclose((moved.x_last - shift) / factor, one.x_last, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose((moved.x - shift) / factor, one.x, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("scale", [7.0, np.geomspace(1e-3, 1e3, P.d)], ids=["number", "array"])
def test_scale_searches_in_x_over_scale(scale: float | np.ndarray) -> None:
    box = pc.Box(np.full(P.d, -0.5) * scale, np.full(P.d, 0.7) * scale)
    one = run(P.fun, domain=pc.Box(np.full(P.d, -0.5), np.full(P.d, 0.7)))
    scaled = run(lambda x, i: P.fun(x / scale, i), domain=box, scale=scale)
    np.testing.assert_allclose(scaled.x / scale, one.x, rtol=1e-9, atol=1e-12)


def test_rotating_the_problem_rotates_the_law_of_poem() -> None:
    """The mean of R'x over seeds on the rotated problem against the mean of x on the plain one, by coordinate."""
    R = np.linalg.qr(np.random.default_rng(11).normal(size=(P.d, P.d)))[0]
    plain = np.array([run(P.fun, seed=s, budget=120, evaluate=0).x_last for s in range(150)])
    turned = np.array(
        [run(lambda x, i: P.fun(R.T @ x, i), seed=1000 + s, budget=120, evaluate=0).x_last @ R for s in range(150)]
    )
    for statistic in (lambda X: X, lambda X: X**2):
        a, b = statistic(plain), statistic(turned)
        z = (a.mean(axis=0) - b.mean(axis=0)) / np.sqrt(a.var(axis=0) / len(a) + b.var(axis=0) / len(b))
        assert np.abs(z).max() < 4.0
    # The test can tell: without turning back the means differ.
    back = turned @ R.T
    z = (plain.mean(axis=0) - back.mean(axis=0)) / np.sqrt((plain.var(axis=0) + back.var(axis=0)) / len(plain))
    assert np.abs(z).max() > 6.0


def test_the_same_seed_gives_the_same_bytes_and_another_seed_does_not() -> None:
    a, b, c = run(P.fun, seed=1), run(P.fun, seed=1), run(P.fun, seed=2)
    assert a.x.tobytes() == b.x.tobytes()
    assert a.fun == b.fun
    assert a.x.tobytes() != c.x.tobytes()


def test_global_random_state_is_neither_read_nor_changed() -> None:
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    a = run(P.fun)
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002
    np.random.seed(1)  # noqa: NPY002
    assert run(P.fun).x.tobytes() == a.x.tobytes()
