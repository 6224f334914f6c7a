"""Algorithm 2: the second moment of gradient estimates, the spectral filter, d*, kappa, and the whitening."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from poem_cma._types import Array, Series
from poem_cma.paper import theory

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["MEMORY_LIMIT", "Spectrum", "exact_moments", "gradient_moment", "memory_needed", "spectrum_of"]

#: The most memory, in bytes, that the estimates and their decomposition may take. A request beyond it is refused.
MEMORY_LIMIT = 4 * 2**30

#: In more dimensions than these, many estimates are kept as a sketch of `_SKETCH` rows, or of as many as fit in memory.
SKETCH_ABOVE = 2000
_SKETCH = 100


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The eigenvalues and eigenvectors of a second-moment matrix, kept without forming the matrix.

    The matrix is ``vectors @ diag(eigenvalues) @ vectors.T``. If a ridge was added to fewer estimates than dimensions,
    `floor` times the identity on the other directions is added.

    Attributes
    ----------
    eigenvalues : array (k,)
        The eigenvalues that are kept, the largest first.
    vectors : array (d, k)
        Their orthonormal eigenvectors, as columns.
    effective_dimension : float
        d* = trace / largest eigenvalue.
    condition : float
        kappa = largest / smallest eigenvalue that is kept.
    rank : int
        The number of directions that are kept.
    size : int
        The number of gradient estimates.
    nfev : int
        The number of evaluations.
    floor : float
        The eigenvalue of the directions that are not in `vectors`.
    """

    eigenvalues: Series
    vectors: Series
    effective_dimension: float
    condition: float
    rank: int
    size: int
    nfev: int
    floor: float = 0.0

    @property
    def all_eigenvalues(self) -> Array:
        """The eigenvalues that are kept, including those of the floor."""
        return np.append(self.eigenvalues, np.full(self.rank - len(self.eigenvalues), self.floor))

    def rescaled(self, factor: float) -> Spectrum:
        """The spectrum of the matrix times a factor; d* and kappa do not change."""
        with np.errstate(over="ignore", under="ignore"):
            return replace(self, eigenvalues=self.eigenvalues * factor, floor=self.floor * factor)

    def plot(self) -> Figure:
        """Plot the eigenvalues, and the share of the trace in the leading directions, with d*.

        Needs matplotlib (``pip install "poem-cma[plot]"``). Returns the figure.
        """
        from poem_cma.plots.figures import plot_spectrum

        return plot_spectrum(self)

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """The same as an interactive page in one file; needs plotly (``pip install "poem-cma[html]"``)."""
        from poem_cma.plots.pages import to_html

        return to_html(self, path)

    def _repr_html_(self) -> str:
        """A card, for notebooks."""
        from poem_cma.plots.cards import spectrum_card

        return spectrum_card(self)

    def __repr__(self) -> str:
        return (
            f"Spectrum(effective_dimension={self.effective_dimension:.4g}, condition={self.condition:.4g}, "
            f"rank={self.rank}, size={self.size}, nfev={self.nfev})"
        )


def memory_needed(d: int, samples: int) -> int:
    """Bytes that the decomposition of `samples` estimates in d dimensions takes: two matrices, the thinner kind."""
    rows = min(samples, d)
    return 2 * 8 * d * (min(rows, 2 * _sketch_rows(d)) if d > SKETCH_ABOVE else rows)


