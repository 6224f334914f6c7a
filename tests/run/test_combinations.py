"""Every method on every domain, paired or not, vectorised or not: what all of them must do."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from problems import hinge
from scipy.optimize import Bounds

import poem_cma as pc
from poem_cma.result import Status

P = hinge(d=5)
METHODS = [
    pc.methods.auto(),
    pc.methods.poem_cma(samples=15),
    pc.methods.poem_cma(samples=3, tol=0.0, ridge=0.05, whitening="exact"),
    pc.methods.poem(),
    pc.methods.tpbco(lipschitz=P.lipschitz, diameter=2.0),
    pc.methods.tpge(lipschitz=P.lipschitz, diameter=2.0),
    pc.methods.rsnso(lipschitz=P.lipschitz, distance=2.0),
]
MAKERS = [
    lambda outside: pc.Ball(0.8, outside=outside),
    lambda outside: pc.Box(-0.3, [0.5, 0.4, 0.3, 0.6, 0.5], outside=outside),
    lambda outside: pc.Box([-0.3, 0.0, -1.0, -0.2, -0.1], [0.5, 0.0, 1.0, 0.2, 0.9], outside=outside),
    lambda outside: pc.Simplex(0.9, outside=outside),
    lambda outside: pc.L1Ball(0.9, outside=outside),
]
DOMAINS = [make(outside) for make, outside in product(MAKERS, [False, True])]
BOUNDS = Bounds(np.full(5, -0.4), np.full(5, 0.6))


def short(part: Any) -> str:
    """A name for the test's id."""
    if isinstance(part, pc.Method):
        return f"{part.name}-{part.settings.get('whitening', '')}"
    return type(part).__name__ + ("-outside" if getattr(part, "outside", False) else "")


class Slab:
    """A user's own domain: |x_0| <= 0.2."""

    diameter = np.inf

    def __repr__(self) -> str:
        return "Slab()"

    def project(self, x: np.ndarray) -> np.ndarray:
        y = x.copy()
        y[0] = np.clip(y[0], -0.2, 0.2)
        return y


@pytest.mark.parametrize("vectorized", [False, True, "rows"])
@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("domain", [None, Slab(), BOUNDS, *DOMAINS], ids=short)
@pytest.mark.parametrize("method", METHODS, ids=short)
def test_every_combination(method: pc.Method, domain: Any, paired: bool, vectorized: Any) -> None:
    seen: list[np.ndarray] = []

    def fun(x: np.ndarray, i: Any) -> Any:
        seen.extend(np.atleast_2d(x).copy())
        return P.rows(x, i) if vectorized else P.fun(x, i)

    x0 = np.full(5, 0.18) if isinstance(domain, pc.Simplex) else np.zeros(5)
    result = pc.minimize(
        fun, x0, sample=P.sample, domain=domain, method=method, paired=paired, vectorized=vectorized, budget=160, seed=3
    )
    assert result.status in Status.ENDS  # so short a run may find nothing better than x0
    assert result.nfev == len(seen) <= 160
    assert result.nit >= 1
    assert result.failures == 0
    assert np.isfinite(result.fun)
    assert all(np.isfinite(column).all() for column in result.history.values())
    assert len(result.history["nfev"]) == result.nit
    for x in (result.x, result.x_last, result.x_average):
        assert x.shape == (5,)
        if domain is not None:
            assert np.allclose(project(domain, x), x, rtol=0.0, atol=1e-12)
    if domain is not None and not getattr(domain, "outside", False):
        for x in seen:
            assert np.allclose(project(domain, x), x, rtol=0.0, atol=1e-12)


def project(domain: Any, x: np.ndarray) -> np.ndarray:
    return np.clip(x, domain.lb, domain.ub) if isinstance(domain, Bounds) else domain.project(x)


@pytest.mark.parametrize("domain", [d for d in DOMAINS if not d.outside], ids=short)
@pytest.mark.parametrize("method", METHODS, ids=short)
def test_no_evaluation_leaves_a_domain_from_its_boundary(method: pc.Method, domain: Any) -> None:
    """From a corner of the set, over a long run, no queried point is outside."""
    worst = 0.0

    def fun(x: np.ndarray, i: int) -> float:
        nonlocal worst
        worst = max(worst, float(np.abs(x - domain.project(x)).max()))
        if isinstance(domain, pc.Box):
            assert (x >= domain.lower).all()
            assert (x <= domain.upper).all()
        return P.fun(x, i)

    corner = domain.for_dimension(5).project(np.array([50.0, 0.0, -60.0, 0.0, 0.0]))
    pc.minimize(fun, corner, sample=P.sample, domain=domain, method=method, budget=600, seed=1)
    assert worst < 1e-12
