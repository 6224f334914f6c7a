"""Problems whose least value a linear program (or least squares) gives, with the dual value as the proof."""

from __future__ import annotations

from typing import Any

import numpy as np

from poem_cma.domains.product import product
from poem_cma.domains.sets import Box, Simplex
from poem_cma.problems.problem import Problem

__all__ = ["cvar_portfolio", "ill_scaled_absolute", "ill_scaled_squared", "max_affine"]


def max_affine() -> Problem:
    """f(x) = max over j of a_j'x + b_j, normal a_j and b_j; no noise."""
    A, b = _pieces()
    pieces, d = A.shape
    x, duals = _linear_program(
        np.r_[np.zeros(d), 1.0], A_ub=np.c_[A, -np.ones(pieces)], b_ub=-b, bounds=[(None, None)] * (d + 1)
    )
    weights = np.maximum(-duals, 0.0)
    weights /= weights.sum()
    upper, lower = float((A @ x[:d] + b).max()), float(weights @ b)
    away = float(np.linalg.norm(A.T @ weights))
    return Problem(
        name="max-affine",
        x0=np.zeros(d),
        domain=None,
        fun=lambda X, _: (np.einsum("ij,kj->ik", X, A) + b).max(axis=-1),  # X @ A.T may round a row by its company
        sample=lambda _: None,
        objective=lambda x: float((A @ x + b).max()),
        certificate=f"linear program: some average of the pieces has slope {away:.0e} and value {lower}; "
        f"f = {upper} at a point",
        noisy=False,
        smooth=False,
        gradient=lambda x, _: A[np.argmax(A @ x + b)],
        **_between(lower, upper),
    )


def _pieces() -> tuple[Any, Any]:
    """60 slopes in 20 dimensions, and 60 offsets."""
    rng = np.random.default_rng(1)
    return rng.standard_normal((60, 20)), rng.standard_normal(60)


def cvar_portfolio(assets: int = 20, scenarios: int = 1000, level: float = 0.95) -> Problem:
    """The conditional value at risk of a portfolio: F(w, t; i) = t + max(0, loss_i'w - t) / (1 - level).

    Every scenario has losses of all assets, from a market with heavy tails and from each asset's own noise. The weights
    w are on the simplex; the threshold t, at the optimum the value at risk, is the last variable, between -1 and 1.
    """
    rng = np.random.default_rng(95)
    volatility = rng.permutation(np.geomspace(0.02, 0.06, assets))
    market = rng.standard_t(4, size=(scenarios, 1)) * rng.uniform(0.1, 0.9, size=assets)
    L = -volatility * (0.1 + market + rng.standard_t(5, size=(scenarios, assets)))
    tail = 1.0 / (1.0 - level)

    def fun(X: Any, i: int) -> Any:
        return X[:, -1] + tail * np.maximum(0.0, X[:, :-1] @ L[i] - X[:, -1])

    def gradient(x: Any, i: int) -> Any:
        share = tail if float(L[i] @ x[:-1]) > x[-1] else 0.0  # of the loss that is above the threshold
        return np.r_[share * L[i], 1.0 - share]

    def objective(x: Any) -> float:
        return float(x[-1] + tail * np.maximum(0.0, L @ x[:-1] - x[-1]).mean())

    x, u = _least_cvar(L, tail)
    mean_u = float(u.mean())
    # f is at least the mean of t + u_i (loss_i'w - t), for any u between 0 and the tail's weight.
    lower, upper = float((u @ L).min()) / scenarios - abs(1.0 - mean_u), objective(x)
    return Problem(
        name="cvar-portfolio",
        x0=np.r_[np.full(assets, 1.0 / assets), 0.0],
        domain=product([(0, assets, Simplex()), (assets, assets + 1, Box(-1.0, 1.0))]),
        fun=fun,
        sample=lambda rng: int(rng.integers(scenarios)),
        objective=objective,
        certificate=f"linear program: weights of the scenarios prove f >= {lower}; f = {upper} at a point",
        noisy=True,
        smooth=False,
        gradient=gradient,
        **_between(lower, upper),
    )


