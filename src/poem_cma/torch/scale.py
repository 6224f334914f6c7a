"""The scale by values: how far to step, as losses say that were not used to choose the step.

The scale R of `rules.distance_over_gradients` follows the losses instead of the distance from x_0. Every function takes
the state of a run and returns the next one.
"""

from __future__ import annotations

from math import exp, inf, isfinite, sqrt

from poem_cma.torch.state import Evaluate, Move, Pace, Point, State

__all__ = [
    "Look",
    "far",
    "first",
    "look",
    "misled",
    "rise",
    "settled",
    "shortened",
    "stretched",
    "suspicious",
    "undone",
]

#: The end of a step and a point this part of the step behind it are compared.
_BACK = 0.5
#: How far log R moves after a look whose slope is as large as usual: early, late, and looks until it is between.
_EARLY, _LATE, _SOON = 0.3, 0.05, 10.0
#: The share of the latest look in the mean square of slopes.
_NEW = 0.05
#: A slope counts no more than this many usual ones,
_MOST = 2.0
#: and, in the mean square, no more than this many falls.
_MOST_FALLS = 10.0
#: Steps during which the step size follows the looks alone, whatever G does, if the looks agree that steps lead down.
_SETTLING = 10
#: Typical lengths: a gradient longer than this is shortened to it.
_CLIP = 2.0
#: The share of the latest gradient in the typical length.
_TYPICAL = 0.1
#: A step is at most this part of the length of the weights and of the way so far.
_LEAP = 0.3
#: Doublings of the first step.
_RAY = 60
#: Of the fastest fall along the first ray: a slower one ends it. If F is quadratic, F(r) < F(r / 2) says the same.
_STEADY = 1.0 / 3.0
#: The end of the first ray is divided by this: what is only there on one batch does not count.
_PROOF = 16.0
#: Of the fall that was predicted: a loss higher by more than this takes a step back.
_RISE = 0.25
#: Falls: a slope up, along the last step, that makes it suspicious.
_STEEP = 2.0
#: Mean deviations of the loss that make a step suspicious.
_FAR_OFF = 4.0

Look = tuple[list[Point], list[float]]  # points on the last step's line, and where they lie (in steps, from its end)


# The first scale


def first(s: State, g: Point, loss: float, evaluate: Evaluate) -> State:
    """Go down along -g, twice as far each time, as long as the loss on this batch falls about as fast as it did.

    If F is quadratic, the rule "a third of the fastest fall" ends where the loss would begin to rise. A loss on one
    batch may fall for ever (all its labels can be learned), but not as fast.
    """
    r, fastest = s.mu, 0.0
    for _ in range(_RAY):
        (value,) = evaluate([g.times(-r / g.length)])
        s = s._replace(forwards=s.forwards + 1)
        fall = (loss - value) / r
        if not fall > _STEADY * fastest:
            break
        fastest, r = max(fastest, fall), 2.0 * r
    return s._replace(r_bar=r / _PROOF)


def settled(s: State, g: Point) -> State:
    """Before G grows by |g|²: in the first steps G at least doubles, and the step size must not shrink for that.

    This holds as far as looks have shown that steps lead down: by the share of their mean in their mean square. Where
    batches have little in common, slopes on the next batch are noise, and long steps would lead up.
    """
    p = s.pace
    down = 1.0 if p.looks == 0 else min(p.mean, 0.0) ** 2 / p.square if p.square else 0.0
    grown = s.G and s.t < _SETTLING
    return s._replace(r_bar=s.r_bar * (1.0 + g.length**2 / s.G) ** (0.5 * down)) if grown else s


# Looking at the last step, on a batch that it has not seen


def look(s: State) -> Look:
    """Where to look at the last step: at its end, and a part of it behind its end.

    On a batch that the step has not seen, which of the two is lower? If F is quadratic they are equal for a step 4/3 as
    long as the one that ends lowest: what pays over many steps is longer than what pays at once. Where the loss cannot
    be seen over that part of a step, two points far enough from their middle take its place, every second time.
    """
    last, middle = s.moves[-1].point, -0.5 * _BACK
    apart = s.mu / sqrt(len(last.coefficients)) / last.length  # a step is steeper than a direction
    if apart <= _BACK:
        return [last.times(-_BACK)], [-_BACK, 0.0]
    places = [middle - apart, middle + apart]
    return ([], []) if s.t % 2 else ([last.times(place) for place in places], places)


def rise(places: list[float], values: list[float]) -> float:
    """The slope along the last step, for a whole step."""
    return (values[1] - values[0]) / (places[1] - places[0])


def stretched(s: State, slope: float) -> State:
    """Move R so that the mean slope at the end of steps vanishes: down where it is positive.

    Slopes are in units of the fall that was predicted, and then of their usual size. So their noise moves R no further
    than they themselves do.
    """
    relative = max(-_MOST_FALLS, min(slope / s.moves[-1].fall, _MOST_FALLS)) if isfinite(slope) else _MOST_FALLS
    p = s.pace
    new = max(_NEW, 1.0 / (p.looks + 1))
    mean, square = p.mean + new * (relative - p.mean), p.square + new * (relative**2 - p.square)
    usual = max(-_MOST, min(relative / sqrt(square), _MOST)) if square else 0.0
    gain = max(_LATE, _EARLY / (1.0 + p.looks / _SOON))
    return s._replace(r_bar=s.r_bar * exp(-gain * usual), pace=p._replace(mean=mean, square=square, looks=p.looks + 1))


# Guards against steps that are far too long


def shortened(p: Pace, g: Point) -> tuple[Pace, Point]:
    """Slopes along few random directions have heavy tails: one long gradient must not undo many steps."""
    typical = p.typical or g.length
    g = g.times(min(1.0, _CLIP * typical / g.length))
    return p._replace(typical=typical + _TYPICAL * (g.length - typical)), g


def far(s: State, size: float) -> float:
    """The longest step; the first one was measured along its way."""
    return _LEAP * sqrt(size**2 + s.pace.way) if s.pace.way else inf


# Taking a step back


def suspicious(s: State, loss: float, slope: float | None) -> bool:
    """Whether the last step may have led up: the loss, or its slope along the step, is out of the ordinary."""
    if not isfinite(loss) or (s.t > 5 and loss > s.watch.value + _FAR_OFF * s.watch.spread):
        return True
    return slope is not None and not slope <= _STEEP * max(s.moves[-1].fall, s.pace.fall)


def misled(s: State, last: Move, loss: float, before: float) -> bool:
    """Whether it did: on a batch that it has not seen, by more than a part of what it was to lead down."""
    return isfinite(before) and not loss - before <= _RISE * max(last.fall, s.pace.fall)


def undone(s: State, steps: int) -> State:
    """After the last steps were taken back: shorter ones follow, and what looks have told counts half."""
    pace, watch = s.pace._replace(looks=s.pace.looks // 2), s.watch._replace(losses=())
    kept = s.moves[: len(s.moves) - steps]
    return s._replace(r_bar=0.5 * s.r_bar, moves=kept, undone=s.undone + steps, pace=pace, watch=watch)
