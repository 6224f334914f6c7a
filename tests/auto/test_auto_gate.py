"""Near or far: are differences over tiny distances to be trusted, and do samples disagree?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from auto_helpers import classification, drive, numbered, regression
from inside import state_of

import poem_cma as pc
from poem_cma.auto.gate import NEAR

D = 8


def answered(s: Any) -> bool:
    """Whether the gate has been asked, and a test that began with few directions has gone on."""
    return s.gate.asked > 0 and s.phase != "gate"


def near(f: Any, seed: int, d: int = D, **options: Any) -> bool:
    """The first answer of the gate."""
    opt = pc.Optimizer(np.zeros(d), seed=seed, **({"budget": 3000} | options))
    s = state_of(drive(opt, f, answered))
    assert s.gate.asked == 1
    return bool(s.gate.near)


LOSSES = {
    "logistic": lambda seed: classification(lambda u: np.logaddexp(0.0, -u), D, seed),
    "hinge": lambda seed: classification(lambda u: max(0.0, 1.0 - u), D, seed),
    "squared": lambda seed: regression(np.square, D, seed),
    "absolute": lambda seed: regression(np.abs, D, seed),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_on_different_samples_are_near(loss: str) -> None:
    assert sum(near(LOSSES[loss](seed), seed) for seed in range(20)) >= 18


def counts(seed: int) -> Any:
    """Customers that are served, of as many as come."""

    def f(x: np.ndarray, n: int) -> float:
        return float((np.floor(np.abs(x - 3.0)) + numbered(n, seed).poisson(2.0, size=D)).sum())

    return f


def own_noise(size: float, vanishes: bool, seed: int) -> Any:
    """A squared loss, with noise that no two evaluations share, though they may be equal at x0."""
    noise, plain = np.random.default_rng(seed), regression(np.square, D, seed)

    def f(x: np.ndarray, n: int) -> float:
        return plain(x, n) + size * (float(np.linalg.norm(x)) if vanishes else 1.0) * noise.normal()

    return f


def rounded(decimals: int, seed: int) -> Any:
    plain = regression(np.square, D, seed)
    return lambda x, n: round(plain(x, n), decimals)


def halved(f: Any) -> Any:
    """In 16 bits: rounded, and infinite above 65504."""

    def g(x: np.ndarray, n: int) -> float:
        with np.errstate(over="ignore"):
            return float(np.float16(f(x, n)))

    return g


FAR = {
    "zero-one": lambda seed: classification(lambda u: float(u < 0.0), D, seed),
    "steps": lambda seed: lambda x, n: float(np.floor(4.0 * abs(numbered(n, seed).normal(size=D) @ (x - 1.0)))),
    "rounded": lambda seed: rounded(1, seed),
    "counts": counts,
    "much own noise": lambda seed: own_noise(30.0, False, seed),
    "half precision": lambda seed: halved(regression(np.square, D, seed)),
}


@pytest.mark.parametrize("kind", FAR)
def test_steps_counts_rounding_and_noise_of_its_own_are_far(kind: str) -> None:
    assert not any(near(FAR[kind](seed), seed) for seed in range(20))


@pytest.mark.parametrize("vanishes", [False, True])
def test_little_noise_of_its_own_lengthens_near_differences(vanishes: bool) -> None:
    """They are trusted where they are long enough to be clear of it; otherwise the run is far."""
    for seed in range(20):
        opt = pc.Optimizer(np.zeros(D), budget=2000, seed=seed)
        gate = state_of(drive(opt, own_noise(0.3, vanishes, seed), answered)).gate
        assert not gate.near or (gate.e > 10.0 * NEAR and gate.own > 0.0)
        assert not gate.noiseless


@pytest.mark.parametrize("share", [0.0, 0.05])
def test_samples_that_agree_are_far(share: float) -> None:
    """Pairs of points see f itself there: a term of the sample's own is small beside what all have in common."""
    for seed in range(20):

        def f(x: np.ndarray, n: int, seed: int = seed) -> float:
            return float(((x - 1.0) ** 2).sum() + share * numbered(n, seed).normal(size=D) @ x)

        assert not near(f, seed)


def test_samples_that_are_not_shared_are_far() -> None:
    assert not any(near(LOSSES["squared"](seed), seed, paired=False) for seed in range(10))


@pytest.mark.parametrize("factor", [1e-300, 1e-200, 1e-20, 1e20, 1e200, 1e290])
@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared"])
def test_the_unit_of_F_does_not_matter(loss: str, factor: float) -> None:
    for seed in range(3):
        f = LOSSES[loss](seed)
        assert near(lambda x, n, f=f: factor * f(x, n), seed) == near(f, seed)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared"])
def test_a_few_failures_change_little(loss: str) -> None:
    """Slopes with a failed end are left out."""
    found = 0
    for seed in range(20):
        fails, f = np.random.default_rng(seed), LOSSES[loss](seed)
        found += near(lambda x, n, f=f, fails=fails: np.nan if fails.random() < 0.02 else f(x, n), seed)
    assert found >= 12


def test_the_noise_of_an_evaluation_is_measured() -> None:
    """Of n = 24 squared differences; their standard deviation has a relative error of 1 / sqrt(2 n), about 0.14."""
    ratios = []
    for seed in range(10):
        opt = pc.Optimizer(np.zeros(D), seed=seed, budget=3000)
        s = state_of(drive(opt, own_noise(0.3, False, seed), answered))
        ratios.append(s.gate.own * s.clock.unit / 0.3)
    assert abs(np.mean(ratios) - 1.0) < 4.0 * 0.15 / np.sqrt(10.0) + 0.02
