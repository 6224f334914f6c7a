"""The search of a run, how one begins, and what the run keeps of its steps."""

from __future__ import annotations

from poem_cma._types import Array
from poem_cma.auto import averages, progress, scan
from poem_cma.auto.far.state import Far
from poem_cma.auto.far.state import begin as far_from
from poem_cma.auto.near.state import Near
from poem_cma.auto.near.state import begin as near_from
from poem_cma.auto.noiseless.state import Exact
from poem_cma.auto.noiseless.state import begin as exact_from
from poem_cma.auto.state import EXACT, FAR, NEAR, SCAN, AutoState, Shown
from poem_cma.run.algorithm import smoothed_value

__all__ = [
    "FORMER", "begin_exact", "begin_far", "begin_near", "exact_of", "far_of", "moved", "near_of", "near_searched",
    "regime",
    "scan_again", "searched",
]  # fmt: skip

#: Number of results of earlier searches that are remembered.
FORMER = 3
#: Differences below this many standard deviations of their own noise are noise.
NOISE = 4.0
#: First look at the progress of near steps, as a share of the budget.
EARLY = 1 / 32


def regime(s: AutoState) -> str | None:
    """The regime that the method prescribes, if it does."""
    told: str | None = getattr(s.run.method.algorithm, "regime", None)
    return told


def near_of(s: AutoState) -> Near:
    """The search of a run that takes near steps."""
    assert isinstance(s.search, Near)
    return s.search


def far_of(s: AutoState) -> Far:
    """The search of a run that takes far generations."""
    assert isinstance(s.search, Far)
    return s.search


def exact_of(s: AutoState) -> Exact:
    """The search of a run without noise."""
    assert isinstance(s.search, Exact)
    return s.search


def begin_near(s: AutoState, x: Array, h: float) -> AutoState:
    """Near steps from x with the scale h."""
    R = min(h, 0.5 * s.run.domain.diameter)
    near = near_from(x.astype(s.run.x0.dtype, copy=False), R, NOISE * s.gate.own, s.gate.slope)
    return near_searched(s._replace(phase=NEAR, search=near), x)


def near_searched(s: AutoState, x: Array) -> AutoState:
    """The beginning of near steps at x: a scale that is much too long shows after a few of them."""
    s = searched(s, x)
    early = s.clock.nfev + EARLY * s.run.budget
    return s._replace(progress=s.progress._replace(next=min(early, s.progress.next)))


def begin_far(s: AutoState, x: Array, h: float) -> AutoState:
    """Generations around x at a typical distance of h."""
    return searched(s._replace(phase=FAR, search=far_from(x, h, s.scan.informative)), x)


def begin_exact(s: AutoState, x: Array, h: float) -> AutoState:
    """Quasi-Newton steps from x."""
    return searched(s._replace(phase=EXACT, search=exact_from(x, h)), x)


def searched(s: AutoState, x: Array) -> AutoState:
    """The beginning of a search at x."""
    return s._replace(averages=averages.begin(x), progress=progress.begin(s.run, x, s.clock.nfev))


def scan_again(s: AutoState) -> AutoState:
    """A new scan around the result of a search that has collapsed."""
    x = s.average
    return s._replace(
        phase=SCAN, former=(*s.former, x)[-FORMER:], scan=scan.begin(s.run, x)._replace(found=s.scan.found),
        averages=averages.begin(x), search=far_from(x, 0.0),
    )  # fmt: skip


def moved(s: AutoState, values: list[Array], step: float, distance: float, slope: float) -> AutoState:
    """The state after a step: the averages, the clock and what is shown."""
    t = s.clock.t
    value, spread = smoothed_value(s.shown.value, s.shown.spread, t, [f for F in values for f in F.tolist()])
    shown = Shown(value, spread, step, distance, slope)
    powers = averages.EVEN if isinstance(s.search, Near) else averages.POWERS
    kept = averages.add(s.averages, s.search.x, powers)
    return s._replace(clock=s.clock._replace(t=t + 1), averages=kept, shown=shown)
