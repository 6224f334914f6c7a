"""The library against literal transcriptions of the algorithms, draw by draw."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np
import pytest
from draws import normals, samples
from inside import state_of
from problems import hinge
from reference import algorithm_1, algorithm_2, spectral_filter

import poem_cma as pc
from poem_cma.paper.state import Stage
from poem_cma.run.algorithm import Method

SEED, STEPS = 5, 300
P = hinge(d=9)


def on_ball(x: np.ndarray) -> np.ndarray:
    length = np.linalg.norm(x)
    return x if length <= 0.7 else 0.7 * x / length


DOMAINS: list[tuple[Any, Callable[[np.ndarray], np.ndarray]]] = [
    (pc.Ball(0.7, outside=True), on_ball),
    (None, lambda x: x),
]


def library_run(method: Method, domain: Any, paired: bool, budget: int) -> tuple[pc.Optimizer, list[np.ndarray]]:
    """All iterates of a run of the library."""
    opt = pc.Optimizer(np.full(P.d, 0.05), method=method, domain=domain, budget=budget, paired=paired, seed=SEED)
    xi = list(zip(range(2 * budget), samples(SEED, P.sample), strict=False))
    xs = []
    while (probe := opt.ask()) is not None:
        if state_of(opt).stage == Stage.STEP:
            xs.append(state_of(opt).x)
        opt.tell(probe, [P.fun(x, xi[n][1]) for x, n in zip(probe.points, probe.samples, strict=True)])
    return opt, [*xs, state_of(opt).x]


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize(("domain", "project"), DOMAINS)
def test_poem(domain: Any, project: Callable[[np.ndarray], np.ndarray], paired: bool) -> None:
    opt, xs = library_run(pc.methods.poem(initial_distance=0.03), domain, paired, 2 * STEPS)
    u = normals(SEED, 1, P.d, P.d)
    xi = samples(SEED, P.sample)
    output, expected = algorithm_1(
        P.fun, np.full(P.d, 0.05), 0.03, STEPS, project, lambda: next(u)[0], lambda: next(xi), shared=paired
    )
    np.testing.assert_allclose(xs, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(opt.result().x, output, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("pairs", [5, 60])  # fewer than d: the thin SVD; more: the d x d matrix
@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize(("domain", "project"), DOMAINS)
def test_poem_cma(domain: Any, project: Callable[[np.ndarray], np.ndarray], paired: bool, pairs: int) -> None:
    method = pc.methods.poem_cma(tol=0.2, samples=pairs, radius=0.02, initial_distance=0.03)
    opt, xs = library_run(method, domain, paired, 2 * (pairs + STEPS))
    spectrum, unit = opt.result().spectrum, state_of(opt).unit
    assert spectrum is not None

    z = normals(SEED, 1, P.d, P.d)
    xi = samples(SEED, P.sample)
    x0 = np.full(P.d, 0.05)
    _, Sigma = algorithm_2(P.fun, x0, pairs, 0.02, 0.0, lambda: next(z)[0], lambda: next(xi), shared=paired)
    Sigma = spectral_filter(Sigma, 0.2)
    root = spectrum.vectors * np.sqrt(spectrum.eigenvalues)  # any root will do, but both must use the same
    shape = root @ root.T
    np.testing.assert_allclose(shape / np.trace(shape), Sigma / np.trace(Sigma), rtol=1e-9, atol=1e-12)
    assert unit > 0.0

    z = normals(SEED, 1, spectrum.rank, P.d, start=pairs)
    output, expected = algorithm_1(
        P.fun, x0, 0.03, STEPS, project, lambda: next(z)[0], lambda: next(xi), Sigma, root, shared=paired
    )
    np.testing.assert_allclose(xs, expected, rtol=1e-8, atol=1e-11)
    np.testing.assert_allclose(opt.result().x, output, rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("ridge", [0.0, 0.7])
@pytest.mark.parametrize("pairs", [1, 4, 9, 50])
def test_effective_dimension_is_algorithm_2(pairs: int, ridge: float) -> None:
    spectrum = pc.effective_dimension(
        P.fun, np.zeros(P.d), sample=P.sample, samples=pairs, radius=0.02, tol=0.0, ridge=ridge, seed=SEED
    )
    z = normals(SEED, 1, P.d, P.d)
    xi = samples(SEED, P.sample)
    d_star, Sigma = algorithm_2(P.fun, np.zeros(P.d), pairs, 0.02, ridge, lambda: next(z)[0], lambda: next(xi))
    lam = np.linalg.eigvalsh(Sigma)[::-1]
    assert spectrum.effective_dimension == pytest.approx(d_star, rel=1e-9)
    np.testing.assert_allclose(spectrum.all_eigenvalues, lam[: spectrum.rank], rtol=1e-9, atol=1e-13 * lam[0])
    assert spectrum.rank == (P.d if ridge else min(pairs, P.d))
    assert spectrum.nfev == 2 * pairs


def check_fixed_step_run(
    method: Method, estimate: Callable[[int, np.ndarray, Any], tuple[np.ndarray, float]], rows: int
) -> None:
    """Compare projected descent with a given estimate and step size, and the plain mean of the iterates."""
    opt, xs = library_run(method, pc.Ball(0.7, outside=True), True, 2 * STEPS)
    z, xi = normals(SEED, rows, P.d, P.d), samples(SEED, P.sample)
    x = np.full(P.d, 0.05)
    expected = [x]
    for t in range(STEPS):
        i = next(xi)
        g, eta = estimate(t, next(z), lambda y, i=i, x=x: P.fun(x + y, i))
        x = on_ball(x - eta * g)
        expected.append(x)
    np.testing.assert_allclose(xs, expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(opt.result().x, np.mean(expected[:-1], axis=0), rtol=1e-6, atol=1e-8)


def test_tpbco() -> None:
    L, D, d = 3.0, 1.4, P.d

    def estimate(_: int, Z: np.ndarray, F: Any) -> tuple[np.ndarray, float]:
        v = Z[0] / np.linalg.norm(Z[0])
        mu = D * np.sqrt(d / STEPS)
        return d * (F(mu * v) - F(-mu * v)) / (2 * mu) * v, D / (L * np.sqrt(d * STEPS))

    check_fixed_step_run(pc.methods.tpbco(lipschitz=L), estimate, rows=1)


def test_tpge() -> None:
    L, D, d = 3.0, 1.4, P.d

    def estimate(t: int, Z: np.ndarray, F: Any) -> tuple[np.ndarray, float]:
        k = t + 1
        u1, u2 = D / k, D / (d**2 * k**2)
        g = (F(u1 * Z[0] + u2 * Z[1]) - F(u1 * Z[0])) / u2 * Z[1]
        return g, D / (L * np.sqrt(d * np.log(2 * d) * k))

    check_fixed_step_run(pc.methods.tpge(lipschitz=L), estimate, rows=2)


def test_rsnso() -> None:
    L, s0, d = 3.0, 0.9, P.d

    def estimate(_: int, Z: np.ndarray, F: Any) -> tuple[np.ndarray, float]:
        mu = s0 * np.sqrt(d / STEPS)
        return (F(mu * Z[0]) - F(0.0)) / mu * Z[0], s0 / (d * L * np.sqrt(STEPS))

    check_fixed_step_run(pc.methods.rsnso(lipschitz=L, distance=s0), estimate, rows=1)


def test_a_batch_is_the_mean_of_its_estimates() -> None:
    opt = pc.Optimizer(np.zeros(P.d), method="poem", domain=pc.Ball(1.0, outside=True), batch=4, budget=8, seed=SEED)
    probes = []
    while (probe := opt.ask()) is not None:
        probes.append(probe)
    assert len(probes) == 4
    values = [[P.fun(x, int(n)) for x, n in zip(p.points, p.samples, strict=True)] for p in probes]
    before = state_of(opt)
    for p, F in zip(probes[::-1], values[::-1], strict=True):
        opt.tell(p, F)
    v = [(p.points[0] - p.points[1]) / (2 * before.mu) for p in probes]
    g = np.mean([P.d * (F[0] - F[1]) / (2 * before.mu) * w for F, w in zip(values, v, strict=True)], axis=0)
    expected = -0.1 * g / np.linalg.norm(g)  # eta_0 = r_eps / |g_0|, and r_eps = 2 / 20
    np.testing.assert_allclose(opt.result().x_last, expected, rtol=1e-9)
    assert len(set(chain.from_iterable(p.samples.tolist() for p in probes))) == 4
