"""What an evolution strategy has come to."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from poem_cma._types import Array, Partial, Points, Size
from poem_cma.auto.far.noise import Noise
from poem_cma.auto.far.noise import begin as no_noise

__all__ = ["Far", "Shape", "again", "begin", "decomposed", "moved"]

#: The covariance is diagonal above this many variables, to keep generations cheap.
MOST_FULL = 100


class Shape(NamedTuple):
    """A covariance matrix, full or diagonal, with its square root.

    C = basis diag(axes^2) basis'; where it is diagonal, `C` holds the diagonal and `basis` is empty.
    """

    C: Array | Points
    axes: Array
    basis: Points

    @property
    def full(self) -> bool:
        """Whether it is a matrix."""
        return self.C.ndim == 2

    def stretch(self, Z: Array) -> Array:
        """C^(1/2) z for each row z."""
        return (Z * self.axes) @ self.basis.T if self.full else Z * self.axes

    def whiten(self, Y: Array) -> Array:
        """C^(-1/2) y for each row y, in the coordinates of the eigenvectors turned back."""
        return (Y @ self.basis / self.axes) @ self.basis.T if self.full else Y / self.axes


class Far(NamedTuple):
    """The mean, the step size, the covariance, and what is known of the noise."""

    x: Array  # the mean
    sigma: Size
    first: Size  # the step size that the search began with
    shape: Shape
    path: Array  # of the whitened steps, for the step size
    long_path: Array  # of the steps, for the covariance
    t: int  # generations
    patience: float  # generations without any change of F that are no surprise
    flat: int  # such generations in a row
    curvature: Partial  # (3,) decayed sums of 1, k and k^2 over the pairs
    noise: Noise
    looked: float  # the spread when single axes were looked along last

    @property
    def spread(self) -> float:
        """A typical distance of a sample along one variable."""
        longest = float(self.shape.axes.max())  # squares of 1e300 would overflow
        return self.sigma * longest * float(np.sqrt(np.mean((self.shape.axes / longest) ** 2)))


def begin(x: Array, h: float, informative: float = 1.0) -> Far:
    """Around x, with samples at a typical distance of h; F changes there on so large a share of the samples."""
    d = len(x)
    full = d <= MOST_FULL
    shape = Shape(np.eye(d) if full else np.ones(d), np.ones(d), np.eye(d) if full else np.zeros((0, 0)))
    zero = np.zeros(d)
    sigma = h / np.sqrt(d)
    return Far(
        x,
        sigma,
        sigma,
        shape,
        zero,
        zero,
        0,
        RARE / max(informative, LEAST_SHARE) - RARE,
        0,
        np.zeros(3),
        no_noise(),
        sigma,
    )


def again(far: Far, x: Array) -> Far:
    """The search at an earlier point, without the path that has led away from it."""
    zero = np.zeros(len(x))
    return far._replace(x=x, path=zero, long_path=zero)


def moved(far: Far, x: Array, way: Array) -> Far:
    """The search at another point, with a spread that reaches as far as the way along its longest axis."""
    i = int(np.argmax(np.abs(way)))
    more = np.zeros(len(x))
    more[i] = (way[i] / far.sigma) ** 2
    C = far.shape.C + (np.diag(more) if far.shape.full else more)
    return far._replace(x=x, shape=decomposed(C))


def decomposed(C: Array) -> Shape:
    """The shape of a covariance matrix, or of a diagonal."""
    if C.ndim == 1:
        return Shape(C, np.sqrt(np.maximum(C, LEAST)), np.zeros((0, 0)))
    C = 0.5 * (C + C.T)
    squares, basis = np.linalg.eigh(C)
    return Shape(C, np.sqrt(np.maximum(squares, LEAST * squares[-1])), basis)


#: If F changes on a share p of samples, RARE / p samples without a change have probability 5% (e^-3). A scan that
#: has seen one change in twelve directions knows no more than that p may be as small as LEAST_SHARE.
RARE, LEAST_SHARE = 3.0, 1 / 24
#: Eigenvalues below this fraction of the largest are rounding errors.
LEAST = 1e-14
