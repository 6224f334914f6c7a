"""How far apart the points of a pair may be: as far as gradients at h and at 2h agree (after Lepski 1991).

A pair at 2h has a quarter of the noise of one at h, and four times its bias, where F is smooth: it shows soon whether
pairs may be further apart. But where h is far too long already, 2h says nothing; so it is h/2 that is asked at first.
And where noise is shared, and F has steps, it always is: there is little noise that longer pairs would be rid of.

Were both unbiased for the same gradient, the sum of their differences D would be noise, and its expected square the sum
of the squares, in n dimensions to within a factor of 1 ± sqrt(2/n) or so. More than that shows that they differ: F is
not symmetric over the distance h, and its smoothed minimiser is off.
"""

from __future__ import annotations

from math import sqrt

from poem_cma.auto.apart_state import ApartState

__all__ = ["judged", "tested_at"]

_FEWEST = 8  # tests before anything is said
_DOUBT = 4.0  # standard deviations
_GROWTH = sqrt(2.0)
_AGREEMENT = 0.2  # to within so many times the slope at x_0
_INWARDS = 16  # tests at first
_SHARE = 0.5  # of all tests must have been made at this h before it grows
_FURTHEST = 0.5  # of R in each coordinate


def tested_at(s: ApartState) -> float:
    """Which other distance is asked now and then, in h."""
    return 2.0 if s.own and s.all_tests >= _INWARDS else 0.5


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
    if s.own and s.all_tests - s.tests < _INWARDS <= s.all_tests:
        return _anew(s, s.mu)  # from now on tests are at another distance
    furthest = _FURTHEST * sqrt(n) * s.R
    long_enough = s.tests >= _SHARE * s.all_tests and s.all_tests >= s.grow_after
    agree = sqrt(s.bias_squares) / s.tests < _AGREEMENT * s.slope
    if long_enough and agree and s.mu < furthest:
        return _anew(s, min(_GROWTH * s.mu, furthest))
    return s


def _anew(s: ApartState, mu: float) -> ApartState:
    return s._replace(mu=mu, bias=0.0 * s.bias, bias_squares=0.0, tests=0)
