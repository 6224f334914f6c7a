"""How far apart the points of a pair may be: as far as gradients at h and at h/2 agree (Lepski 1991).

Were both unbiased for the same gradient, the sum of their differences D would be noise, and its expected square the sum
of the squares, in n dimensions to within a factor of 1 ± sqrt(2/n) or so. More than that shows that they differ: F is
not symmetric over the distance h, and its smoothed minimiser is off.
"""

from __future__ import annotations

from math import sqrt

from poem_cma.auto.apart_state import ApartState

__all__ = ["judged"]

_FEWEST = 8  # tests before anything is said
_DOUBT = 4.0  # standard deviations
_GROWTH = sqrt(2.0)
_AGREEMENT = 0.3  # to within so many times the slope at x_0,
_AGREEMENT_IN_STEPS = 0.2  # and where noise is shared, and so no reason to be far apart
_SHARE = 0.5  # of all tests must have been made at this h before it grows
_FURTHEST = 0.5  # of R in each coordinate


def judged(s: ApartState, n: int) -> ApartState:
    """Halve h where the gradients disagree; let it grow where they have been seen to agree.

    Waiting for better evidence wastes calls, the more the closer F is to a quadratic; growing on less leaves a bias
    where F is lopsided that noise may hide for good.
    """
    if s.tests < _FEWEST:
        return s
    if float(s.bias @ s.bias) > (1.0 + _DOUBT * sqrt(2.0 / n)) * s.bias_squares:
        mu = 0.5 * s.mu
        return _anew(s, mu)._replace(least=min(s.least, mu / s.R), grow_after=4 * s.all_tests)
    furthest = _FURTHEST * sqrt(n) * s.R
    long_enough = s.tests >= _SHARE * s.all_tests and s.all_tests >= s.grow_after
    agree = sqrt(s.bias_squares) / s.tests < (_AGREEMENT if s.own else _AGREEMENT_IN_STEPS) * s.slope
    if long_enough and agree and s.mu < furthest:
        return _anew(s, min(_GROWTH * s.mu, furthest))
    return s


def _anew(s: ApartState, mu: float) -> ApartState:
    return s._replace(mu=mu, bias=0.0 * s.bias, bias_squares=0.0, tests=0)
