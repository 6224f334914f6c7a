"""Slopes that are small multiples of one number, told many at a time."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

import poem_cma as pc
from poem_cma.auto.digits import Alphabet, Digits, calls_of, draw_digits, multiples
from poem_cma.auto.staircase import draw_staircase

EPS = float(np.finfo(float).eps)
LOSSES = {
    "absolute": (np.abs, np.sign),
    "logistic": (lambda t: np.logaddexp(0.0, t), expit),
    "squared": (lambda t: 0.5 * t**2, lambda t: t),
}


def estimator(n: int, alphabet: Alphabet, seed: int, size: float = 1.0, vanishing: float = 1.0) -> Digits:
    rng = np.random.default_rng([seed, 1])
    x = size * rng.normal(size=n)
    walk = draw_staircase(rng, x, 0.1 * size, np.ones(n), lambda V: V, np.arange(n), n, False, False, 1e-3)
    return draw_digits(rng, walk, alphabet, size, vanishing, size)


def asked(digits: Digits, F: Any) -> np.ndarray:
    """All values that the estimator wants."""
    v = np.full(digits.size, np.nan)
    while places := digits.needed(v, EPS):
        assert np.isnan(v[places]).all()  # nothing twice
        v[places] = [F(x) for x in digits.points(places)]
    return v


def gradient(digits: Digits, v: np.ndarray) -> np.ndarray:
    change, steps = digits.differences(v, EPS)
    return digits.gradient(np.asarray(change / steps), len(digits.axes))


def sample(rng: np.random.Generator, n: int, active: int, alphabet: Alphabet) -> np.ndarray:
    """Whole numbers of the alphabet along some axes, times any number."""
    letters = [m for m in range(alphabet.low, alphabet.high + 1) if m]
    a = np.zeros(n)
    a[rng.permutation(n)[:active]] = rng.choice(letters, active)
    return a * rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(-1.0, 1.0)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("alphabet", [Alphabet(0, 1), Alphabet(-1, 1), Alphabet(0, 3), Alphabet(-3, 3)])
@given(n=st.integers(5, 130), share=st.floats(0.0, 1.0), seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_what_is_told_is_right(loss: str, alphabet: Alphabet, n: int, share: float, seed: int) -> None:
    """And where nothing is told, the walk tells it."""
    rng = np.random.default_rng(seed)
    a = sample(rng, n, max(1, round(share * n)), alphabet)
    F, slope = LOSSES[loss]
    b = 3.0 * rng.normal() * np.abs(a).max()
    scale = abs(F(-b)) / np.abs(a).max()
    digits = estimator(n, alphabet, seed, vanishing=scale)
    v = asked(digits, lambda x: F(x @ a - b))
    truth = slope(digits.walk.base @ a - b) * a
    if not digits.told(v):  # steps of the walk are longer: the slope may change within one
        np.testing.assert_allclose(gradient(digits, v), truth, atol=0.1 * np.abs(truth).max())
        return
    calls = int(np.isfinite(v).sum())
    assert calls == calls_of(n, alphabet)
    np.testing.assert_allclose(gradient(digits, v), truth, rtol=1e-3, atol=1e-12 * np.abs(a).max())


def test_most_samples_are_told() -> None:
    told = calls = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        a = sample(rng, 112, 22, Alphabet(0, 1))
        digits = estimator(112, Alphabet(0, 1), seed)
        v = asked(digits, lambda x, a=a: np.logaddexp(0.0, x @ a / np.abs(a).max()))
        told, calls = told + digits.told(v), calls + int(np.isfinite(v).sum())
    assert told == 400
    assert calls == 400 * 10  # the base, eight blocks of fourteen, and one more


@pytest.mark.parametrize(("n", "active"), [(112, 22), (112, 2), (14, 3), (5, 5)])
def test_other_slopes_are_walked_along(n: int, active: int) -> None:
    """They may look like whole numbers by chance, hardly ever."""
    wrong = 0
    for seed in range(1000):
        rng = np.random.default_rng(seed)
        a = np.zeros(n)
        a[rng.permutation(n)[:active]] = rng.normal(size=active)
        digits = estimator(n, Alphabet(0, 1), seed)
        wrong += not np.allclose(gradient(digits, asked(digits, lambda x, a=a: x @ a)), a, atol=1e-6)
    assert wrong <= 10  # one in a hundred


def test_a_flat_sample_takes_three_calls() -> None:
    """The steps of a walk are longer than those of digits, and must see no change either."""
    digits = estimator(40, Alphabet(0, 1), 0)
    v = asked(digits, lambda x: 3.0)
    assert int(np.isfinite(v).sum()) == 3
    assert not gradient(digits, v).any()


def test_slopes_that_cancel_are_not_flat() -> None:
    """With both signs the steps along all axes may make no difference together."""
    digits = estimator(6, Alphabet(-1, 1), 0)
    digits.marks[:2] = 7
    a = np.array([1.0, -1.0, 0.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(gradient(digits, asked(digits, lambda x: x @ a)), a, atol=1e-5)


@given(place=st.integers(0, 30), bad=st.sampled_from([np.inf, 1e300, -1e300, 1e-300]), seed=st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
def test_a_call_that_fails_does_no_harm(place: int, bad: float, seed: int) -> None:
    """Infinite where it is known to have failed: the gradient is that of the walk, or there is none."""
    rng = np.random.default_rng(seed)
    a = sample(rng, 28, 9, Alphabet(0, 1))
    a /= np.abs(a).max()
    digits = estimator(28, Alphabet(0, 1), seed)
    v = np.full(digits.size, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        while places := digits.needed(v, EPS):
            v[places] = [bad if p == place else x @ a for p, x in zip(places, digits.points(places), strict=True)]
        if digits.usable(v) and bad == np.inf and place <= 3:
            np.testing.assert_allclose(gradient(digits, v), a, atol=1e-6)
        elif bad == np.inf and place == 0:
            assert not digits.usable(v)


def test_which_multiples_slopes_are() -> None:
    assert multiples(np.array([0.0, -2.5, 0.0, -2.5])) == (0, 1)
    assert multiples(np.array([1.0, 2.0, 0.0, 3.0])) == (0, 3)
    assert multiples(np.array([1.0, -2.0])) == (-2, 2)
    assert multiples(np.array([1.0, 1.5])) is None
    assert multiples(np.array([1.0, 4.0])) is None  # not small
    assert multiples(np.array([1.0, 1.0 + 1e-5])) == (0, 1)
    assert multiples(np.array([1.0, 1.01])) is None
    assert Alphabet(0, 1) | Alphabet(-3, 3) == (-3, 3)


# In a run


def one_hot(d: int = 60, groups: int = 10) -> tuple[Any, Any, Any]:
    """The absolute error of a linear model whose features are there or not: F, samples, and the mean."""
    rng = np.random.default_rng(0)
    A = np.zeros((400, d))
    for g in range(groups):
        A[np.arange(400), g * (d // groups) + rng.integers(0, d // groups, 400)] = 1.0
    b = A @ rng.normal(size=d) + 0.1 * rng.normal(size=400)
    return (
        lambda X, i: np.abs(X @ A[i] - b[i]),
        lambda rng: int(rng.integers(400)),
        lambda x: float(np.abs(A @ x - b).mean()),
    )


def test_fewer_calls_where_features_are_there_or_not() -> None:
    F, draw, mean = one_hot()
    settings: dict[str, Any] = {"sample": draw, "budget": 6000, "vectorized": True, "evaluate": 0}

    def gaps(**parts: bool) -> np.ndarray:
        method = pc.methods.auto(**parts)
        return np.array([mean(pc.minimize(F, np.zeros(60), method=method, seed=s, **settings).x) for s in range(4)])

    assert gaps().mean() < 0.6 * gaps(digits=False).mean()


@pytest.mark.parametrize("domain", [None, pc.Box(-1.0, 0.5, inside=True)])
def test_a_run_is_the_same_when_it_is_resumed_or_replicated(domain: Any, tmp_path: Any) -> None:
    F, draw, _ = one_hot()
    settings: dict[str, Any] = {"domain": domain, "budget": 3000, "seed": 3}
    opt = pc.Optimizer(np.zeros(60), **settings)
    while (probe := opt.ask()) is not None:
        assert domain is None or ((probe.points >= -1.0).all() and (probe.points <= 0.5).all())
        i = draw(np.random.default_rng(probe.numbers[0]))
        opt.tell(probe, F(probe.points, i))
        if 1000 < opt.nfev < 1050:
            assert opt._state.alike >= 4
            opt.save(tmp_path / "run")
            opt = pc.Optimizer.load(tmp_path / "run")
    again = pc.Optimizer(np.zeros(60), **settings)
    while (probe := again.ask()) is not None:
        again.tell(probe, F(probe.points, draw(np.random.default_rng(probe.numbers[0]))))
    assert opt.result().x.tobytes() == again.result().x.tobytes()
    alone = pc.minimize(F, np.zeros(60), sample=draw, vectorized=True, evaluate=0, **settings)
    (other,) = pc.replicate(
        F, np.zeros(60), sample=draw, vectorized=True, evaluate=0, domain=domain, budget=3000, seeds=[3]
    )
    assert alone.x.tobytes() == other.x.tobytes()


def test_single_precision_and_rounded_values_are_walked_along() -> None:
    """Digits would drown in rounding; nothing is lost but what they save."""
    F, draw, mean = one_hot()
    x0 = np.zeros(60)
    settings: dict[str, Any] = {"sample": draw, "budget": 6000, "vectorized": True, "evaluate": 0}
    for rounded in (lambda X, i: F(X, i).astype(np.float32), lambda X, i: np.round(F(X, i), 9)):
        gaps = {
            digits: [
                mean(pc.minimize(rounded, x0, method=pc.methods.auto(digits=digits), seed=seed, **settings).x)
                for seed in range(4)
            ]
            for digits in (False, True)
        }
        assert np.mean(gaps[True]) < 1.2 * np.mean(gaps[False])
