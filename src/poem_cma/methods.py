"""The methods, one row of parts each.

>>> import poem_cma as pc
>>> pc.methods.poem(initial_distance=0.1)
poem(initial_distance=0.1)

`pc.minimize(..., method="poem")` takes the row with its defaults; the constructors here set what a method lets you set.
None of them needs the dimension, the number of steps or x0: the run knows those.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from functools import cache
from math import inf
from typing import Any, Literal

from poem_cma.auto.algorithm import AUTO, ONLY_FAR, ONLY_NEAR
from poem_cma.paper import rules
from poem_cma.paper.differences import Central, Double, Forward
from poem_cma.paper.parts import count, fixed_horizon, gaussian, number, positive, sphere
from poem_cma.run.algorithm import Learning, Method

__all__ = ["auto", "by_name", "far", "near", "poem", "poem_cma", "rsnso", "tpbco", "tpge"]


def poem_cma(
    tol: float = 0.25,
    samples: int | None = None,
    radius: float | None = None,
    ridge: float = 0.0,
    initial_distance: float | None = None,
    whitening: Literal["paper", "exact"] = "paper",
) -> Method:
    """POEM-CMA: POEM along directions drawn from a covariance that Algorithm 2 estimates at x0.

    Parameters
    ----------
    tol : float
        The spectral filter: eigenvalues below `tol` times the largest are dropped. The search never leaves the
        remaining subspace, so the method cannot get below the least value there. With 0, only zeros are dropped.
    samples : int, optional
        M, the number of preliminary pairs of evaluations. By default floor(d ln d), but at most an eighth of the budget
        (so that the 2M evaluations are at most a quarter of it), and no more than fits in memory.
    radius : float, optional
        The smoothing radius of the preliminary pairs; by default the initial distance.
    ridge : float
        A multiple of the identity added to the second moment, in units of squared slopes.
    initial_distance : float, optional
        r_eps; by default a twentieth of the domain's diameter, or 1e-2 (1 + |x0|) if that is infinite.
    whitening : "paper" or "exact"
        The preconditioner tr(Sigma) Sigma^+, or the inverse of the directions' exact second moment.

    References
    ----------
    Sholokhov and Rogozin, "A Parameter-Free Zeroth-Order Method with Covariance Matrix Adaptation and Effective
    Dimension", Algorithms 1 and 2.

    Examples
    --------
    >>> poem_cma(tol=0.2)
    poem_cma(tol=0.2, ridge=0.0, whitening='paper')
    """
    if whitening not in ("paper", "exact"):
        raise ValueError(f'whitening must be "paper" or "exact", not {whitening!r}')
    learning = Learning(
        tol=number("tol", tol, 0.0, 1.0),
        samples=None if samples is None else count("samples", samples),
        radius=positive("radius", radius),
        ridge=number("ridge", ridge, 0.0, inf),
        whitening=whitening,
    )
    return Method(
        "poem-cma",
        search=sphere,  # until Algorithm 2 has learned a better one
        difference=Central(),
        smoothing=rules.poem_smoothing,
        step_size=rules.distance_over_gradients,
        weight=rules.distance_weight,
        learning=learning,
        settings=asdict(learning) | {"initial_distance": positive("initial_distance", initial_distance)},
    )


def poem(initial_distance: float | None = None) -> Method:
    """POEM, with the initial distance r_eps as its only setting.

    By default r_eps is a twentieth of the domain's diameter, or 1e-2 (1 + |x0|) if that is infinite.

    References
    ----------
    Ren and Luo, "A parameter-free and near-optimal zeroth-order algorithm for stochastic convex optimization",
    ICML 2025.

    Examples
    --------
    >>> poem()
    poem()
    """
    return Method(
        "poem",
        search=sphere,
        difference=Central(),
        smoothing=rules.poem_smoothing,
        step_size=rules.distance_over_gradients,
        weight=rules.distance_weight,
        settings={"initial_distance": positive("initial_distance", initial_distance)},
    )


def tpbco(lipschitz: float, diameter: float | None = None, steps: int | None = None) -> Method:
    """TPBCO: two-point bandit descent with a fixed step D / (L sqrt(d T)).

    Parameters
    ----------
    lipschitz : float
        L, the largest slope of any F(.; xi).
    diameter : float, optional
        D; by default the domain's.
    steps : int, optional
        T; by default as many as the budget allows.

    References
    ----------
    Shamir, "An optimal algorithm for bandit and zero-order convex optimization with two-point feedback", JMLR 2017.

    Examples
    --------
    >>> tpbco(lipschitz=4.6)
    tpbco(lipschitz=4.6)
    """
    return Method(
        "tpbco",
        search=sphere,
        difference=Central(),
        smoothing=rules.tpbco_smoothing,
        step_size=rules.tpbco_step,
        weight=rules.uniform_weight,
        needs=("lipschitz", "diameter", "steps"),
        settings=fixed_horizon(lipschitz, diameter=diameter, steps=steps),
    )


def tpge(lipschitz: float, diameter: float | None = None) -> Method:
    """TPGE: two-point gradient estimates at two smoothing scales, for non-smooth functions.

    Parameters
    ----------
    lipschitz : float
        L, the largest slope of any F(.; xi).
    diameter : float, optional
        D; by default the domain's.

    References
    ----------
    Duchi, Jordan, Wainwright and Wibisono, "Optimal rates for zero-order convex optimization: the power of two
    function evaluations", IEEE Transactions on Information Theory, 2015.

    Examples
    --------
    >>> tpge(lipschitz=4.6, diameter=2.0)
    tpge(lipschitz=4.6, diameter=2.0)
    """
    return Method(
        "tpge",
        search=gaussian,
        difference=Double(),
        smoothing=rules.tpge_smoothing,
        spacing=rules.tpge_inner_smoothing,
        step_size=rules.tpge_step,
        weight=rules.uniform_weight,
        needs=("lipschitz", "diameter"),
        settings=fixed_horizon(lipschitz, diameter=diameter),
    )


def rsnso(lipschitz: float, distance: float | None = None, steps: int | None = None) -> Method:
    """RSNSO: random gradient-free descent along Gaussian directions with a fixed step s_0 / (d L sqrt(T)).

    Parameters
    ----------
    lipschitz : float
        L, the largest slope of any F(.; xi).
    distance : float, optional
        s_0, a bound on the distance from x0 to a minimiser; by default the domain's diameter, which is one.
    steps : int, optional
        T; by default as many as the budget allows.

    References
    ----------
    Nesterov and Spokoiny, "Random gradient-free minimization of convex functions", Foundations of Computational
    Mathematics, 2017.

    Examples
    --------
    >>> rsnso(lipschitz=4.6, distance=1.0)
    rsnso(lipschitz=4.6, distance=1.0)
    """
    return Method(
        "rsnso",
        search=gaussian,
        difference=Forward(),
        smoothing=rules.rsnso_smoothing,
        step_size=rules.rsnso_step,
        weight=rules.uniform_weight,
        needs=("lipschitz", "distance", "steps"),
        settings=fixed_horizon(lipschitz, distance=distance, steps=steps),
    )


def auto() -> Method:
    """The default: POEM if near differences predict far ones, otherwise an evolution strategy (CMA).

    It measures a scale, whether the change over a tiny distance predicts the change over that scale, and which of two
    points is better. With a budget below 20 evaluations it is POEM.

    Examples
    --------
    >>> auto()
    auto()
    """
    return replace(poem(), name="auto", settings={}, algorithm=AUTO, fallback=poem(), box_units=True)


def near() -> Method:
    """The near search of `auto` alone: exact slopes from tiny differences, and dual averaging.

    For functions that are locally linear on each sample, such as losses of models on data.

    Examples
    --------
    >>> near()
    near()
    """
    return replace(auto(), name="near", algorithm=ONLY_NEAR)


def far() -> Method:
    """The far search of `auto` alone: an evolution strategy (CMA) with mirrored pairs, one sample for each generation.

    For functions with jumps, counts, rounding or chaos, or with noise in every evaluation.

    Examples
    --------
    >>> far()
    far()
    """
    return replace(auto(), name="far", algorithm=ONLY_FAR)


_CONSTRUCTORS: dict[str, Callable[..., Method]] = {
    "auto": auto,
    "near": near,
    "far": far,
    "poem-cma": poem_cma,
    "poem": poem,
    "tpbco": tpbco,
    "tpge": tpge,
    "rsnso": rsnso,
}


def by_name(method: str | Method, **settings: Any) -> Method:
    """A method from its name, with its defaults or the settings given; a `Method` is returned as it is.

    Examples
    --------
    >>> by_name("auto")
    auto()
    """
    if isinstance(method, Method):
        return method
    names = ", ".join(_CONSTRUCTORS)
    if not isinstance(method, str):
        raise TypeError(f"method must be one of {names}, or made by a constructor in poem_cma.methods, not {method!r}")
    name = method.lower().replace("_", "-")
    if name not in _CONSTRUCTORS:
        raise ValueError(f"unknown method {method!r}; the known ones are {names}")
    if name in ("tpbco", "tpge", "rsnso") and "lipschitz" not in settings:
        raise ValueError(
            f"{name} needs the Lipschitz constant of F: pass method=poem_cma.methods.{name}(lipschitz=...); "
            'the methods that need nothing are "poem-cma" and "poem"'
        )
    return _CONSTRUCTORS[name](**settings) if settings else _with_defaults(name)


@cache
def _with_defaults(name: str) -> Method:
    """One for all runs: a method is a value."""
    return _CONSTRUCTORS[name]()
