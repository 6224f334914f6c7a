"""This library in Nevergrad's registry: parametrisations, workers, budgets, candidates of others."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from inside import state_of

import poem_cma as pc

ng = pytest.importorskip("nevergrad", reason="Nevergrad is not installed: pip install 'poem-cma[nevergrad]'")
from poem_cma.integrations.nevergrad import ConfiguredPoem  # noqa: E402

NAMES = ["PoemAuto", "POEM", "PoemCMA"]


def make(name: str, parametrization: Any, seed: int = 0, **settings: Any) -> Any:
    optimizer = ng.optimizers.registry[name](parametrization=parametrization, **settings)
    optimizer.parametrization.random_state.seed(seed)
    return optimizer


def distance(x: np.ndarray) -> float:
    return float(np.abs(x - 0.7).sum())


@pytest.mark.parametrize("name", NAMES)
def test_minimize_spends_the_budget(name: str) -> None:
    calls: list[Any] = []

    def counted(x: np.ndarray) -> float:
        calls.append(x)
        return distance(x)

    best = make(name, ng.p.Array(shape=(4,)), budget=500).minimize(counted)
    assert len(calls) == 500
    assert distance(best.value) < (1.7 if name == "PoemCMA" else 0.2)  # its filter drops directions; 2.8 at the start
    assert name in ng.optimizers.registry


def test_the_calls_are_those_of_a_plain_run() -> None:
    optimizer = make("POEM", 3, budget=100)
    optimizer.minimize(distance)
    seed = int(np.random.RandomState(0).randint(2**31))
    plain = pc.minimize(distance, np.zeros(3), method="poem", budget=100, seed=seed, evaluate=0)
    np.testing.assert_array_equal(optimizer.recommend().value, plain.x)


def test_an_instrumentation_with_bounds() -> None:
    parametrization = ng.p.Instrumentation(
        ng.p.Scalar(lower=0.0, upper=4.0), w=ng.p.Array(init=np.full((2, 2), 5.0)).set_bounds(0.0, 10.0),
        rate=ng.p.Log(lower=1e-4, upper=1.0), kind="fixed",
    )  # fmt: skip
    seen: list[Any] = []

    def fun(a: float, w: np.ndarray, rate: float, kind: str) -> float:
        seen.append((a, w.min(), w.max(), rate))
        assert kind == "fixed"
        return float(abs(a - 3.5) + np.abs(w - 2.0).sum() + abs(np.log10(rate) + 3.0))

    optimizer = make("PoemAuto", parametrization, budget=1500)
    best = optimizer.minimize(fun)
    assert all(0 <= a <= 4 and low >= 0 and high <= 10 and 1e-4 <= rate <= 1 for a, low, high, rate in seen)
    assert best.args[0] == pytest.approx(3.5, abs=0.3)
    np.testing.assert_allclose(best.kwargs["w"], 2.0, atol=0.5)
    assert np.log10(best.kwargs["rate"]) == pytest.approx(-3.0, abs=0.5)


@pytest.mark.filterwarnings("ignore:Ignoring since timer was stopped:UserWarning")  # Nevergrad's, when jobs are short
@pytest.mark.parametrize("batch_mode", [True, False])
def test_workers(batch_mode: bool) -> None:
    optimizer = make("PoemAuto", ng.p.Array(shape=(5,)), budget=600, num_workers=6)
    with ThreadPoolExecutor(6) as executor:
        best = optimizer.minimize(distance, executor=executor, batch_mode=batch_mode)
    assert optimizer.num_ask == optimizer.num_tell == 600
    assert distance(best.value) < 0.7


def test_integers_are_integers() -> None:
    """From the middle of a range, with real variables beside them, an array, and the places of an ordered choice."""
    parametrization = ng.p.Instrumentation(
        ng.p.Array(shape=(2,)).set_bounds(-3, 3),
        n=ng.p.Scalar(lower=1, upper=20).set_integer_casting(),
        m=ng.p.Array(init=[3.0, 40.0]).set_integer_casting(),
        place=ng.p.TransitionChoice(["a", "b", "c", "d"]),
        rate=ng.p.Log(lower=1e-4, upper=1.0),
    )

    def fun(x: Any, n: int, m: Any, place: str, rate: float) -> float:
        assert 1 <= n <= 20
        off = abs(n - 17) + abs(m - [7, 33]).sum() + 3.0 * (place != "d") + abs(np.log10(rate) + 1.0)
        return float(off + np.abs(x - 1.0).sum())

    optimizer = ng.optimizers.registry["PoemAuto"](parametrization=parametrization, budget=1500)
    optimizer.parametrization.random_state.seed(0)
    best = optimizer.minimize(fun).kwargs
    assert best["n"] == 17
    assert best["m"].tolist() == [7, 33]
    assert best["place"] == "d"
    assert best["rate"] == pytest.approx(0.1, rel=0.2)


def test_tells_in_any_order() -> None:
    results = []
    for order in (1, -1):
        optimizer = make("POEM", 4, budget=400, num_workers=8)
        for _ in range(50):
            asked = [optimizer.ask() for _ in range(8)]
            for candidate in asked[::order]:
                optimizer.tell(candidate, distance(candidate.value))
        results.append(optimizer.recommend().value)
    np.testing.assert_array_equal(*results)


def test_more_workers_than_a_step_has_points() -> None:
    optimizer = ConfiguredPoem(method="poem", batch=1)(parametrization=2, budget=100, num_workers=5)
    optimizer.parametrization.random_state.seed(0)
    for _ in range(20):
        asked = [optimizer.ask() for _ in range(5)]
        assert len({candidate.uid for candidate in asked}) == 5
        assert len({tuple(candidate.value) for candidate in asked}) == 2
        for candidate in asked:
            optimizer.tell(candidate, distance(candidate.value))
    assert optimizer._points.opt.nfev == 40


def test_the_best_candidate_told_before_the_first_ask_is_the_start() -> None:
    optimizer = make("POEM", ng.p.Array(shape=(2,)), budget=100)
    for value in ([5.0, 5.0], [3.0, 3.0], [9.0, 9.0]):
        candidate = optimizer.parametrization.spawn_child(new_value=np.array(value))
        optimizer.tell(candidate, distance(np.array(value)))
    assert optimizer.num_tell_not_asked == 3
    first = optimizer.ask()
    np.testing.assert_allclose(first.value, [3.0, 3.0], atol=0.2)
    with pytest.raises(ng.errors.TellNotAskedNotSupportedError, match="before its first ask"):
        optimizer.tell(optimizer.parametrization.spawn_child(new_value=np.zeros(2)), 1.0)


def test_a_suggestion_before_the_first_ask() -> None:
    optimizer = make("POEM", ng.p.Array(shape=(2,)), budget=100)
    optimizer.suggest(np.array([0.5, 0.9]))
    candidate = optimizer.ask()
    np.testing.assert_array_equal(candidate.value, [0.5, 0.9])
    optimizer.tell(candidate, distance(candidate.value))
    np.testing.assert_allclose(optimizer.ask().value, [0.5, 0.9], atol=0.2)


def test_losses_that_are_no_numbers_are_failures() -> None:
    optimizer = make("POEM", 2, budget=300)
    for n in range(300):
        candidate = optimizer.ask()
        loss = np.nan if n % 10 == 0 else distance(candidate.value)
        if n == 0:
            with pytest.warns(ng.errors.LossTooLargeWarning):
                optimizer.tell(candidate, loss)
        else:
            optimizer.tell(candidate, loss)
    assert optimizer._points.opt.failures == 30
    assert distance(optimizer.recommend().value) < 0.2


def on_the_left(x: np.ndarray) -> bool:
    return bool(x[0] <= 0.5)


def test_candidates_against_constraints_are_failures() -> None:
    parametrization = ng.p.Array(shape=(2,))
    parametrization.register_cheap_constraint(on_the_left)
    optimizer = make("POEM", parametrization, budget=200)
    seen: list[np.ndarray] = []

    def watched(x: np.ndarray) -> float:
        seen.append(x)
        return distance(x)

    best = optimizer.minimize(watched)
    assert len(seen) == 200
    assert all(map(on_the_left, seen))
    assert optimizer._points.opt.failures > 0
    assert distance(best.value) < 0.5  # 1.4 at the start, 0.2 on the boundary


@pytest.mark.parametrize("budget", [1, 2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_tiny_budgets(name: str, budget: int) -> None:
    best = make(name, 3, budget=budget, num_workers=1).minimize(distance)
    assert np.isfinite(best.value).all()


def test_noise_is_shared_only_where_there_is_none() -> None:
    for deterministic in (True, False):
        parametrization = ng.p.Array(shape=(2,))
        parametrization.function.deterministic = deterministic
        optimizer = make("PoemAuto", parametrization, budget=200)
        optimizer.ask()
        assert state_of(optimizer._points.opt).run.paired is deterministic
    assert repr(ConfiguredPoem(method="poem", batch=2)) == "ConfiguredPoem(batch=2, method='poem')"
