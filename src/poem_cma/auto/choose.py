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
from poem_cma.auto.directions import SELDOM
from poem_cma.auto.replay import PLACES, replaying
from poem_cma.auto.state import HAAR, REPLAY, START, STEP, WALK, AutoState, has
from poem_cma.core import Run

__all__ = [
    "BESIDE", "DIRECTIONS", "affordable", "agreement", "alphabet_of", "compared", "in_subspace_calls", "learn",
    "next_estimator", "on_axes", "rejudged", "still_inside", "trial_at", "usual_calls", "watching", "with_digits",
]  # fmt: skip

DIRECTIONS = 4  # random directions a step
BESIDE = 2  # random directions beside a subspace, where there are any
_FEW_AXES = 32  # so few that walks are always taken
_TRIALS, _JUDGED = 8, 16  # full walks before the rank of the gradients is judged, and the most that are judged together
_EVEN = 0.6  # rank per axis, from which on gradients fill the space
_FIRST_SHARE, _LATER_SHARE = 0.33, 0.05  # of the calls for trials, before and after
_FIRST_AFFORDED, _AFFORDED = 0.1, 0.02  # of the budget, for a full walk
_CHEAP = 0.6  # calls per axis at which walks win
_MOST_SUBSPACE = 28
_DEAR = 2.5  # times as many calls as an old sample takes: then a step in the subspace gives way to those
_WORTH = 3.0  # a step in the subspace must be so many times cheaper than a full walk
_IN_DOUBT, _SPARE = 1.2, 3.0  # the rank may be so many times what it seems, and a few walks must confirm the subspace
_FAR_MORE = 3.0  # times what steps so far have told, by which those to come in a subspace must be worth it
_LEARNING_SHARE = 0.25  # of the calls left, at most, for walks that complete the subspace
_ALL = 1.0 - 1e-5  # of the energy: steep directions may hold nearly all of it, and the others what is left to gain
_ALIKE, _MOST_ALIKE = 4, 64  # samples with such slopes, after which digits are tried, and the most that are counted
_FAILED = 8  # so many fewer where they could not be told
_FEWEST_AXES, _MOST_AXES = 5, 10_000  # for digits: on fewer they save nothing, on more it takes long to read them
_EPS = float(np.finfo(float).eps)
_AGREED, _DISAGREED = 4, -1  # steps along random directions that confirm a subspace, and one that does not
_LEFT = -2  # it was left: gradients change from place to place, and are no longer believed to lie in one
_NONE = 4.0  # times as much noise as is allowed at first
_AXES_SHARE = 16.0  # a walk takes so many axes that it costs one in so many of the calls spent


def next_estimator(s: AutoState, left: float) -> AutoState:
    """The state with `kind`, `q` and `trial` of the next step, which has `left` calls."""
    run, n = s.run, len(s.order)
    axes_allowed = on_axes(run, n)
    if axes_allowed and (n <= _FEW_AXES or s.choice == WALK):
        if replaying(s) and n + 1 <= left:
            return _using(s, REPLAY, n)
        growing = max(s.nfev / (_AXES_SHARE * _cost(s)), 4.0)
        return _using(s, WALK, max(1, int(min(growing, n, left - 1))))
    if axes_allowed and s.nfev >= trial_at(s) and n + 1 <= left and affordable(s, n):
        return _using(s, WALK, n, trial=True)
    k = len(s.subspace)
    if s.use_subspace and in_subspace_calls(k) >= _DEAR * PLACES and 1 + k + BESIDE <= left and replaying(s):
        return _using(s, REPLAY, k + BESIDE)
    if s.use_subspace and s.t % SELDOM:
        return _using(s, HAAR, 0)
    q = BESIDE if s.use_subspace else DIRECTIONS
    return _using(s, HAAR, max(1, int(min(q, left - 1))))


def in_subspace_calls(k: float) -> float:
    """The calls of a step in a subspace of k directions, on the mean: at the base, along these, and rarely beside."""
    return 1.0 + k + BESIDE / SELDOM


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
        s = _extend(s, g)
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
    few = rank < _IN_DOUBT * _MOST_SUBSPACE and _WORTH * in_subspace_calls(max(rank, k)) < n and s.agreed != _LEFT
    missing = min(_IN_DOUBT * rank + _SPARE, _MOST_SUBSPACE) - k
    calls, left = missing * _cost(s) * n, s.run.budget - s.nfev
    return few and 0.0 < calls < _LEARNING_SHARE * left and _in_time(s, rank, left - calls) and has(s.run, "subspace")


