"""Which estimator the next step uses, learned from full walks that are made now and then.

* sparse samples, and those whose slopes are small multiples of one number: walks are cheap, stay with them;
* gradients that live in few directions: exact slopes there, and now and then two random directions beside; where they
  seem to, and the budget allows it, walks are made at once until those directions are known;
* gradients that fill the space evenly: walks again (all axes count the same);
* anything else: four random directions.
"""

from __future__ import annotations

import math

import numpy as np

from poem_cma._types import Array
from poem_cma.arithmetic import largest, length
from poem_cma.auto.digits import Alphabet, calls_of, multiples
from poem_cma.auto.directions import BESIDE, SELDOM, directions_a_step
from poem_cma.auto.replay import PLACES, replaying
from poem_cma.auto.state import HAAR, REPLAY, START, STEP, WALK, AutoState, has
from poem_cma.auto.subspace import LEFT, MOST_SUBSPACE, WORTH, extended, in_subspace_calls, in_time
from poem_cma.core import Run

__all__ = [
    "affordable", "alphabet_of", "compared", "learn", "next_estimator", "on_axes", "prefers_walks", "rejudged",
    "too_dear", "trial_at", "usual_calls", "with_digits",
]  # fmt: skip

_FEW_AXES = 32  # so few that walks are always taken
_TRIALS, _JUDGED = 8, 16  # full walks before the rank of the gradients is judged, and the most that are judged together
_EVEN = 0.6  # rank per axis, from which on gradients fill the space
_FIRST_SHARE, _LATER_SHARE = 0.33, 0.05  # of the calls for trials, before and after
_FIRST_AFFORDED, _AFFORDED = 0.1, 0.02  # of the budget, for a full walk
_WIDE = 48  # places in a stage: a walk that asks more is one of a sample that depends on most variables
_CHEAP = 0.6  # calls per axis at which walks win
_DEAR = 2.5  # times as many calls as an old sample takes: then a step in the subspace gives way to those
_IN_DOUBT, _SPARE = 1.2, 3.0  # the rank may be so many times what it seems, and a few walks must confirm the subspace
_LEARNING_SHARE = 0.25  # of the calls left, at most, for walks that complete the subspace
_ALIKE, _MOST_ALIKE = 4, 64  # samples with such slopes, after which digits are tried, and the most that are counted
_FAILED = 8  # so many fewer where they could not be told
_FEWEST_AXES, _MOST_AXES = 5, 10_000  # for digits: on fewer they save nothing, on more it takes long to read them
_EPS = float(np.finfo(float).eps)
_AXES_SHARE = 16.0  # a walk takes so many axes that it costs one in so many of the calls spent


def next_estimator(s: AutoState, left: float) -> AutoState:
    """The state with `kind`, `q` and `trial` of the next step, which has `left` calls."""
    run, n = s.run, len(s.order)
    if prefers_walks(s) and on_axes(run, n):
        if replaying(s) and n + 1 <= left:
            return _using(s, REPLAY, n)
        growing = max(s.nfev / (_AXES_SHARE * _cost(s)), 4.0)
        q = max(1, int(min(growing, n, left - 1)))
        if q == n or run.domain.hull_dimension(len(s.x)) == n:
            return _using(s, WALK, q)
        return _using(s, HAAR, max(1, int(min(directions_a_step(run), left - 1))))
    if s.nfev >= trial_at(s) and n + 1 <= left and affordable(s, n) and on_axes(run, n):
        return _using(s, WALK, n, trial=True)
    k = len(s.subspace)
    if s.use_subspace and in_subspace_calls(k) >= _DEAR * PLACES and 1 + k + BESIDE <= left and replaying(s):
        return _using(s, REPLAY, k + BESIDE)
    if s.use_subspace and s.t % SELDOM:
        return _using(s, HAAR, 0)
    q = BESIDE if s.use_subspace else directions_a_step(run)
    return _using(s, HAAR, max(1, int(min(q, left - 1))))


def prefers_walks(s: AutoState) -> bool:
    """Whether walks are taken as soon as they can be."""
    return len(s.order) <= _FEW_AXES or s.choice == WALK


def _using(s: AutoState, kind: str, q: int, trial: bool = False) -> AutoState:
    same = s.kind == kind and s.q == q and s.trial == trial
    return s if same else s._replace(kind=kind, q=q, trial=trial)


def trial_at(s: AutoState) -> float:
    """After how many calls the next full walk among other steps is due, if it can be afforded."""
    if s.learning:
        return 0.0
    if s.use_subspace:
        return math.inf  # steps there see for themselves whether it is still one
    undecided = s.active_trials < _TRIALS or len(s.shares) < 2
    return s.trial_calls / (_FIRST_SHARE if undecided else _LATER_SHARE)


def with_digits(s: AutoState) -> bool:
    """Whether a full walk is made with steps that are digits: where these tell the slopes, in fewer calls."""
    return _digits_tell(s) and _cost(s) == _cost_of_digits(s)


def _digits_tell(s: AutoState) -> bool:
    exact = s.eps == _EPS and s.x.dtype == np.float64
    allowed = has(s.run, "digits") and has(s.run, "bisection")
    return s.alike >= _ALIKE and _FEWEST_AXES <= len(s.order) <= _MOST_AXES and exact and allowed


def _cost_of_digits(s: AutoState) -> float:
    n = len(s.order)
    return (calls_of(n, alphabet_of(s)) - 1.0) / n


