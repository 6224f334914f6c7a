"""How far apart the points of a pair should be: as far as noise asks for, and no further than gradients agree.

Noise of size sigma adds n^2 sigma^2 / (2 q h^2) to the squared length of a gradient from q pairs. While that is a small
part of it, h is halved: the closer the points, the less is F smoothed. Where it has become a large part, h is doubled,
but not beyond where it was; for that gradients at h and at 2h must agree (after Lepski 1991).

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

__all__ = ["FIRST_RADIUS", "judged", "tested_at"]

#: The first h, in R.
FIRST_RADIUS = 0.5

_FEWEST = 8  # tests before anything is said
_DOUBT = 4.0  # standard deviations
_NOISE = 0.1  # of a gradient's square: that much is little
_CLOSEST = 0.5  # of R, over the root of the number of steps
_GROWTH = sqrt(2.0)
_AGREEMENT = 0.2  # to within so many times the slope at x_0
_INWARDS = 16  # tests at first
_SHARE = 1.0 / 3.0  # of all tests must have been made at this h before it grows
_FURTHEST = 0.5  # of R in each coordinate


def tested_at(s: ApartState) -> float:
    """Which other distance is asked now and then, in h."""
    return 2.0 if s.own and s.all_tests >= _INWARDS else 0.5


def judged(s: ApartState, n: int, q: int) -> ApartState:
    """The state with another h where it is time for one, by what noise adds to gradients from q pairs, and by tests."""
    noise, closer = n**2 * s.noise**2 / (2.0 * q * s.mu**2), 0.5 * s.mu
    if s.own and s.t > s.begun + 1:
        closest = _CLOSEST * s.R / sqrt(s.t - s.begun + 1.0)
        if 4.0 * noise < _NOISE * s.recent and closer >= closest:
            return _at(s, closer)
        if noise > 4.0 * _NOISE * s.recent and s.mu < s.most:
            return _at(s, min(2.0 * s.mu, s.most))
    noisy = not s.own or noise > 0.5 * _NOISE * s.recent
    return _tested(s, n, closer, noisy) if s.tests >= _FEWEST else s


def _tested(s: ApartState, n: int, closer: float, noisy: bool) -> ApartState:
    """Halve h where the gradients disagree; let it grow where they have been seen to agree.

    Waiting for better evidence wastes calls, the more the closer F is to a quadratic; growing on less leaves a bias
    where F is lopsided that noise may hide for good.
    """
    if float(s.bias @ s.bias) > (1.0 + _DOUBT * sqrt(2.0 / n)) * s.bias_squares:
        return _at(s, closer)._replace(grow_after=4 * s.all_tests, most=closer)
    if s.own and s.all_tests - s.tests < _INWARDS <= s.all_tests:
        return _at(s, s.mu)  # from now on tests are at another distance
    furthest = _FURTHEST * sqrt(n) * s.R
    long_enough = s.tests >= _SHARE * s.all_tests and s.all_tests >= s.grow_after
    agree = sqrt(s.bias_squares) / s.tests < _AGREEMENT * s.slope
    if long_enough and agree and noisy and s.mu < furthest:
        mu = min(_GROWTH * s.mu, furthest)
        return _at(s, mu)._replace(most=max(s.most, mu))
    return s


def _at(s: ApartState, mu: float) -> ApartState:
    """At another distance, where tests begin anew."""
    least = min(s.least, mu / s.R) if mu < s.mu else s.least
    return s._replace(mu=mu, least=least, bias=0.0 * s.bias, bias_squares=0.0, tests=0)
