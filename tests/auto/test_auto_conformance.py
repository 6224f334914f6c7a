"""`auto`, `near` and `far`: the same run, bit for bit, whoever evaluates, in whatever order, and after any restart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from auto_helpers import numbered
from inside import state_of
from runs import bits

import poem_cma as pc
from poem_cma.result import Status

METHODS = ["auto", "near", "far"]
D = 6
GOAL = np.random.default_rng(0).normal(size=D)


def logistic(x: np.ndarray, n: int) -> float:
    """Near: samples disagree, and have slopes."""
    rng = numbered(n)
    a = rng.normal(size=len(x))
    return float(np.logaddexp(0.0, -np.sign(a @ GOAL[: len(x)]) * (a @ x)))


def counting(x: np.ndarray, n: int) -> float:
    """Far: it has steps."""
    return float(np.floor(3.0 * np.abs(x - GOAL[: len(x)])).sum() + numbered(n).poisson(1.0))


def suited(method: str) -> Callable[..., float]:
    """A function for which the regime is meant: steps of far may follow a loss that falls for ever on a sample."""
    return counting if method == "far" else logistic


def failing(x: np.ndarray, n: int, f: Callable[..., float] = logistic) -> float:
    """A tenth of the calls fails: as a function of the point and the sample, so that every caller sees the same."""
    u = np.random.default_rng([n, *np.frombuffer(np.ascontiguousarray(x), dtype=np.uint32)]).random()
    if u < 0.05:
        raise RuntimeError("the simulator crashed")
    return np.nan if u < 0.1 else f(x, n)


def draw(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31))


FUNCTIONS: dict[str, Callable[..., float]] = {"logistic": logistic, "counting": counting}
DOMAINS: dict[str, Any] = {
    "space": None, "box": pc.Box(-1.0, [0.5, 1.0, 1.0, 1.0, 2.0, 3.0]), "ball": pc.Ball(1.5), "simplex": pc.Simplex(),
}  # fmt: skip


def start(domain: Any) -> np.ndarray:
    return np.full(D, 1.0 / D) if isinstance(domain, pc.Simplex) else np.zeros(D)


def told(opt: pc.Optimizer, probe: pc.Probe, f: Callable[..., float]) -> None:
    opt.tell(probe, [f(x, n) for x, n in zip(probe.points, probe.numbers, strict=True)])


def finished(opt: pc.Optimizer, f: Callable[..., float]) -> pc.Result:
    while (probe := opt.ask()) is not None:
        told(opt, probe, f)
    return opt.result()


def fresh(method: str, domain: Any = None, **options: Any) -> pc.Optimizer:
    return pc.Optimizer(start(domain), method=method, domain=domain, **({"budget": 1200, "seed": 4} | options))


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("method", METHODS)
def test_saving_and_loading_in_every_phase(method: str, name: str, domain: str, tmp_path: Path) -> None:
    f, phases = FUNCTIONS[name], set()
    expected = bits(finished(fresh(method, DOMAINS[domain]), f))
    opt, k = fresh(method, DOMAINS[domain]), 0
    while (probe := opt.ask()) is not None:
        new = state_of(opt).phase not in phases
        phases.add(state_of(opt).phase)
        k += 1
        if new or k % 29 == 0:  # a probe that is in flight is asked again
            opt.save(tmp_path / "run")
            opt = pc.Optimizer.load(tmp_path / "run")
            again = opt.ask()
            assert again is not None
            assert (again.points.tobytes(), again.numbers, again.id) == (
                probe.points.tobytes(),
                probe.numbers,
                probe.id,
            )
            probe = again
        told(opt, probe, f)
        if k % 37 == 0:
            opt.save(tmp_path / "run")
            opt = pc.Optimizer.load(tmp_path / "run")
    assert bits(opt.result()) == expected
    assert {"scan", "judge"} < phases


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("method", METHODS)
def test_probes_of_a_stage_may_be_answered_in_any_order(method: str, name: str, paired: bool) -> None:
    f, order = FUNCTIONS[name], np.random.default_rng(5)
    expected = bits(finished(fresh(method, paired=paired), f))
    opt, most = fresh(method, paired=paired), 0
    while True:
        flight = []
        while (probe := opt.ask()) is not None:
            flight.append(probe)
        if not flight:
            break
        most = max(most, len(flight))
        for i in order.permutation(len(flight)):
            told(opt, flight[i], f)
    assert bits(opt.result()) == expected
    assert most > 4


@pytest.mark.parametrize("vectorized", [False, True, "rows"])
@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("method", METHODS)
def test_replicas_are_single_runs(method: str, domain: str, vectorized: Any) -> None:
    def fun(x: np.ndarray, n: Any) -> Any:
        if not vectorized:
            return logistic(x, n)
        return np.array([logistic(row, k) for row, k in zip(x, np.broadcast_to(n, len(x)), strict=True)])

    settings: dict[str, Any] = {
        "sample": draw, "method": method, "domain": DOMAINS[domain], "budget": 500, "vectorized": vectorized,
    }  # fmt: skip
    x0 = start(DOMAINS[domain])
    for seed, result in enumerate(pc.replicate(fun, x0, seeds=range(3), **settings)):
        assert bits(result) == bits(pc.minimize(fun, x0, seed=seed, **settings))


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("method", METHODS)
def test_a_tenth_of_the_calls_may_fail(method: str, domain: str) -> None:
    """Half of what is gained without failures is gained with them."""

    def mean(x: np.ndarray) -> float:
        return float(np.mean([f(x, n) for n in range(10**6, 10**6 + 1000)]))

    def unreliable(x: np.ndarray, n: int) -> float:
        return failing(x, n, f)

    f, x0, gains = suited(method), start(DOMAINS[domain]), {}
    for fun in (f, unreliable):
        settings: dict[str, Any] = {"sample": draw, "method": method, "domain": DOMAINS[domain], "budget": 2000}
        results = [pc.minimize(fun, x0, seed=seed, **settings) for seed in range(3)]
        gains[fun] = np.median([mean(x0) - mean(result.x) for result in results])
        assert all(result.success and (result.failures > 100) == (fun is unreliable) for result in results)
    assert gains[unreliable] > 0.5 * gains[f] > 0.0


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("method", METHODS)
def test_single_precision_stays_single(method: str, domain: str) -> None:
    f, x0, kinds = suited(method), start(DOMAINS[domain]).astype(np.float32), set()

    def fun(x: np.ndarray, n: int) -> np.float32:
        kinds.add(x.dtype)
        return np.float32(f(x, n))

    result = pc.minimize(fun, x0, sample=draw, method=method, domain=DOMAINS[domain], budget=2000, seed=0)
    assert kinds == {result.x.dtype, result.x_last.dtype, result.x_average.dtype} == {np.dtype(np.float32)}
    every = range(10**6, 10**6 + 1000)
    assert np.mean([f(result.x, n) for n in every]) < np.mean([f(x0, n) for n in every])


@pytest.mark.parametrize("method", METHODS)
def test_a_nest_of_variables_is_the_flat_run(method: str) -> None:
    settings: dict[str, Any] = {"sample": draw, "method": method, "budget": 600, "seed": 0}
    flat = pc.minimize(logistic, np.zeros(D), **settings)

    def nested(x: Any, n: int) -> float:
        return logistic(np.concatenate([x["a"].ravel(), [x["b"]]]), n)

    result = pc.minimize(nested, {"a": np.zeros((5, 1)), "b": 0.0}, **settings)
    assert np.concatenate([result.x["a"].ravel(), [result.x["b"]]]).tobytes() == flat.x.tobytes()
    assert result.nfev == flat.nfev


@pytest.mark.parametrize("exponent", [-300, -40, 3, 300])
@pytest.mark.parametrize("method", METHODS)
def test_powers_of_two_in_F_change_no_bit(method: str, exponent: int) -> None:
    f = suited(method)
    scaled = finished(fresh(method), lambda x, n: 2.0**exponent * f(x, n))
    assert scaled.x.tobytes() == finished(fresh(method), f).x.tobytes()


@pytest.mark.parametrize("method", METHODS)
def test_every_budget_is_kept_and_nearly_used(method: str) -> None:
    for d, budget in [(d, budget) for d in (1, 3, 40) for budget in (20, 25, 33, 47, 60, 100, 200, 350, 500, 1000)]:
        result = pc.minimize(
            lambda x: float(np.abs(x - 1.0).sum()), np.zeros(d), method=method, budget=budget, seed=0, evaluate=0
        )
        assert result.nfev <= budget
        if budget >= (200 if method == "near" else 40):  # near steps need the scan and the gate
            assert result.nfev >= 0.5 * budget or result.status == Status.CONVERGED
        assert np.abs(result.x - 1.0).sum() <= d * (1.0 + 1e-9)  # never worse than x0, without noise


@pytest.mark.parametrize("method", METHODS)
def test_without_a_budget_it_goes_on(method: str) -> None:
    opt = fresh(method, budget=None)
    while opt.nfev < 3000 and (probe := opt.ask()) is not None:
        told(opt, probe, logistic)
    assert opt.nfev >= 3000
    assert opt.result().x @ GOAL > 0.8 * np.linalg.norm(opt.result().x) * np.linalg.norm(GOAL)


@pytest.mark.parametrize("method", METHODS)
def test_a_sample_is_used_for_one_purpose(method: str) -> None:
    """Unpaired, no xi is used twice."""
    opt, numbers = fresh(method, paired=False), []
    while (probe := opt.ask()) is not None:
        numbers += probe.numbers
        told(opt, probe, counting)
    assert len(numbers) == len(set(numbers)) > 1000
