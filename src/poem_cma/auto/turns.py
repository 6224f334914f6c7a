"""Without noise, where F has kinks: the quadratic model, or the planes? The one with which F fell more, when last used.

Planes are better by far where few kinks meet in a point or a ridge, and the quadratic model where there are so many
that F looks smooth from afar. Each is used for some gradients in turn. As F comes closer to its minimum it falls ever
less, so that the other is tried again by itself.
"""

from __future__ import annotations

from math import inf

import numpy as np

from poem_cma.auto.exact_state import CUTS, ExactState

__all__ = ["MODEL", "PLANES", "begun", "best", "counted", "hopeful", "without"]

MODEL, PLANES = 0, 1
_TURN = 0.25, 8  # gradients for every axis, and beside
_LESS = 0.5  # of what the planes promised before: they have come closer to F
_BARREN, _LITTLE = 4, 1e-300  # turns in a row without either: they have failed; before, they have not


def begun(s: ExactState) -> ExactState:
    """The planes first."""
    so_far = (s.first_value - s.value) / s.unit / max(s.t, 1)
    return s._replace(falls=np.array([so_far, inf]), turn=0, turn_value=s.value)


def best(s: ExactState) -> int:
    """Of the two."""
    return PLANES if s.falls[PLANES] > s.falls[MODEL] else MODEL


def counted(s: ExactState) -> ExactState:
    """After one more gradient."""
    if s.turn < _TURN[0] * len(s.axes) + _TURN[1]:
        return s._replace(turn=s.turn + 1)
    fall = max((s.turn_value - s.value) / s.unit / s.turn, 0.0)
    if s.stage != CUTS:
        return _anew(s, MODEL, fall)
    nearer = fall > 0.0 or -s.slope <= _LESS * s.hoped
    s = s._replace(barren=0 if nearer else s.barren + 1)
    return _anew(s, PLANES, max(fall, _LITTLE) if s.barren < _BARREN else 0.0)


def without(s: ExactState, which: int) -> ExactState:
    """After one has failed."""
    return _anew(s, which, 0.0)


def _anew(s: ExactState, which: int, fall: float) -> ExactState:
    falls = s.falls.copy()
    falls[which] = fall
    if which == PLANES and s.value < s.turn_value:
        falls[MODEL] = max(falls[MODEL], _LITTLE)  # it has not been tried here
    return s._replace(falls=falls, turn=0, turn_value=s.value)


def hopeful(s: ExactState) -> ExactState:
    """With what the planes promise at the beginning of their turn."""
    return s._replace(hoped=-s.slope) if s.turn == 0 else s