def alphabet_of(s: AutoState) -> Alphabet:
    """The multiples that slopes of samples have been."""
    return Alphabet(s.low, s.high)


def compared(s: AutoState, slopes: Array, told: bool) -> AutoState:
    """Whether slopes of samples are small multiples of one number, now that those of one more are known."""
    found = multiples(slopes)
    if found is None:
        return s._replace(alike=0, low=0, high=0) if s.alike else s
    low, high = alphabet_of(s) | found
    return s._replace(alike=min(s.alike + 1, _MOST_ALIKE) if told else s.alike - _FAILED, low=low, high=high)


def affordable(s: AutoState, n: int) -> bool:
    """Whether a full walk is not too dear: a first one shows how many calls one takes."""
    return _cost(s) * n < (_AFFORDED if len(s.costs) else _FIRST_AFFORDED) * s.run.budget


def too_dear(s: AutoState, places: int) -> bool:
    """Whether a full walk, which would ask so many places next, is the first, and had better be given up.

    Where there are calls for one and no more, it is worth it only if samples are sparse, and it turns out to be cheap,
    or if their gradients are parallel: then one is all that there is to know.
    """
    first = s.stage == STEP and not len(s.costs)
    dear = len(s.order) > _AFFORDED * s.run.budget and places > _WIDE * len(s.values)
    return first and dear and not s.parallel


def usual_calls(s: AutoState) -> int:
    """What a walk along as many axes as the step's usually takes."""
    return math.ceil(1.0 + _cost(s) * s.q)


def _cost(s: AutoState) -> float:
    """Of a full walk, in calls per axis: as recent ones, unless digits do with less."""
    recent = float(np.add.reduce(s.costs)) / len(s.costs) if len(s.costs) else 1.0
    return min(recent, _cost_of_digits(s)) if s.alike >= _ALIKE and _digits_tell(s) else recent


def on_axes(run: Run, n: int) -> bool:
    """Whether steps along single axes are allowed, n of which are free: a domain of lower dimension may forbid them."""
    return has(run, "walks") and not (run.domain.inside and run.domain.hull_dimension(len(run.x0)) < n)


def learn(s: AutoState, g: Array, active: bool, calls: int) -> AutoState:
    """What a finished full walk says of the estimators."""
    if s.trial and s.stage != START:
        s = s._replace(trial_calls=s.trial_calls + calls)
    if not active or s.kind != WALK or s.q < len(s.order):
        return s
    costs = np.append(s.costs, (calls - 1) / s.q)[-8:]
    turn = g / largest(g)  # squares of slopes far below the steepest ever seen may be zero
    turn /= length(turn)
    s = s._replace(
        active_trials=s.active_trials + 1, costs=costs, turn=turn, turns=s.turns + bool(s.turn.any()),
        overlap=s.overlap + float(turn @ s.turn) ** 2,
    )  # fmt: skip
    if s.trial:
        s = extended(s, g)
    judged = s.trial or (s.choice == WALK and len(s.gradients) < _JUDGED)
    if judged:
        s = s._replace(gradients=np.concatenate((s.gradients, g[None]))[-_JUDGED:])
    return rejudged(s) if judged else s._replace(choice=WALK if _cheap(s) else s.choice, learning=False)


def rejudged(s: AutoState) -> AutoState:
    """What the full gradients so far say of the estimators, in the metric of now."""
    choice, learning = s.choice, False
    if _cheap(s):
        choice = WALK
    elif not s.use_subspace:
        rank = _rank(s) if len(s.gradients) >= _TRIALS else math.nan
        choice = WALK if rank > _EVEN * len(s.order) else HAAR
        learning = choice == HAAR and _pays(s, rank)
    return s._replace(choice=choice, learning=learning)


def _cheap(s: AutoState) -> bool:
    return len(s.costs) > 0 and float(s.costs.mean()) < _CHEAP


def _pays(s: AutoState, rank: float) -> bool:
    """Whether the directions in which gradients seem to live should be learned at once.

    A step in a subspace of k directions costs little more than k + 1 calls, and its gradient has no noise but that of
    the sample. Along random directions as much costs (1 + sqrt(k + 1))^2 calls, and takes shorter steps. But all k must
    be known.
    """
    k, n = len(s.subspace), len(s.order)
    few = rank < _IN_DOUBT * MOST_SUBSPACE and WORTH * in_subspace_calls(max(rank, k)) < n and s.agreed != LEFT
    missing = min(_IN_DOUBT * rank + _SPARE, MOST_SUBSPACE) - k
    calls, left = missing * _cost(s) * n, s.run.budget - s.nfev
    return few and 0.0 < calls < _LEARNING_SHARE * left and in_time(s, rank, left - calls) and has(s.run, "subspace")


def _rank(s: AutoState) -> float:
    """One over the mean squared cosine between full gradients of different samples, with slopes of like size."""
    D = s.metric
    if not s.by_units and s.squares.any():
        m = s.squares / np.maximum(s.tested, 1.0)
        D = np.maximum(m, 1e-4 * m.mean())  # without units, slopes that hardly matter stay small
    F = s.gradients / np.sqrt(D)
    F = F[F.any(axis=1)]
    F /= largest(F)
    F /= length(F)  # lengths may differ by much, and one would stand for all
    n = len(F)
    off = float(((F @ F.T) ** 2).sum()) - n
    return n * (n - 1) / max(off, 1e-300)
