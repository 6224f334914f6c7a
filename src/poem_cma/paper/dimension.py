"""Two estimates of the number of directions in which a function changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from poem_cma._types import Array
from poem_cma.methods import poem_cma
from poem_cma.optimizer import Optimizer
from poem_cma.paper.algorithm_2 import Spectrum, spectrum_of
from poem_cma.paper.directions import Anisotropic
from poem_cma.paper.state import Stage
from poem_cma.paper.theory import sample_size
from poem_cma.parameters.nest import structure_of
from poem_cma.parameters.runs import nested_errors
from poem_cma.run.checks import check_memory, check_x0, default_initial_distance
from poem_cma.run.oracle import Oracle
from poem_cma.run.randomness import Stream, Streams, make_seed

__all__ = ["effective_dimension", "gradient_spectrum"]


def effective_dimension(
    fun: Callable[..., Any],
    x0: Any,
    *,
    sample: Callable[[np.random.Generator], Any] | None = None,
    paired: bool = True,
    samples: int | None = None,
    radius: float | None = None,
    tol: float = 0.25,
    ridge: float = 0.0,
    seed: int | None = None,
) -> Spectrum:
    """Algorithm 2: the spectrum of two-point gradient estimates at a point, and its d* = trace / largest eigenvalue.

    Parameters
    ----------
    fun, x0, sample, paired, seed
        As in `minimize`. If x0 is a nest, the eigenvectors are flat, with its leaves one after another.
    samples : int, optional
        M, the number of pairs of evaluations; by default floor(d ln d).
    radius : float, optional
        The smoothing radius; by default 1e-2 (1 + |x0|).
    tol : float
        Eigenvalues below `tol` times the largest are dropped.
    ridge : float
        A multiple of the identity added to the second moment.

    Returns
    -------
    Spectrum

    Notes
    -----
    The directions are isotropic, so the second moment of the estimates contains a floor tr(A) I for every rank of A,
    the second moment of the gradients. A small d* comes from few samples and from the filter. `gradient_spectrum`
    estimates A itself.

    Examples
    --------
    >>> import numpy as np, poem_cma as pc
    >>> steep = np.array([10.0, 1.0, 1.0, 1.0, 1.0])
    >>> pc.effective_dimension(lambda x: steep @ x, np.zeros(5), samples=400, tol=0.0, seed=0)
    Spectrum(effective_dimension=2.241, condition=3.814, rank=5, size=400, nfev=800)
    """
    if (form := structure_of(x0)) is not None:
        return effective_dimension(
            form.objective(fun), form.flatten(x0), sample=sample, paired=paired, samples=samples, radius=radius,
            tol=tol, ridge=ridge, seed=seed,
        )  # fmt: skip
    x = check_x0(x0)
    seed = make_seed(seed)
    M = sample_size(len(x)) if samples is None else samples
    oracle = Oracle(fun, sample, Streams(seed), on_failure="drop")
    method = poem_cma(tol=tol, samples=M, radius=radius, ridge=ridge)
    opt = Optimizer(x, method=method, paired=paired, seed=seed)
    while opt._state.stage == Stage.LEARN and (probe := opt.ask()) is not None:
        opt.tell(probe, oracle(probe.points, probe.numbers))
    s = opt._state
    if opt.failures == opt.nfev or s.stage == Stage.LEARN:
        raise RuntimeError(f"no usable pair of values in {opt.nfev} calls; the first failure: {oracle.first_failure}")
    if not isinstance(s.search, Anisotropic):  # a constant function has no direction at all
        return replace(spectrum_of([], len(x), 0), size=M, nfev=opt.nfev)
    with np.errstate(over="ignore"):
        return replace(s.search.spectrum.rescaled(s.unit).rescaled(s.unit), nfev=opt.nfev)


def gradient_spectrum(
    fun: Callable[..., Any],
    x0: Any,
    *,
    sample: Callable[[np.random.Generator], Any] | None = None,
    gradients: int = 10,
    radius: float | None = None,
    seed: int | None = None,
) -> Spectrum:
    """The spectrum of full finite-difference gradients around a point.

    Each gradient takes d + 1 evaluations on one xi. About ten gradients locate the leading directions of
    A = E[grad F grad F']. With few gradients the estimate of d* is too low.

    Parameters
    ----------
    fun, x0, sample, seed
        As in `minimize`.
    gradients : int
        The number of gradients.
    radius : float, optional
        Each gradient is taken at a random point within `radius` of x0, by differences over a tenth of `radius`. By
        default it is 1e-2 (1 + |x0|).

    Returns
    -------
    Spectrum

    Examples
    --------
    >>> import numpy as np, poem_cma as pc
    >>> F = lambda x, xi: xi[0] * x[0] + 0.5 * xi[1] * x[1]
    >>> pc.gradient_spectrum(F, np.zeros(50), sample=lambda rng: rng.normal(size=2), gradients=200, seed=0).rank
    2
    """
    if (form := structure_of(x0)) is not None:
        with nested_errors(form):
            return gradient_spectrum(
                form.objective(fun), form.flatten(x0), sample=sample, gradients=gradients, radius=radius, seed=seed
            )
    x = check_x0(x0)
    d = len(x)
    seed = make_seed(seed)
    if gradients != int(gradients) or gradients < 1:
        raise ValueError(f"gradients must be a whole number from 1 up, but is {gradients!r}")
    radius = default_initial_distance(x, np.inf) if radius is None else radius
    if not 0.0 < radius < np.inf:
        raise ValueError(f"radius must be positive and finite, but is {radius!r}")
    check_memory(d, gradients)
    streams = Streams(seed)
    oracle = Oracle(fun, sample, streams, on_failure="raise")

    def full_gradients() -> Iterator[Array]:
        for n in range(gradients):
            w = streams.at(Stream.BASES, n).standard_normal(d + 2)
            base = x + radius * w[:d] / np.sqrt(w @ w)  # uniform in the ball (d + 2 normals, d of them kept)
            yield _full_gradient(oracle, base, 0.1 * radius, n)[None]

    spectrum = spectrum_of(full_gradients(), d, gradients)
    return replace(spectrum, nfev=oracle.nfev)


def _full_gradient(oracle: Oracle, base: Array, h: float, number: int) -> Array:
    """Forward differences along all axes, a point at a time."""
    samples = [number]
    at_base = oracle(base[None].copy(), samples)[0]
    g = np.empty(len(base))
    for j in range(len(base)):
        point = base.copy()
        point[j] += h
        g[j] = (oracle(point[None], samples)[0] - at_base) / h
    return g
