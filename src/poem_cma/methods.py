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
from math import inf, sqrt
from typing import Any, Literal

from poem_cma import rules
from poem_cma.auto.algorithm import AUTO
from poem_cma.auto.apart import APART
from poem_cma.auto.exact import EXACT
from poem_cma.core import Learning, Method
from poem_cma.differences import Central, Double, Forward
from poem_cma.search import Gaussian, Sphere

__all__ = ["auto", "by_name", "poem", "poem_cma", "rsnso", "tpbco", "tpge"]


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
        The spectral filter: eigenvalues under `tol` times the largest are dropped. The search never leaves the
        subspace that is left, so its optimum is the best the method can reach; 0 drops nothing but zeros.
    samples : int, optional
        M, the number of preliminary pairs of calls. By default floor(d ln d), but at most an eighth of the budget
        (so that the 2M calls are at most a quarter of it) and no more than fits in memory.
    radius : float, optional
        The smoothing radius of the preliminary pairs; by default the initial distance.
    ridge : float
        A multiple of the identity added to the second moment, in units of squared slopes.
    initial_distance : float, optional
        r_eps; by default a twentieth of the domain's diameter, or 1e-2 (1 + |x0|) where that is infinite.
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
        tol=_number("tol", tol, 0.0, 1.0),
        samples=None if samples is None else _count("samples", samples),
        radius=_positive("radius", radius),
        ridge=_number("ridge", ridge, 0.0, inf),
        whitening=whitening,
    )
    return Method(
        "poem-cma",
        search=_sphere,  # until Algorithm 2 has learned a better one
        difference=Central(),
        smoothing=rules.poem_smoothing,
        step_size=rules.distance_over_gradients,
        weight=rules.distance_weight,
        learning=learning,
        settings=asdict(learning) | {"initial_distance": _positive("initial_distance", initial_distance)},
    )