def _sketch_rows(d: int) -> int:
    return int(max(1, min(_SKETCH, MEMORY_LIMIT // (4 * 8 * d))))


def spectrum_of(
    estimates: Iterable[Array],
    d: int,
    samples: int,
    *,
    tol: float = 0.0,
    ridge: float = 0.0,
    dimension: int | None = None,
) -> Spectrum:
    """The spectrum of (1/M) sum g_i g_i' + ridge I, without the eigenvalues under `tol` times the largest.

    Parameters
    ----------
    estimates : iterable of arrays (n, d)
        Gradient estimates, a block at a time; `samples` rows in all.
    d, samples : int
        Their dimension and their number M. Fewer estimates than dimensions are decomposed as they are (thin SVD);
        a d x d matrix is formed only for M >= d. Above `SKETCH_ABOVE` dimensions neither is done with more than two
        hundred: of each two hundred rows the leading hundred directions are kept (streaming PCA).
    tol, ridge : float
        The spectral filter and the multiple of the identity that is added before it.
    dimension : int, optional
        The dimension that the ridge fills, when directions are confined to fewer than d.

    Examples
    --------
    >>> spectrum_of([np.array([[2.0, 0.0, 0.0], [0.0, 1.0, 0.0]])], d=3, samples=2)
    Spectrum(effective_dimension=1.25, condition=4, rank=2, size=2, nfev=0)
    """
    if d > SKETCH_ABOVE and samples > 2 * _sketch_rows(d):
        lam, Q = _from_sketch(estimates, d, samples)
    elif samples < d:
        lam, Q = _from_estimates(estimates, d, samples)
    else:
        lam, Q = _from_second_moment(estimates, d, samples)
    full = d if dimension is None else dimension
    lam, Q = lam[:full], Q[:, :full]
    lam = lam + ridge  # Σ̂ ← Σ̂ + ε I
    floor = ridge if full > len(lam) else 0.0
    top = max(float(lam[0]) if len(lam) else 0.0, floor)
    rounding = top * d * np.finfo(float).eps  # an eigenvalue below it is a zero
    keep = (lam > rounding) & (lam >= tol * top)
    lam, Q = lam[keep], _signed(Q[:, keep])
    floor = floor if floor > rounding and floor >= tol * top else 0.0
    rank = full if floor > 0.0 else len(lam)
    spectrum = Spectrum(lam, Q, 0.0, 1.0, rank, samples, 0, floor)
    every = spectrum.all_eigenvalues
    return replace(
        spectrum,
        effective_dimension=theory.effective_dimension(every),
        condition=theory.condition_number(every),
    )


def _signed(Q: Array) -> Array:
    """Eigenvectors are known up to their sign: with it chosen, rounding cannot turn the directions of a run around."""
    top = np.abs(Q).argmax(axis=0)
    Q[:, Q[top, np.arange(Q.shape[1])] < 0.0] *= -1.0
    return Q


def _from_estimates(estimates: Iterable[Array], d: int, samples: int) -> tuple[Array, Array]:
    """Eigenpairs of (1/M) G'G from the M x d matrix G itself."""
    from scipy.linalg import svd

    G = np.empty((samples, d))
    row = 0
    for block in estimates:
        G[row : row + len(block)] = block
        row += len(block)
    if samples == 0:
        return np.empty(0), np.empty((d, 0))
    Q, s, _ = svd(G.T, full_matrices=False, overwrite_a=True, check_finite=False)
    return s**2 / samples, Q


def _from_sketch(estimates: Iterable[Array], d: int, samples: int) -> tuple[Array, Array]:
    """The leading eigenpairs of (1/M) sum g_i g_i', in one pass and the memory of a few rows.

    Rows are collected until there are two hundred; then the leading hundred principal directions, each with its length,
    stand for all so far. What is dropped on the way are directions of less weight than all that are kept.
    """
    kept = _sketch_rows(d)
    B = np.empty((2 * kept, d))
    filled = 0
    for block in estimates:
        for row in block:
            if filled == len(B):
                squares, Q = _principal(B)
                B[:kept] = Q[:kept] * np.sqrt(squares[:kept, None])
                filled = kept
            B[filled] = row
            filled += 1
    squares, Q = _principal(B[:filled])
    return squares[:kept] / samples, Q[:kept].T


def _principal(B: Array) -> tuple[Array, Array]:
    """Squared lengths and directions (rows) of the principal axes of the rows of B, the longest first."""
    from scipy.linalg import eigh

    squares, U = eigh(B @ B.T, check_finite=False)
    squares, U = np.maximum(squares[::-1], 0.0), U[:, ::-1]
    lengths = np.sqrt(np.maximum(squares, 1e-28 * squares[0]))
    return squares, (U / np.where(lengths > 0.0, lengths, 1.0)).T @ B


def _from_second_moment(estimates: Iterable[Array], d: int, samples: int) -> tuple[Array, Array]:
    """Eigenpairs of (1/M) sum g_i g_i', summed up block by block."""
    from scipy.linalg import eigh

    S = np.zeros((d, d))
    for block in estimates:
        S += block.T @ block
    lam, Q = eigh(S / samples, overwrite_a=True, check_finite=False)
    return np.maximum(lam[::-1], 0.0), Q[:, ::-1]


def exact_moments(eigenvalues: Array, floor: float = 0.0, multiplicity: int = 0) -> tuple[Array, float]:
    """The second moments of v = u/|u|, u ~ N(0, diag(eigenvalues)), along the eigenvectors.

    m_i = lam_i * Int_0^inf (1 + 2 lam_i s)^-1 Prod_j (1 + 2 lam_j s)^-1/2 ds, of which lam_i / tr is an approximation.
    `floor` is one further eigenvalue that occurs `multiplicity` times; its moment comes second. All sum to one.

    The integrand is analytic and falls off exponentially at both ends of y = log s, where the trapezoidal rule
    converges faster than any power of the spacing.

    Examples
    --------
    >>> m, _ = exact_moments(np.array([4.0, 2.0, 1.0, 1.0]))
    >>> m.round(3)
    array([0.406, 0.265, 0.165, 0.165])
    """
    lam = np.append(np.asarray(eigenvalues, dtype=float), floor if multiplicity else [])
    count = np.append(np.ones(len(eigenvalues)), multiplicity if multiplicity else [])
    lam = lam / (count @ lam)
    spacing, lowest, highest = 0.05, -40.0, min(80.0 - math.log(lam.min()), 700.0)  # exp(700) is still a number
    y = np.arange(lowest, highest, spacing)
    m = np.zeros_like(lam)
    for part in np.array_split(y, math.ceil(len(y) * len(lam) / 2**18)):
        logs = np.log1p(2.0 * np.exp(part)[:, None] * lam)
        m += np.exp(part - 0.5 * (logs @ count)) @ np.exp(-logs)  # ds = s dy
    m *= lam * spacing
    m /= count @ m  # they sum to one; what is removed is the rounding of the sum
    return (m[:-1], float(m[-1])) if multiplicity else (m, 0.0)


def gradient_moment(second_moment: Array) -> Array:
    """An unbiased estimate of A = E[grad grad'] from the second moment of isotropic two-point estimates.

    Two-point estimates along uniform directions have the second moment d/(d+2) (tr(A) I + 2 A), a floor that hides the
    rank of A; removing it is unbiased, but with M of the order of d log d far too noisy for more than a mean.

    Examples
    --------
    >>> A = np.diag([3.0, 1.0])
    >>> gradient_moment(2 / 4 * (np.trace(A) * np.eye(2) + 2 * A))
    array([[3., 0.],
           [0., 1.]])
    """
    d = len(second_moment)
    floor = np.trace(second_moment) / d
    moment: Array = 0.5 * ((d + 2) / d * second_moment - floor * np.eye(d))
    return moment