def _in_time(s: AutoState, k: float, left: float) -> bool:
    """Whether a subspace of k directions comes early enough: its steps soon make earlier ones count for nothing.

    In units of a gradient whose only noise is that of its sample, a step along q random directions tells
    1 / (1 + (k + 1) / q), and one in the subspace tells 1.
    """
    told = s.t * DIRECTIONS / (DIRECTIONS + k + 1.0)
    return left / in_subspace_calls(k) > _FAR_MORE * told


def _extend(s: AutoState, g: Array) -> AutoState:
    """Add a gradient to the span of the earlier ones; the share of it that lies there is an honest measure of it."""
    u = g / np.sqrt(s.metric)
    length = math.sqrt(u @ u)
    if length == 0.0 or len(s.subspace) >= _MOST_SUBSPACE:
        return s
    u = u / length
    rest = u - (s.subspace @ u) @ s.subspace
    rest = rest - (s.subspace @ rest) @ s.subspace
    unseen = float(rest @ rest)
    # At x_0 gradients may agree only because they share their mean: what counts is whether later ones lie there, too.
    s = _shared(s, 1.0 - unseen) if len(s.subspace) and s.stage != START else s
    if unseen > 1e-6 and not s.use_subspace:
        agreed = _LEFT if s.agreed == _LEFT else 0
        s = s._replace(subspace=np.concatenate((s.subspace, rest[None] / math.sqrt(unseen))), agreed=agreed)
    return s


def _shared(s: AutoState, share: float) -> AutoState:
    """Whether the subspace is to be used, now that one more gradient has this share of its energy there."""
    shares = np.append(s.shares, share)[-2:]
    k, use = len(s.subspace), False
    if len(shares) == 2 and s.agreed != _LEFT and has(s.run, "subspace"):
        # once in use, it is worth it
        worth = s.use_subspace or (_WORTH * in_subspace_calls(k) < len(s.x) and _in_time(s, k, s.run.budget - s.nfev))
        e = float(shares.min())
        use = worth and e > _ALL and _in_subspace_noise(s, e) < _FEW_AXES
    if use and not s.use_subspace:
        s = s._replace(inside=0.0, outside=0.0)
    return s._replace(shares=shares, use_subspace=use)


def _in_subspace_noise(s: AutoState, e: float) -> float:
    """The calls of steps in the subspace that tell as much as one gradient, with the share e of its energy there."""
    k, d = len(s.subspace), len(s.x)
    return in_subspace_calls(k) * (e + SELDOM * (d - k) / BESIDE * (1.0 - e))


def still_inside(s: AutoState, slopes: Array) -> AutoState:
    """Leave the subspace at once where slopes beside it, seen now and then, say that it is none."""
    k = len(s.subspace)
    m = len(slopes) - k
    if not m:
        return s
    squares = np.square(slopes)
    outside = s.outside + (len(s.order) - k) / m * float(squares[:m].sum())
    inside = s.inside + float(squares[m:].sum())
    s = s._replace(inside=inside, outside=outside)
    if outside > 0.0 and _in_subspace_noise(s, inside / (inside + outside)) > _NONE * _FEW_AXES:
        return s._replace(use_subspace=False, shares=s.shares[:0], agreed=_LEFT)
    return s


def watching(s: AutoState) -> bool:
    """Whether steps along random directions can tell if gradients lie in the directions known: there must be fewer."""
    return s.stage == STEP and 0 < len(s.subspace) <= DIRECTIONS - 2 and has(s.run, "subspace")


def agreement(s: AutoState, directions: Array, slopes: Array) -> AutoState:
    """Slopes along random directions, of a gradient that lies in the subspace, follow from few numbers."""
    B = directions @ s.subspace.T
    q, k = B.shape
    b = np.array(slopes)
    energy = float(b @ b)
    if q <= k or not 0.0 < energy < math.inf:
        return s
    rest = b - B @ np.linalg.lstsq(B, b, rcond=None)[0]
    share = 1.0 - float(rest @ rest) / energy * q / (q - k)
    agreed = s.agreed + 1 if share > _ALL else _DISAGREED
    if agreed < _AGREED:
        return s._replace(agreed=agreed)
    s = _shared(s, share)
    return s._replace(agreed=agreed if s.use_subspace or len(s.shares) < 2 else _DISAGREED)  # else it is not worth it


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
