"""Runs of `auto` that are advanced together give, bit for bit, what each gives alone."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from test_replicate import assert_same

import poem_cma as pc
from poem_cma.auto.together import AutoTogether, can_join
from poem_cma.history import History

D, N = 48, 400
RNG = np.random.default_rng(1)
A = RNG.normal(size=(N, D)) * np.array([1.0] * 8 + [0.1] * (D - 8))
Y = np.sign(A @ RNG.normal(size=D))


def draw(rng: np.random.Generator) -> int:
    return int(rng.integers(N))


def hinge(X: np.ndarray, i: Any) -> np.ndarray:
    """Often flat. The value of a row is the same in whatever company."""
    return np.maximum(0.0, 0.2 - Y[i] * (A[i] * X).sum(axis=-1))


def absolute(X: np.ndarray, i: Any) -> np.ndarray:
    return np.abs(Y[i] - (A[i] * X).sum(axis=-1))


def bowl(X: np.ndarray) -> np.ndarray:
    return np.abs(X - 0.02).sum(axis=-1) ** 2


FUNCTIONS: dict[str, tuple[Any, Any]] = {"hinge": (hinge, draw), "absolute": (absolute, draw), "bowl": (bowl, None)}


class Joined:
    """How many steps were taken together, over how many calls of `advance`, and what was joined."""

    def __init__(self) -> None:
        self.steps, self.groups, self.uneven, self.unequal = 0, 0, False, False


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> Joined:
    seen, advance = Joined(), AutoTogether.advance

    def noting(self: AutoTogether, evaluate: Any) -> None:
        opts = self._opts
        before = sum(opt.nit for opt in opts)
        seen.uneven |= self._joined.metric.ndim > 1
        seen.unequal |= len({opt.nfev for opt in opts}) > 1
        advance(self, evaluate)
        seen.steps += sum(opt.nit for opt in opts) - before
        seen.groups += 1

    monkeypatch.setattr(AutoTogether, "advance", noting)
    return seen


def compare(fun: Any, seeds: Any = range(4), **options: Any) -> list[pc.Result]:
    x0 = options.pop("x0", np.full(D, 0.01))
    options = {"vectorized": "rows", "budget": 1500, "evaluate": 0} | options
    results = pc.replicate(fun, x0, seeds=seeds, **options)
    for seed, result in zip(seeds, results, strict=True):
        assert_same(result, pc.minimize(fun, x0, seed=seed, **options))
    return results


DOMAINS = [
    None, pc.Ball(0.4), pc.Ball(0.5, center=0.02), pc.Box(-0.2, 0.4), pc.Simplex(),
    pc.Box([0.0] * 6 + [-1.0] * (D - 6), [0.0] * 6 + [1.0] * (D - 6)),
]  # fmt: skip


@pytest.mark.parametrize("domain", DOMAINS, ids=["none", "ball", "ball apart", "box", "simplex", "box with fixed ones"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_same_bits_as_one_after_another(name: str, domain: Any, joined: Joined) -> None:
    fun, sample = FUNCTIONS[name]
    x0 = np.full(D, 1.0 / D) if isinstance(domain, pc.Simplex) else np.full(D, 0.01)
    if isinstance(domain, pc.Box) and np.any(domain.lower == domain.upper):
        x0[:6] = 0.0
    results = compare(fun, x0=x0, sample=sample, domain=domain)
    if name == "absolute":  # elsewhere some runs prefer walks
        assert joined.steps > 0.7 * sum(result.nit for result in results)


@pytest.mark.parametrize("vectorized", [False, True, "rows"])
@pytest.mark.parametrize("sample", [None, draw])
def test_however_the_function_is_called(vectorized: Any, sample: Any, joined: Joined) -> None:
    compare(
        bowl if sample is None else absolute, sample=sample, vectorized=vectorized, budget=700,
        method=pc.methods.auto(newton=False),
    )  # fmt: skip
    assert joined.steps > 0


def test_runs_that_have_made_unequally_many_calls(joined: Joined) -> None:
    """Flat samples make them drift apart."""
    compare(hinge, range(6), sample=draw, domain=pc.Ball(0.4))
    assert joined.unequal


def test_every_variable_in_its_own_unit(joined: Joined) -> None:
    """Walks among the steps show how slopes differ, and then there is a metric."""
    scales = np.logspace(0, 3, D)

    def stretched(X: np.ndarray, i: Any) -> np.ndarray:
        return np.abs(Y[i] - (A[i] * (scales * X)).sum(axis=-1)) + 0.1 * np.abs(scales * X - 1.0).sum(axis=-1)

    compare(stretched, range(3), sample=draw, budget=9000, domain=pc.Box(-1.0, 1.0))
    assert joined.uneven


@pytest.mark.parametrize("how", ["nan", "raises", "huge"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_failures_are_each_runs_own(how: str, name: str, joined: Joined) -> None:
    fun, sample = FUNCTIONS[name]

    def unreliable(X: np.ndarray, *xi: Any) -> np.ndarray:
        X = np.atleast_2d(X)
        values = np.atleast_1d(fun(X, *xi))
        bad = ((np.abs(X[:, 0] * 1e6) + 0.5) % 1.0) < 0.01  # not so at x_0
        if how == "raises" and bad.any():
            raise RuntimeError("no")
        return np.where(bad, np.nan if how == "nan" else 1e200, values)

    results = compare(unreliable, sample=sample, budget=1200, method=pc.methods.auto(newton=False))
    assert joined.groups > (how != "huge")  # failures have dissolved one
    assert all(result.failures > 0 for result in results) or how == "huge"


def test_history_is_thinned_alike(monkeypatch: pytest.MonkeyPatch, joined: Joined) -> None:
    monkeypatch.setattr("poem_cma.optimizer.History", partial(History, 60))
    compare(bowl)
    results = compare(hinge, range(6), sample=draw, domain=pc.Ball(0.4))
    assert joined.unequal
    assert max(len(result.history["nfev"]) for result in results) <= 61


def test_starting_points_and_whether_a_run_can_be_joined() -> None:
    starts = np.array([[0.0] * D, [0.3] * D])
    options: dict[str, Any] = {"sample": draw, "budget": 900, "vectorized": "rows", "evaluate": 0}
    results = pc.replicate(absolute, starts, seeds=[5, 6], **options)
    for result, (x0, seed) in zip(results, [(x0, seed) for x0 in starts for seed in (5, 6)], strict=True):
        assert_same(result, pc.minimize(absolute, x0, seed=seed, **options))
    assert not can_join(pc.Optimizer(np.zeros(D), budget=900, seed=0))  # nothing is known yet
    assert not can_join(pc.Optimizer(np.zeros(D), budget=900, seed=0, method="poem"))
