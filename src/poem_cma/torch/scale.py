"""The scale by values: how far to step, as losses say that were not used to choose the step.

The scale R of `rules.distance_over_gradients` follows the losses instead of the distance from x_0. Every function takes
the state of a run and returns the next one.
"""

from __future__ import annotations

from math import inf, isfinite, nan, sqrt

from poem_cma.torch.state import Evaluate, Move, Point, State

__all__ = ["far", "first", "look", "misled", "settled", "shortened", "stretched", "suspicious", "undone"]

_BACK = 0.5  # the scale is judged by the loss this part of the last step back
_NEW = 0.2, 0.05  # the share of the latest look in the estimate of the right scale, early and late
_EARLY = 100  # looks
_GAIN = 1.5  # how much of that estimate is taken over, in logarithms, in units of the share
_MOST, _LEAST = 3.0, 0.1  # what it may ask for
_MOST_TAKEN = 10.0  # of the fall
_SETTLING = 10  # steps during which the step size follows the looks alone, whatever G does
_CLIP = 2.0  # typical lengths: a gradient longer than this is shortened to it
_TYPICAL = 0.1  # the share of the latest gradient in the typical length
_LEAP = 0.3  # a step is at most this part of the length of the weights and of the way so far
_RAY = 60  # doublings
_RISE = 0.25  # of the fall that was predicted: a loss higher by more than this takes a step back
_STEEP = 2.0  # falls: a slope up, along the last step, that makes it suspicious
_FAR_OFF = 4.0  # mean deviations of the loss that make a step suspicious


# The first scale


def first(s: State, g: Point, loss: float, evaluate: Evaluate) -> State:
    """Go down along -g, twice as far each time, as long as the loss falls on this batch."""
    r, best = s.mu, loss
    for _ in range(_RAY):
        (value,) = evaluate([g.times(-r / g.length)])
        s = s._replace(forwards=s.forwards + 1)
        if not value < best:
            break
        best, r = value, 2.0 * r
    return s._replace(r_bar=r / 4.0 if r > s.mu else r)


def settled(s: State, g: Point) -> State:
    """Before G grows by |g|²: in the first steps G at least doubles, and the step size must not shrink for that."""
    grown = s.G and s.t < _SETTLING
    return s._replace(r_bar=s.r_bar * sqrt(1.0 + g.length**2 / s.G)) if grown else s


# Looking at the last step, on a batch that it has not seen


def look(s: State, floor: float) -> tuple[list[Point], float]:
    """A second point on the last step's line, and where it lies (in steps, from its end).

    On a batch that the step has not seen, is the loss half a step back lower than here? If F is quadratic, the two are
    equal for a step 4/3 as long as the one that ends lowest: what pays over many steps is longer than what pays at
    once. Where half a step is too short for the weights' numbers, the point lies ahead, as far as it must.
    """
    last = s.moves[-1].point
    least = floor / last.length
    place = -_BACK if least <= _BACK else least
    return [last.times(place)], place


def stretched(s: State, slope: float, place: float) -> State:
    """Move R towards the scale at which the mean slope between the two points would vanish.

    The slope at the start of the step was -fall; curvature, and what the batch before had by itself, took away
    slope + fall, in proportion to the step size.
    """
    fall = s.moves[-1].fall
    took = min(_MOST_TAKEN, max(-2.0, 1.0 + slope / fall)) if isfinite(slope) else _MOST_TAKEN
    took *= (1.0 - 0.5 * _BACK) / (1.0 + 0.5 * place)
    share = max(_NEW[1], _NEW[0] / max(1.0, 2.0 * s.looks / _EARLY))
    before = s.stiffness if isfinite(s.stiffness) else took / s.eta
    stiffness = before + share * (took / s.eta - before)
    wish = 1.0 / (stiffness * s.eta) if stiffness > 0.0 else _MOST
    r_bar = s.r_bar * min(_MOST, max(_LEAST, wish)) ** (_GAIN * share)
    return s._replace(r_bar=r_bar, stiffness=stiffness, looks=s.looks + 1)


# Guards against steps that are far too long


def shortened(s: State, g: Point) -> tuple[State, Point]:
    """Slopes along few random directions have heavy tails: one long gradient must not undo many steps."""
    typical = s.typical or g.length
    g = g.times(min(1.0, _CLIP * typical / g.length))
    return s._replace(typical=typical + _TYPICAL * (g.length - typical)), g


def far(s: State, size: float) -> float:
    """The longest step; the first one was measured along its way."""
    return _LEAP * sqrt(size**2 + s.way) if s.way else inf


# Taking a step back


def suspicious(s: State, loss: float, rest: list[float], place: float) -> bool:
    """Whether the last step may have led up: the loss, or its slope along the step, is out of the ordinary."""
    if not isfinite(loss) or (s.t > 5 and loss > s.value + _FAR_OFF * s.spread):
        return True
    return len(rest) > 1 and not (rest[1] - rest[0]) / place <= _STEEP * max(s.moves[-1].fall, s.fall)


def misled(s: State, last: Move, loss: float, before: float) -> bool:
    """Whether it did: on a batch that it has not seen, by more than a part of what it was to lead down."""
    return isfinite(before) and not loss - before <= _RISE * max(last.fall, s.fall)


def undone(s: State) -> State:
    """After the last step was taken back."""
    return s._replace(r_bar=0.5 * s.r_bar, moves=s.moves[:-1], stiffness=nan, undone=s.undone + 1)
