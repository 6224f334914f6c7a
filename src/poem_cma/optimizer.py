"""Ask and tell: the run as an object that remembers what is in flight, and can be saved and loaded."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable
from math import isfinite, nan
from typing import Any

import numpy as np

from poem_cma import checkpoint, core
from poem_cma._types import Array
from poem_cma.adapters import as_domain, searched
from poem_cma.core import Algorithm, Method, Probe
from poem_cma.descent import DESCENT
from poem_cma.history import History
from poem_cma.lane import Lane
from poem_cma.methods import by_name
from poem_cma.oracle import matrix
from poem_cma.randomness import make_seed
from poem_cma.result import Result, Status
from poem_cma.setup import check_ahead, check_batch, check_budget, check_scale, check_x0, inside_domain, make_run

__all__ = ["Optimizer"]

#: So many calls in a row without one usable difference end a run.
BARREN_CALLS = 200


class Optimizer:
    """Minimise by asking for points and telling their values.

    Parameters
    ----------
    x0 : array_like
        Where to start.
    method : str or Method
        "auto", "poem-cma", "poem", "tpbco", "tpge", "rsnso", or one made by a constructor in `poem_cma.methods`.
    domain : optional
        A `Ball`, `Box`, `Simplex`, `L1Ball`, `scipy.optimize.Bounds`, or any object with `project(x)` and `diameter`.
    scale : float or array, optional
        The typical size of each variable; the search happens in x / scale.
    budget : int, optional
        How many values may be told; without one the run never ends by itself.
    paired : bool
        Whether the points of one probe share their xi.
    seed : int, optional
        Two runs with the same seed and the same values are the same run.
    batch : int
        How many independent probes a step uses.
    ahead : int
        How many steps are asked before the one under way is complete: with 1, the next is asked where the last one
        ended. Takes nothing from what a probe is worth but that it is a little behind; for many workers.

    Examples
    --------
    >>> import numpy as np, poem_cma as pc
    >>> opt = pc.Optimizer(np.ones(5), method="poem", budget=2000, seed=1)
    >>> while (probe := opt.ask()) is not None:
    ...     opt.tell(probe, [np.abs(x - 0.3).sum() for x in probe.points])
    >>> bool(np.abs(opt.result().x - 0.3).max() < 0.05)
    True
    """

    def __init__(
        self,
        x0: Any,
        *,
        method: str | Method = "auto",
        domain: Any = None,
        scale: Any = None,
        budget: int | None = None,
        paired: bool = True,
        seed: int | None = None,
        batch: int = 1,
        ahead: int = 0,
    ) -> None:
        x = check_x0(x0)
        self.method = by_name(method)
        self.domain = as_domain(domain, len(x))
        self.scale = check_scale(scale, x)
        self.seed = make_seed(seed)
        x = inside_domain(x, self.domain)
        search_domain = searched(self.domain, self.scale, x)
        if self.scale is not None:
            x = x / self.scale
        calls, probes, steps = check_budget(budget), check_batch(batch), check_ahead(ahead)
        run = make_run(self.method, x, search_domain, calls, probes, bool(paired), steps)
        self._state: Any = _algorithm(run.method).begin(run.method, run)
        self.history = History()
        self.failures = 0
        self._barren = 0  # calls since the last usable difference
        self._start()

    def _start(self) -> None:
        self._plain = False  # whether the stage is a single probe that nobody holds, and nothing is unusual
        self._issued = 0  # probes of stages so far, where steps are asked ahead
        self._again: deque[tuple[Lane, int]] = deque()  # base values that failed and are to be asked again
        self._follow()
        self._go_on_from(self._state)

    def _follow(self) -> None:
        """Take up the method of the state; a method may hand over to another."""
        run = self._state.run
        self._active = run.method
        self._algorithm = _algorithm(run.method)
        self._to_ask: deque[tuple[Lane, int]] = deque()  # stages, by their first probes, in the order of these
        randoms = self._algorithm.randoms(run.method, run, self.seed)
        self._lanes = [Lane(self._state, randoms)]  # steps in flight, the first of which is the next to be taken

    def _go_on_from(self, state: Any) -> None:
        """From a state with nothing in flight."""
        self._state = state
        self._nfev: int = state.nfev  # calls told so far
        self._plain = False
        self._open_step()

    # The steps in flight: which probes are asked, and what has been told of them.

    def _open_step(self) -> None:
        """Ask from the state; and from those ahead of it."""
        lane = self._lanes[0]
        lane.state = s = self._state
        sizes = self._algorithm.stage(self._active, s, lane.randoms)
        if self._plain and len(sizes) == 1:
            lane.sizes = sizes
            return  # everything is as it was
        if not sizes:
            self._follow()  # the last directions, which may be large, are not needed any more
            lane = self._lanes[0]
        self._open(lane, sizes)
        lane.calls = 0
        self._plain = len(sizes) == 1 and self.scale is None and self._barren == 0 and not s.run.ahead
        self._go_ahead()

    def _open(self, lane: Lane, sizes: list[int]) -> None:
        lane.open(sizes, self._issued if lane.state.run.ahead else lane.state.asked)
        self._issued += len(sizes)
        self._to_ask.append((lane, lane.first))

    def _go_ahead(self) -> None:
        """Ask steps before those in flight are complete, as many as the run may."""
        while len(self._lanes) <= self._state.run.ahead:
            s = self._algorithm.ahead(self._active, self._state, [lane.state for lane in self._lanes])
            if s is None:
                return
            lane = Lane(s, self._lanes[-1].randoms.another())
            self._open(lane, self._algorithm.stage(self._active, s, lane.randoms))
            self._lanes.append(lane)

    def ask(self) -> Probe | None:
        """The next probe, or None when everything asked so far must be told first, or the run is over."""
        if self._barren >= BARREN_CALLS:
            return None
        if self._plain:  # no longer: somebody else will hold a probe
            self._plain = False
            self._open(self._lanes[0], self._lanes[0].sizes)
        if self._again:
            return self._base_probe(*self._again.popleft())
        if (asked := self._unasked()) is None:
            return None
        lane, i = asked
        points, numbers = self._algorithm.points(self._active, lane.state, i, lane.randoms)
        return Probe(self._to_user(matrix(points)), numbers, 2 * (lane.first + i))

    def _unasked(self) -> tuple[Lane, int] | None:
        """The next probe that was not handed out: in the one order in which stages are opened, whoever is told when."""
        while self._to_ask:
            lane, first = self._to_ask[0]
            if lane.first == first and (i := lane.unasked()) is not None:
                return lane, i
            self._to_ask.popleft()
        return None

    def _base_probe(self, lane: Lane, i: int) -> Probe:
        points, numbers = self._algorithm.points(self._active, lane.state, i, lane.randoms)
        b = self._algorithm.base(self._active)
        assert b is not None
        return Probe(self._to_user(matrix(points)[b : b + 1]), [numbers[b]], 2 * (lane.first + i) + 1)

    def _to_user(self, points: Array) -> Array:
        if self.scale is None:
            return points
        points = points * self.scale
        if self.domain.inside:  # rounding in the change of scale must not break the promise
            points = np.array([self.domain.project(x) for x in points])
        return points

    def tell(self, probe: Probe, values: Any) -> None:
        """Tell the values of a probe's points, in order; NaN or infinity means that the call failed."""
        number, again = probe.id >> 1, bool(probe.id & 1)
        lane = next((lane for lane in self._lanes if lane.waits_for(number - lane.first, again)), None)
        if lane is None or self._plain:
            raise ValueError(f"probe {probe.id} is not waiting for values: it was told already, or is of another run")
        F = values if type(values) is list else _numbers(values)
        i = number - lane.first
        if len(F) != (m := 1 if again else lane.sizes[i]):
            raise ValueError(f"probe {probe.id} has {m} points, but {len(F)} values were told")
        self._take(lane, i, F, again)

    def answer(self, oracle: Callable[[Iterable[Array], list[int]], list[float]]) -> bool:
        """Ask, evaluate and tell one probe, its points made one at a time; False where `ask` would give None."""
        if self._plain:
            lane = self._lanes[0]
            points, numbers = self._algorithm.points(self._active, self._state, 0, lane.randoms)
            F = oracle(points, numbers)
            if isfinite(sum(F)):
                self._nfev = nfev = self._nfev + len(F)
                self._reached(self._algorithm.advance(self._active, self._state, [F], lane.randoms, nfev))
            else:
                self._take_alone(F)
            return True
        if self._barren >= BARREN_CALLS:
            return False
        if self._again:
            probe = self._base_probe(*self._again.popleft())
            self.tell(probe, oracle(probe.points, probe.numbers))
            return True
        if (asked := self._unasked()) is None:
            return False
        lane, i = asked
        points, numbers = self._algorithm.points(self._active, lane.state, i, lane.randoms)
        if self.scale is not None:
            points = (self._to_user(x[None])[0] for x in points)
        self._take(lane, i, oracle(points, numbers), again=False)
        return True

    def _take_alone(self, F: list[float]) -> None:
        """Note the values of the only probe, some of which failed."""
        lane = self._lanes[0]
        self._plain = False
        self._open(lane, lane.sizes)
        lane.next = 1
        self._take(lane, 0, F, again=False)

    def _take(self, lane: Lane, i: int, F: list[float], again: bool) -> None:
        """Note the values of probe i; the last one closes the stage."""
        self._nfev += len(F)
        lane.calls += len(F)
        if isfinite(sum(F)) and not again:
            lane.values[i] = F
            self._barren = 0
        elif self._failed(lane, i, F, again):
            return  # the base value is asked again
        lane.waiting -= 1
        if not lane.waiting:
            self._close_stage(lane)

    def _failed(self, lane: Lane, i: int, F: list[float], again: bool) -> bool:
        """Note what failed; whether the base value did and is asked again: once, where that can save a difference."""
        self.failures += sum(not isfinite(value) for value in F)
        F = [value if isfinite(value) else nan for value in F]
        base = self._algorithm.base(self._active)
        if again:
            first = lane.values[i]
            assert first is not None
            assert base is not None
            F = [*first[:base], F[0], *first[base + 1 :]]
            lane.bases.discard(i)
        lane.values[i] = F
        usable = self._algorithm.usable(self._active, F)
        self._barren = 0 if usable else self._barren + (1 if again else len(F))
        if again or base is None or isfinite(F[base]) or not any(map(isfinite, F)) or not self._one_more_call(lane):
            return False
        lane.repeats += 1
        lane.bases.add(i)
        self._again.append((lane, i))
        return True

    def _one_more_call(self, lane: Lane) -> bool:
        """Whether the budget has a call to spare. Where steps are asked ahead, it was reserved."""
        s = self._state
        return not self._alone(lane) or bool(s.nfev + sum(lane.sizes) + lane.repeats + 1 <= s.run.budget)

    def _alone(self, lane: Lane) -> bool:
        """Whether the step is asked from where the run is, and nothing else is in flight."""
        return lane.state is self._state and len(self._lanes) == 1

    def _close_stage(self, lane: Lane) -> None:
        """Go on with the step, or take it; but in their order."""
        values: Any = lane.values  # all are told
        if self._alone(lane):
            s = self._state
            self._reached(self._algorithm.advance(self._active, s, values, lane.randoms, self._nfev))
            return
        calls = sum(map(len, values)) + lane.repeats
        lane.state, lane.complete = self._algorithm.told(
            self._active, lane.state, values, lane.randoms, lane.state.nfev + calls
        )
        if not lane.complete:
            self._open(lane, self._algorithm.stage(self._active, lane.state, lane.randoms))
        while self._lanes[0].complete:
            self._land()

    def _land(self) -> None:
        """Take the step that was asked first; then ask another, or go on alone where that must wait."""
        lane, before, alone = self._lanes[0], self._state, len(self._lanes) == 1
        values: Any = lane.values
        after = self._algorithm.landed(
            self._active, before, lane.state, values, lane.randoms, before.nfev + lane.calls, alone
        )
        if alone:
            lane.complete = False
            self._reached(after)
        else:
            del self._lanes[0]
            self._state = after
            if after.t > before.t:
                self.history.record(after, after.extras if self._active.algorithm else ())
            self._go_ahead()

    def _reached(self, after: Any) -> None:
        """A state with nothing in flight."""
        before, self._state = self._state, after
        if after.t > before.t:
            self.history.record(after, after.extras if self._active.algorithm else ())
        if after.run.method is not self._active:
            self._follow()
        self._open_step()

    @property
    def done(self) -> bool:
        """Whether the budget is spent, or so many calls in a row have failed that going on is pointless."""
        return not self._lanes[0].sizes or self._barren >= BARREN_CALLS

    @property
    def one_probe(self) -> bool:
        """Whether all that can be asked now is a single probe."""
        return self._plain

    @property
    def nfev(self) -> int:
        """Values told so far."""
        return self._nfev

    @property
    def nit(self) -> int:
        """Steps taken so far."""
        return int(self._state.t)

    @property
    def value(self) -> tuple[float, float]:
        """The smoothed value of recent probes, and its standard error."""
        s = self._state
        n = min(max(s.t, 1), 2 * core.VALUE_MEMORY - 1)  # as many independent values an exponential mean is worth
        return s.value, 1.2533 * s.value_spread / n**0.5  # for normal noise, sd = sqrt(pi/2) mean deviation

    def result(self, status: int | None = None, message: str | None = None) -> Result:
        """What the run has come to."""
        s = self._state
        if status is None:
            status, message = self._status()
        return Result(
            x=self._point(self._algorithm.output(s)),
            x_last=self._point(s.x),
            x_average=self._point(s.average),
            fun=nan,
            fun_stderr=nan,
            nfev=self._nfev,
            nit=s.t,
            success=status in Status.SUCCESSES,
            status=status,
            message="; ".join(filter(None, (message, s.run.remark))),
            failures=self.failures,
            history=self.history.arrays(),
            method=repr(self.method),
            seed=self.seed,
            spectrum=s.spectrum,
        )

    def _status(self) -> tuple[int, str]:
        if self.failures and self.failures == self._nfev:
            return Status.FAILURES, f"all {self._nfev} calls failed"
        if self._barren >= BARREN_CALLS:
            return (
                Status.FAILURES,
                f"stopped: failures left no usable difference in the last {self._barren} calls",
            )
        if self.done:
            return Status.BUDGET, f"the budget of {self._state.run.budget} calls is spent"
        return Status.RUNNING, "the run is not over"

    def _point(self, x: Array) -> Array:
        # An average lies in the domain but for rounding; never the run's own vector, so that nobody can change it.
        x = x if self.scale is None else x * self.scale
        y = self.domain.project(x)
        held = [v for v in (self._state.run.x0, *self._state) if isinstance(v, np.ndarray)]
        return y.copy() if any(np.may_share_memory(y, v) for v in held) else y

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the whole run to a file: arrays and a JSON header, replaced in one go."""
        checkpoint.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, method: Method | None = None, domain: Any = None) -> Optimizer:
        """Go on from a saved run, bit for bit; probes that were asked but not told are asked again.

        A method or a domain of your own making cannot be read from a file: pass it again.
        """
        return checkpoint.load(cls, path, method=method, domain=domain)


def _algorithm(method: Method) -> Algorithm:
    return method.algorithm or DESCENT


def _numbers(values: Any) -> list[float]:
    try:
        return list(map(float, values))
    except (TypeError, ValueError):
        raise ValueError(f"the values of a probe must be one number for each point, not {values!r}") from None
