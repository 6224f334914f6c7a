"""Old samples, asked again.

A sample of a linear model, whatever its loss, is a function of one direction alone. Once a full walk has found that
direction, or a step in the subspace where all gradients are, its gradient at any other point costs two calls instead of
d + 1: the base, and a step along the direction. In one time of eight a third call, a step beside it, shows whether
there is more to the sample than was known. It counts for eight, so that nothing is biased in any case; where it makes a
difference, samples are of another kind, and are not asked again.

The last fifth of a run goes over the samples it has seen, many times where a walk is dear, or its last eighth, in a
subspace: what limits a run is then how many samples it has seen, no longer how often it could look at each.
"""

from __future__ import annotations

from math import isfinite, sqrt

import numpy as np

from poem_cma._types import Array
from poem_cma.auto.directions import SELDOM
from poem_cma.auto.state import HAAR, REPLAY, WALK, AutoState, empty, has

__all__ = ["PLACES", "beside", "remember", "remembered", "replaying", "sample_number"]

#: At which a sample whose direction is known is asked, at most.
PLACES = 3

_SHARE, _SHARE_IN_SUBSPACE = 0.2, 0.12  # of the budget: where steps are exact, and cost less, one pass is enough
_LEAST_AXES = 9  # with fewer, a walk is as cheap
_LEAST_SAMPLES = 8
_MOST_NUMBERS = 4_000_000  # of gradients that are kept
_BESIDE = 0.05  # the most energy beside its direction that a sample may have


def replaying(s: AutoState) -> bool:
    """Whether the next step asks an old sample."""
    return (
        has(s.run, "replay")
        and s.ridges
        and s.kept >= _LEAST_SAMPLES
        and len(s.order) >= _LEAST_AXES
        and isfinite(s.run.budget)
        and s.nfev >= (1.0 - (_SHARE_IN_SUBSPACE if s.use_subspace else _SHARE)) * s.run.budget
    )


def _entry(s: AutoState, j: int) -> int:
    return (s.replayed + j) % s.kept


def sample_number(s: AutoState, j: int) -> int:
    """The number of the j-th xi of a step that asks an old sample."""
    return int(s.numbers[_entry(s, j)])


def beside(s: AutoState, j: int) -> int:
    """Along how many directions the step's j-th xi is asked beside its own: another one has its turn every time."""
    times, entry = divmod(s.replayed + j, s.kept)
    return 0 if (entry + times) % SELDOM else 1


def remembered(s: AutoState, j: int) -> Array | None:
    """The direction of the step's j-th xi in the present metric, of length 1; none if it was flat."""
    v = s.memory[_entry(s, j)] / np.sqrt(s.metric)
    length = sqrt(v @ v)
    return v / length if length > 0.0 else None


def remember(s: AutoState, j: int, g: Array, slopes: Array) -> AutoState:
    """Keep what a full walk, or a step in the subspace, has found; or see whether a replay was right to rely on it."""
    if s.kind == REPLAY:
        if len(slopes) > 2:
            return s  # a walk: the sample had been flat
        along = s.along + float(slopes[-1]) ** 2
        energy = s.beside + SELDOM * (len(s.order) - 1) * float(slopes[0]) ** 2 if len(slopes) == 2 else s.beside
        return s._replace(beside=energy, along=along, ridges=energy <= _BESIDE * (energy + along))
    known = s.kind == HAAR or (s.kind == WALK and s.q == len(s.order))
    known = known and not np.isinf(s.values[j]).any()  # where a call has failed, slopes are mixed up
    if not known or (s.kept + 1) * len(s.x) > _MOST_NUMBERS or not has(s.run, "replay"):
        return s
    memory, numbers = s.memory, s.numbers
    if s.kept == len(memory):
        room = max(64, s.kept)
        memory, numbers = np.concatenate((memory, empty(room, len(s.x)))), np.append(numbers, np.zeros(room, dtype=int))
    memory[s.kept], numbers[s.kept] = g, s.samples + j  # beyond what earlier states see
    return s._replace(memory=memory, numbers=numbers, kept=s.kept + 1)
