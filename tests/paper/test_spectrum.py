"""Algorithm 2's linear algebra and memory, and full finite-difference gradients."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inside import state_of
from problems import hinge

import poem_cma as pc
from poem_cma.paper import algorithm_2 as spectra
from poem_cma.paper.algorithm_2 import spectrum_of


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.integers(1, 12), st.integers(1, 30), st.floats(0.0, 0.9), st.sampled_from([0.0, 1e-3, 0.5]), st.integers(0, 999)
)
def test_against_the_plain_matrix(d: int, M: int, tol: float, ridge: float, seed: int) -> None:
    """Blocks, thin or square, against eigh of the whole matrix."""
    G = np.random.default_rng(seed).normal(size=(M, d)) * np.linspace(2.0, 0.5, d)
    spectrum = spectrum_of(np.array_split(G, 3), d, M, tol=tol, ridge=ridge)
    Sigma = G.T @ G / M + ridge * np.eye(d)
    lam, Q = np.linalg.eigh(Sigma)
    keep = (lam >= tol * lam[-1]) & (lam > 1e-13 * lam[-1])
    filtered = (Q[:, keep] * lam[keep]) @ Q[:, keep].T
    rest = np.eye(d) - spectrum.vectors @ spectrum.vectors.T
    ours = (spectrum.vectors * spectrum.eigenvalues) @ spectrum.vectors.T + spectrum.floor * rest
    np.testing.assert_allclose(ours, filtered, atol=1e-10 * lam[-1])
    assert spectrum.rank == keep.sum()
    assert spectrum.effective_dimension == pytest.approx(lam[keep].sum() / lam[-1])
    assert spectrum.condition == pytest.approx(lam[-1] / lam[keep][0], rel=1e-6)
    assert spectrum.size == M


def test_fewer_estimates_than_dimensions_need_no_square_matrix() -> None:
    """d = 100,000 and M = 200: the peak is a few times M x d numbers, where d x d would be 80 GB."""
    d, M = 100_000, 200
    a = np.zeros(d)
    a[0] = 1.0
    tracemalloc.start()
    spectrum = pc.effective_dimension(lambda x: a @ x, np.zeros(d), samples=M, seed=0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3.5 * M * d * 8
    assert spectrum.size == M
    assert spectrum.vectors.shape == (d, spectrum.rank)


def test_a_request_beyond_the_memory_limit_is_refused_with_the_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spectra, "MEMORY_LIMIT", 2**20)
    with pytest.raises(MemoryError, match=r"1381 gradient estimates in 270 dimensions need 0\.0 GiB.*samples=242"):
        pc.effective_dimension(lambda x: 0.0, np.zeros(270), samples=1381)
    with pytest.raises(MemoryError, match="samples=242"):
        pc.Optimizer(np.zeros(270), method=pc.methods.poem_cma(samples=300))
    with pytest.raises(MemoryError, match="at most"):
        pc.gradient_spectrum(lambda x: 0.0, np.zeros(270), gradients=300)


def test_a_sketch_needs_no_more_memory_for_more_estimates() -> None:
    assert spectra.memory_needed(100_000, 1_000_000) == spectra.memory_needed(100_000, 200) == 320_000_000
    assert spectra.memory_needed(10**7, 1_000_000) <= spectra.MEMORY_LIMIT


def test_inside_a_run_the_default_stays_within_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spectra, "MEMORY_LIMIT", 16 * 50 * 10)
    opt = pc.Optimizer(np.zeros(50), method="poem-cma", budget=10_000)
    assert state_of(opt).run.pairs == 10
    monkeypatch.undo()
    assert state_of(pc.Optimizer(np.zeros(50), method="poem-cma", budget=10_000)).run.pairs == 195  # floor(50 ln 50)


def test_a_filter_of_one_keeps_the_largest_only() -> None:
    P = hinge(d=8)
    spectrum = pc.effective_dimension(P.fun, np.zeros(8), sample=P.sample, tol=1.0, seed=0)
    assert (spectrum.rank, spectrum.effective_dimension, spectrum.condition) == (1, 1.0, 1.0)


def test_independent_samples_raise_the_dimension() -> None:
    """Without a shared xi the noise of F itself, which has no direction, is added."""
    noise = lambda rng: 3.0 * rng.normal()  # noqa: E731
    a = np.array([1.0, 0, 0, 0, 0, 0, 0, 0])
    shared, own = (
        pc.effective_dimension(
            lambda x, xi: a @ x + xi, np.zeros(8), sample=noise, paired=paired, samples=4000, tol=0.0, seed=0
        )
        for paired in (True, False)
    )
    assert shared.effective_dimension == pytest.approx((8 + 2) / 3, rel=0.06)
    assert own.effective_dimension > 6.0


def test_failed_pairs_are_left_out() -> None:
    calls = 0

    def fun(x: np.ndarray) -> float:
        nonlocal calls
        calls += 1
        return float("nan") if calls % 10 == 0 else float(x[0])

    spectrum = pc.effective_dimension(fun, np.zeros(3), samples=100, seed=0)
    assert spectrum.size == 80
    assert spectrum.nfev == 200
    with pytest.raises(RuntimeError, match=r"no usable pair of values.*fun returned nan"):
        pc.effective_dimension(lambda x: float("nan"), np.zeros(3), seed=0)


# Full gradients


def test_gradients_of_a_smooth_function_are_the_gradients() -> None:
    H = np.diag([3.0, 2.0, 1.0, 0.5])
    x0 = np.array([1.0, -1.0, 2.0, 0.0])
    spectrum = pc.gradient_spectrum(lambda x: 0.5 * x @ H @ x, x0, gradients=5, radius=1e-5, seed=0)
    g = H @ x0
    assert spectrum.effective_dimension == pytest.approx(1.0, abs=1e-6)
    assert spectrum.eigenvalues[0] == pytest.approx(g @ g, rel=1e-4)
    assert abs(spectrum.vectors[:, 0] @ g) == pytest.approx(np.linalg.norm(g), rel=1e-4)
    assert (spectrum.size, spectrum.nfev) == (5, 25)


def test_each_gradient_is_taken_on_one_sample_around_a_random_base() -> None:
    seen: dict[float, list[np.ndarray]] = {}

    def fun(x: np.ndarray, xi: float) -> float:
        seen.setdefault(xi, []).append(x.copy())
        return float(x.sum())

    pc.gradient_spectrum(fun, np.zeros(3), sample=lambda rng: rng.random(), gradients=4, radius=0.5, seed=0)
    assert [len(points) for points in seen.values()] == [4] * 4
    bases = np.array([points[0] for points in seen.values()])
    assert (np.linalg.norm(bases, axis=1) <= 0.5).all()
    assert len(np.unique(bases[:, 0])) == 4
    for points in seen.values():
        np.testing.assert_allclose(np.array(points[1:]) - points[0], 0.05 * np.eye(3), atol=1e-12)


def test_a_kink_at_x0_is_seen_from_both_sides() -> None:
    """Around |x| at 0 the gradient is +1 or -1 in each coordinate; a fixed base would see +1 only."""
    spectrum = pc.gradient_spectrum(lambda x: np.abs(x).sum(), np.zeros(4), gradients=400, seed=0)
    np.testing.assert_allclose(spectrum.eigenvalues, 0.93, atol=0.2)
    assert spectrum.effective_dimension > 3.2


@pytest.mark.parametrize(("gradients", "radius"), [(0, None), (2.5, None), (3, 0.0), (3, np.inf)])
def test_bad_arguments(gradients: int, radius: float | None) -> None:
    with pytest.raises(ValueError, match="must be"):
        pc.gradient_spectrum(lambda x: 0.0, np.zeros(3), gradients=gradients, radius=radius)


def test_a_failed_call_of_a_full_gradient_is_raised() -> None:
    with pytest.raises(pc.EvaluationError, match="returned nan"):
        pc.gradient_spectrum(lambda x: float("nan"), np.zeros(3))


@pytest.mark.parametrize("rank", [3, 40])
def test_the_sketch_finds_the_leading_directions(rank: int) -> None:
    """In 2,500 dimensions, with 900 estimates of a falling spectrum and noise: against the SVD of all of them."""
    d, n = 2500, 900
    rng = np.random.default_rng(rank)
    basis = np.linalg.qr(rng.normal(size=(d, rank)))[0]
    G = rng.normal(size=(n, rank)) * np.geomspace(30.0, 5.0, rank) @ basis.T + 0.02 * rng.normal(size=(n, d))
    sketch = spectrum_of(iter(np.split(G, 30)), d, n, tol=0.01)
    _, lengths, Q = np.linalg.svd(G, full_matrices=False)
    np.testing.assert_allclose(sketch.eigenvalues[:rank], lengths[:rank] ** 2 / n, rtol=1e-3)
    assert sketch.rank == rank
    np.testing.assert_allclose(np.linalg.norm(Q[:rank] @ sketch.vectors, axis=0), 1.0, rtol=1e-6)
    np.testing.assert_allclose(sketch.vectors.T @ sketch.vectors, np.eye(rank), atol=1e-10)


def test_poem_cma_in_many_dimensions_and_single_precision() -> None:
    d = 3000

    def few(x: np.ndarray) -> float:
        return float(np.abs(x[:2] - 1.0).sum())

    result = pc.minimize(few, np.zeros(d, np.float32), method="poem-cma", budget=2400, seed=0)
    assert result.x.dtype == np.float32
    assert result.spectrum is not None
    assert 0 < result.spectrum.rank <= 100
    assert result.spectrum.vectors.shape == (d, result.spectrum.rank)