def _least_cvar(L: Any, tail: float) -> tuple[Any, Any]:
    """The best weights and threshold, and the dual weights of the scenarios."""
    from scipy.sparse import csr_array, eye_array, hstack

    n, k = L.shape
    cost = np.r_[np.zeros(k), 1.0, np.full(n, tail / n)]
    rows = hstack([csr_array(L), csr_array(-np.ones((n, 1))), -eye_array(n)], format="csr")
    total = np.r_[np.ones(k), np.zeros(n + 1)][None, :]
    bounds = [(0.0, None)] * k + [(-1.0, 1.0)] + [(0.0, None)] * n
    x, duals = _linear_program(cost, A_ub=rows, b_ub=np.zeros(n), A_eq=total, b_eq=[1.0], bounds=bounds)
    return np.r_[x[:k] / x[:k].sum(), x[k]], np.clip(-n * duals, 0.0, tail)


def ill_scaled_absolute() -> Problem:
    """Absolute loss of a regression whose columns have sizes from 1e-3 to 1e3."""
    C, y, sizes = _columns()
    n, d = C.shape
    cost = np.r_[np.zeros(d), np.full(2 * n, 1.0 / n)]
    rows = np.c_[C, np.eye(n), -np.eye(n)]
    bounds = [(None, None)] * d + [(0.0, None)] * (2 * n)
    x, duals = _linear_program(cost, A_eq=rows, b_eq=y, bounds=bounds)
    u = np.clip(n * duals, -1.0, 1.0)
    lower, upper = float(u @ y) / n, float(np.abs(C @ x[:d] - y).mean())
    away = float(np.linalg.norm(C.T @ u)) / n
    why = (
        f"linear program: signs u in [-1, 1] with mean u_i a_i = {away:.0e} prove f >= {lower}; f = {upper} at a point"
    )
    return _regression("ill-scaled-absolute", C * sizes, y, np.abs, lower, upper, why)


def ill_scaled_squared() -> Problem:
    """Half the squared loss of a regression whose columns have sizes from 1e-3 to 1e3."""
    C, y, sizes = _columns()
    x = np.linalg.lstsq(C, y, rcond=None)[0]
    r = C @ x - y
    f = 0.5 * float(r @ r) / len(y)
    away = float(np.linalg.norm(C.T @ r)) / len(y)
    why = f"least squares: f = {f} at a point where the gradient, in equal units, is {away:.0e}"
    return _regression("ill-scaled-squared", C * sizes, y, lambda r: 0.5 * r**2, f, f, why)


def _columns() -> tuple[Any, Any, Any]:
    """400 examples of 20 features of size 1 and a response to which all contribute alike; the sizes to come."""
    rng = np.random.default_rng(20)
    C = rng.standard_normal((400, 20))
    y = C @ rng.choice([-1.0, 1.0], size=20) + 0.5 * rng.standard_normal(400)
    return C, y, rng.permutation(np.geomspace(1e-3, 1e3, 20))


def _regression(name: str, A: Any, y: Any, loss: Any, lower: float, upper: float, why: str) -> Problem:
    """The mean of loss(a_i'x - y_i), xi being the number of an example."""
    n, d = A.shape
    return Problem(
        name=name,
        x0=np.zeros(d),
        domain=None,
        fun=lambda X, i: loss(X @ A[i] - y[i]),
        sample=lambda rng: int(rng.integers(n)),
        objective=lambda x: float(loss(A @ x - y).mean()),
        certificate=why,
        noisy=True,
        smooth=loss is not np.abs,
        gradient=lambda x, i: (np.sign if loss is np.abs else np.asarray)(A[i] @ x - y[i]) * A[i],
        **_between(lower, upper),
    )


def _between(lower: float, upper: float) -> Any:
    """Rounding may put the two values the wrong way round."""
    return {"optimum": min(lower, upper), "slack": abs(upper - lower)}


def _linear_program(cost: Any, **constraints: Any) -> tuple[Any, Any]:
    """The solution, and the multipliers of the inequalities or, where there are none, of the equations."""
    from scipy.optimize import linprog

    answer: Any = linprog(cost, method="highs-ds", **constraints)
    if not answer.success:
        raise RuntimeError(f"the linear program was not solved: {answer.message}")
    rows = answer.ineqlin if "A_ub" in constraints else answer.eqlin
    return answer.x, rows.marginals
