"""How much each variable matters, as runs of `auto` see it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import poem_cma as pc

WEIGHTS = np.array([10.0, 5.0, 2.0, 1.0, 0.5, 0.0])


def linear_noise(x: np.ndarray, xi: np.ndarray) -> float:
    return float(WEIGHTS @ np.abs(x - 1.0 - xi))


def normal(rng: np.random.Generator) -> Any:
    return rng.normal(size=len(WEIGHTS))


def test_near_steps_see_the_slopes() -> None:
    """Along each variable the slope is plus or minus its weight."""
    result = pc.minimize(linear_noise, np.zeros(6), sample=normal, budget=2000, seed=0, method="near")
    np.testing.assert_allclose(result.sensitivity, WEIGHTS / WEIGHTS.sum(), atol=0.02)


def test_a_search_without_noise_sees_the_gradients() -> None:
    result = pc.minimize(lambda x: float(WEIGHTS @ (x - 1.0) ** 2), np.zeros(6), budget=1000, seed=0)
    assert (np.argsort(-result.sensitivity) == np.arange(6)).all()
    assert result.sensitivity.sum() == pytest.approx(1.0)
    assert result.sensitivity[-1] < 1e-6


def test_a_far_search_tells_what_matters_from_what_does_not() -> None:
    """Every evaluation has noise of its own; shares of 20 runs, the true ones are near 0.54, 0.27, 0.11, 0.05, 0.03."""
    found = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        fun = lambda x, rng=rng: float(WEIGHTS @ (x - 1.0) ** 2) + rng.normal()  # noqa: E731
        result = pc.minimize(fun, np.zeros(6), budget=600, seed=seed, method="far")
        if result.sensitivity is not None:
            found.append(result.sensitivity)
    assert len(found) >= 18
    mean = np.mean(found, axis=0)
    assert mean[0] > 0.35
    assert mean[0] > mean[1] > mean[2:].max()


def test_the_unit_of_values_does_not_matter() -> None:
    results = [
        pc.minimize(lambda x, u=u: u * float(np.round(WEIGHTS @ np.abs(x - 1.0))), np.zeros(6), budget=600, seed=1)
        for u in (1.0, 2.0**40)
    ]
    assert results[0].sensitivity.tobytes() == results[1].sensitivity.tobytes()


def test_a_box_measures_by_its_widths() -> None:
    """The second variable matters as much as the first: its slope is a hundredth, its range a hundred times as wide."""
    box = pc.Box(np.zeros(2), np.array([1.0, 100.0]))
    result = pc.minimize(
        lambda x: float((x[0] - 0.7) ** 2 + (x[1] / 100.0 - 0.7) ** 2), [0.2, 20.0], domain=box, budget=400, seed=0
    )
    np.testing.assert_allclose(result.sensitivity, 0.5, atol=0.05)


def test_nothing_is_said_where_nothing_was_seen() -> None:
    assert pc.minimize(lambda x: 1.0, np.zeros(3), budget=100, seed=0).sensitivity is None
    assert pc.minimize(lambda x: float(x @ x), np.ones(3), budget=100, seed=0, method="poem").sensitivity is None


def test_a_spectrum_says_it_too() -> None:
    rows = np.diag(WEIGHTS[:4])
    result = pc.minimize(
        lambda x, i: abs(float(rows[i] @ x) - 1.0), np.zeros(4), sample=lambda rng: int(rng.integers(4)),
        method=pc.methods.poem_cma(samples=400), budget=2000, seed=0,
    )  # fmt: skip
    np.testing.assert_allclose(result.sensitivity, WEIGHTS[:4] / WEIGHTS[:4].sum(), atol=0.08)


def test_names_and_panels() -> None:
    def fun(p: dict[str, Any]) -> float:
        return float(9.0 * p["rate"] ** 2 + (p["w"] ** 2).sum())

    result = pc.minimize(fun, {"rate": 1.0, "w": np.ones(2)}, budget=400, seed=0)
    assert [name for name, _, _ in result.by_variable()] == ["rate", "w[0]", "w[1]"]
    assert sum(share for _, _, share in result.by_variable()) == pytest.approx(1.0)
    axes = result.plot().axes[-1]
    assert axes.get_title() == "Sensitivity"
    assert [text.get_text() for text in axes.get_xticklabels()] == ["rate", "w[0]", "w[1]"]
    heights = [bar.get_height() for bar in axes.patches]
    np.testing.assert_allclose(heights, [100.0 * share for _, _, share in result.by_variable()])
