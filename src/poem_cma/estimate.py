"""A mean with its standard error and a 95% interval."""

from __future__ import annotations

from math import cbrt, floor, isfinite, log2, nan, sqrt
from typing import NamedTuple

import numpy as np

from poem_cma._types import Array

__all__ = ["UNKNOWN", "Estimate", "estimate"]

#: The probability with which the interval holds the true mean.
LEVEL = 0.95
#: A skewness below this is rounding; the interval is symmetric then.
SYMMETRIC = 1e-6


class Estimate(NamedTuple):
    """A mean of independent evaluations.

    Attributes
    ----------
    mean, stderr : float
        The mean and its standard error.
    samples : int
        How many evaluations the mean is made of.
    skewness : float
        Of a single evaluation, estimated from these.
    """

    mean: float
    stderr: float
    samples: int
    skewness: float = 0.0

    @property
    def low(self) -> float:
        """The lower end of the 95% interval.

        The interval holds Student's t interval, and the one that is corrected for skewness (Hall 1992). The skewness of
        a few values is itself uncertain, so that it makes the interval wider, but never narrower, on either side.
        """
        return self._end(1.0)

    @property
    def high(self) -> float:
        """The upper end of the 95% interval."""
        return self._end(-1.0)

    def _end(self, side: float) -> float:
        """The mean less the upper or the lower quantile of (mean - truth) / stderr, in standard errors.

        With T that ratio and a the skewness over sqrt(n), T + a T^2 / 3 + a^2 T^3 / 27 + a / 6 is nearly symmetric.
        It is inverted at the quantile of Student's t. Hall, P. (1992). On the removal of skewness by transformation.
        Journal of the Royal Statistical Society B 54.
        """
        if self.samples < 2:
            return nan
        from scipy.special import stdtrit  # not before an interval is asked for: SciPy takes time to be imported

        t, a = side * float(stdtrit(self.samples - 1, 0.5 + 0.5 * LEVEL)), self.skewness / sqrt(self.samples)
        corrected = 3.0 / a * (cbrt(1.0 + a * (t - a / 6.0)) - 1.0) if abs(a) >= SYMMETRIC else t
        return self.mean - side * max(side * t, side * corrected) * self.stderr

    def to_dict(self) -> dict[str, float | None]:
        """The numbers by name, with None for those that are not known, as JSON wants them."""
        found = {"mean": self.mean, "stderr": self.stderr, "low": self.low, "high": self.high, "samples": self.samples}
        return {name: None if number != number else number for name, number in found.items()}

    def __str__(self) -> str:
        if not isfinite(self.mean):
            return "not measured"
        return f"{self.mean:.6g} ± {self.stderr:.2g} (95%: {self.low:.6g} to {self.high:.6g}, {self.samples} samples)"


#: Nothing was measured.
UNKNOWN = Estimate(nan, nan, 0)


def estimate(values: Array) -> Estimate:
    """The mean of the finite values.

    >>> estimate(np.array([1.0, 2.0, 3.0, 4.0])).mean
    2.5
    """
    values = np.asarray(values, dtype=float)
    values = values[np.isfinite(values)]
    n = len(values)
    if not n:
        return UNKNOWN
    most = float(np.abs(values).max())
    unit = 2.0 ** max(floor(log2(most)), -1022) if most else 1.0  # squares of 1e300 would overflow
    scaled = values / unit
    mean = float(scaled[0] + (scaled - scaled[0]).mean())  # exact where all values are equal
    if n == 1:
        return Estimate(unit * mean, nan, 1)
    spread = sqrt(float(((scaled - mean) ** 2).sum()) / (n - 1))
    return Estimate(unit * mean, unit * spread / sqrt(n), n, _skewness((scaled - mean) / spread) if spread else 0.0)


def _skewness(deviations: Array) -> float:
    """The skewness of a variable, from the deviations of its values in units of their standard deviation.

    The skewness of few values is on average far less than that of the variable. For the gamma family the polynomial
    makes up for this. Bobée, B. and Robitaille, R. (1975). Correction of bias in the estimation of the coefficient of
    skewness. Water Resources Research 11.
    """
    n = len(deviations)
    g = float((deviations**3).mean()) * sqrt(n / (n - 1)) ** 3
    return g * (1.0 + 6.51 / n + 20.20 / n**2 + (1.48 / n + 6.77 / n**2) * g * g)
