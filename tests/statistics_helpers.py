"""Statistical assertions: is a mean what it should be, is it not, does it stay under a bound?

The first axis of `samples` counts independent draws. The threshold on |z| grows with the number of comparisons made at
once, so that a correct program fails a test with probability FALSE_ALARM whatever the number of coordinates; seeds are
fixed, so a test that passes keeps passing until the code (or NumPy's generator) changes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm

FALSE_ALARM = 1e-5

Floats = NDArray[np.float64]


def limit(comparisons: int = 1) -> float:
    """The |z| that so many comparisons together exceed with probability FALSE_ALARM: 4.4 for one, 5.3 for 100."""
    return float(norm.isf(0.5 * FALSE_ALARM / comparisons))


def z_scores(samples: Floats, expected: ArrayLike) -> Floats:
    """(mean - expected) / standard error, coordinate by coordinate.

    Rounding counts as a spread of 1e-12 of the largest sample, so that constants can be compared too.
    """
    mean, spread = samples.mean(axis=0), samples.std(axis=0, ddof=1)
    error = np.hypot(spread / np.sqrt(len(samples)), 1e-12 * np.abs(samples).max())
    return np.asarray((mean - np.asarray(expected)) / error)


def assert_unbiased(samples: Floats, expected: ArrayLike) -> None:
    """The mean of the samples is `expected`, as far as they can tell."""
    z = z_scores(samples, expected)
    worst = float(np.abs(z).max())
    assert worst < limit(z.size), f"|z| up to {worst:.1f}, mean {samples.mean(axis=0)}, expected {expected}"


def assert_biased(samples: Floats, expected: ArrayLike) -> None:
    """The mean of the samples is beyond doubt not `expected`: some |z| is over twice the threshold."""
    z = z_scores(samples, expected)
    worst = float(np.abs(z).max())
    assert worst > 2.0 * limit(z.size), f"|z| only up to {worst:.1f}, mean {samples.mean(axis=0)}, expected {expected}"


def assert_mean_at_most(samples: Floats, bound: float) -> None:
    """The upper confidence limit of the mean stays under the bound."""
    mean, error = float(samples.mean()), float(samples.std(ddof=1)) / np.sqrt(len(samples))
    assert mean + limit() * error <= bound, f"mean {mean} +- {error}, bound {bound}"


def assert_mean_above(samples: Floats, bound: float) -> None:
    """The lower confidence limit of the mean is over the bound."""
    mean, error = float(samples.mean()), float(samples.std(ddof=1)) / np.sqrt(len(samples))
    assert mean - limit() * error > bound, f"mean {mean} +- {error}, bound {bound}"