def poem(initial_distance: float | None = None) -> Method:
    """POEM: nothing to set but, if you wish, the initial distance r_eps.

    By default r_eps is a twentieth of the domain's diameter, or 1e-2 (1 + |x0|) where that is infinite.

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
        search=_sphere,
        difference=Central(),
        smoothing=rules.poem_smoothing,
        step_size=rules.distance_over_gradients,
        weight=rules.distance_weight,
        settings={"initial_distance": _positive("initial_distance", initial_distance)},
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
        search=_sphere,
        difference=Central(),
        smoothing=rules.tpbco_smoothing,
        step_size=rules.tpbco_step,
        weight=rules.uniform_weight,
        needs=("lipschitz", "diameter", "steps"),
        settings=_fixed_horizon(lipschitz, diameter=diameter, steps=steps),
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
        search=_gaussian,
        difference=Double(),
        smoothing=rules.tpge_smoothing,
        spacing=rules.tpge_inner_smoothing,
        step_size=rules.tpge_step,
        weight=rules.uniform_weight,
        needs=("lipschitz", "diameter"),
        settings=_fixed_horizon(lipschitz, diameter=diameter),
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
        search=_gaussian,
        difference=Forward(),
        smoothing=rules.rsnso_smoothing,
        step_size=rules.rsnso_step,
        weight=rules.uniform_weight,
        needs=("lipschitz", "distance", "steps"),
        settings=_fixed_horizon(lipschitz, distance=distance, steps=steps),
    )


def auto(
    *,
    walks: bool = True,
    bisection: bool = True,
    digits: bool = True,
    directions: bool = True,
    base: bool = True,
    flat: bool = True,
    common: bool = True,
    subspace: bool = True,
    metric: bool = True,
    ray: bool = True,
    rescaling: bool = True,
    units: bool = True,
    race: bool = True,
    newton: bool = True,
    averaging: bool = True,
    replay: bool = True,
    check: bool = True,
    pick: bool = True,
    dual: bool | None = None,
) -> Method:
    """The method of our own: no step size, no smoothing radius, no initial distance, nothing to set.

    Descent or dual averaging with gradients from bisected walks, in a scale and a metric that it learns (see
    `poem_cma.auto`).
    Where the noise cannot be shared by the points of a probe, pairs of points far apart take over (see
    `poem_cma.auto.apart`), and where there is none, quasi-Newton steps (see `poem_cma.auto.exact`); for less than 20
    calls POEM does the work.

    Its parts can be switched off, to see what each is worth.

    Parameters
    ----------
    walks : bool
        Gradients from walks along the axes; without them random directions only.
    bisection : bool
        Ask a walk where it makes a difference; without it everywhere.
    digits : bool
        Slopes that are small multiples of one number are told many at a time, by steps that are digits.
    directions : bool
        Several random directions a step, on one sample; without it one.
    base : bool
        Differences around a point drawn at random near x; without it around x itself, which is biased at kinks.
    flat : bool
        Leave a sample early where two random directions see no change.
    common : bool
        Tell a penalty on the size of x, which all samples have in common, from what is a sample's own.
    subspace : bool
        Exact slopes on the span of the gradients, where that is small.
    metric : bool
        A diagonal metric learned from the slopes.
    ray : bool
        The first scale by values along a ray; without it a small one, as POEM begins with.
    rescaling : bool
        Let the scale follow the average; without it the first scale stays.
    units : bool
        Measure every variable by its slopes, where values along a ray show that to be much better.
    race : bool
        Where slopes differ by more than a factor of 100, run with and without such units for a while, and compare.
    newton : bool
        Where F has no noise: quasi-Newton steps, and planes below F where it has kinks.
    averaging : bool
        Averages of the iterates, in which later ones weigh more by a power of their number; without it the last one.
    replay : bool
        Spend the last calls, an eighth or a fifth, on samples that were seen before, where that is cheap.
    check : bool
        Hand over to POEM where there is no progress.
    pick : bool
        Choose the point to return by values.
    dual : bool, optional
        Dual averaging, or descent; by default dual averaging where the first scale is comparable to the domain.

    Examples
    --------
    >>> auto()
    auto()
    >>> auto(metric=False)
    auto(metric=False)
    """
    parts = {
        "walks": walks,
        "bisection": bisection,
        "digits": digits,
        "directions": directions,
        "base": base,
        "flat": flat,
        "common": common,
        "subspace": subspace,
        "metric": metric,
        "ray": ray,
        "rescaling": rescaling,
        "units": units,
        "race": race,
        "newton": newton,
        "averaging": averaging,
        "replay": replay,
        "check": check,
        "pick": pick,
    }
    changed = {name: False for name, on in parts.items() if not on} | ({} if dual is None else {"dual": bool(dual)})
    noisy = replace(poem(), name="auto", settings=changed, algorithm=AUTO, fallback=poem(), unshared=_apart())
    rough = replace(noisy, name="rough", settings=changed | {"check": False})  # never worse than where it begins
    return replace(noisy, noiseless=replace(rough, name="exact", algorithm=EXACT, fallback=rough))


def _apart() -> Method:
    """Pairs far apart, for noise that cannot be shared."""
    return replace(poem(), name="apart", algorithm=APART)


_CONSTRUCTORS: dict[str, Callable[..., Method]] = {
    "auto": auto,
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
    >>> by_name("auto")  # the best there is
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


def _sphere(d: int, domain: Any) -> Sphere:
    return Sphere(d, domain.hull_dimension(d), domain.tangent)


def _gaussian(d: int, domain: Any) -> Gaussian:
    # Where no query may leave the domain, one direction in 10^8 is cut to a length that bounds them all.
    reach = sqrt(d) + 6.0 if domain.inside else inf
    return Gaussian(d, domain.hull_dimension(d), domain.tangent, reach)


def _fixed_horizon(lipschitz: float, *, steps: int | None = None, **lengths: float | None) -> dict[str, Any]:
    settings: dict[str, Any] = {"lipschitz": _positive("lipschitz", lipschitz)}
    settings |= {name: _positive(name, value) for name, value in lengths.items()}
    return settings if steps is None else settings | {"steps": _count("steps", steps)}


def _positive(name: str, value: float | None) -> float | None:
    if value is None:
        return None
    if not 0.0 < value < inf:
        raise ValueError(f"{name} must be positive and finite, but is {value!r}")
    return float(value)


def _number(name: str, value: float, least: float, most: float) -> float:
    if not least <= value <= most or value == inf:
        raise ValueError(f"{name} must be between {least:g} and {most:g}, but is {value!r}")
    return float(value)


def _count(name: str, value: int) -> int:
    if value != int(value) or value < 1:
        raise ValueError(f"{name} must be a whole number from 1 up, but is {value!r}")
    return int(value)
