"""The steps in flight: which of their probes are asked, what has been told of them, and taking them in their order."""

from __future__ import annotations

from collections import deque
from math import isfinite, nan
from typing import Any

from poem_cma.domains.variables import Variables
from poem_cma.history import History
from poem_cma.paper.algorithm_1 import DESCENT
from poem_cma.run.algorithm import Algorithm, Method

__all__ = [
    "InFlight",
    "StepInFlight",
    "algorithm_of",
    "asks_again",
    "between_stages",
    "budget_of",
    "change_budget",
    "without_samples",
]


#: A run ends after so many calls in a row, of so many probes, without one usable difference: if a sample fails as a
#: whole, all the points of its probe do, which may be many.
BARREN_CALLS, BARREN_PROBES = 200, 10


class StepInFlight:
    """A step in flight: the probes of its present stage, and what has been told of them.

    Most runs have one. With `ahead` steps asked before the one under way is complete, there are as many more.
    """

    __slots__ = (
        "bases", "calls", "complete", "first", "next", "randoms", "repeats", "sizes", "state", "values",
        "waiting",
    )  # fmt: skip

    def __init__(self, state: Any, randoms: Any) -> None:
        self.state = state  # from which it is asked
        self.randoms = randoms
        self.calls = 0  # told of this step
        self.complete = False  # waiting for an earlier step, with all its values

    def open(self, sizes: list[int], first: int) -> None:
        """A new stage, with probes of so many points, numbered from `first` on."""
        self.sizes = sizes
        self.first = first
        self.waiting = len(sizes)  # probes without an answer
        self.values: list[list[float] | None] = [None] * self.waiting
        self.repeats = 0  # base values that were asked a second time
        self.next = 0
        self.bases: set[int] = set()  # probes whose base value failed and is asked again; none when a stage is closed

    def unasked(self) -> int | None:
        """The next probe of the stage that was not handed out."""
        while (i := self.next) < len(self.values):
            self.next = i + 1
            if self.values[i] is None:
                return i
        return None

    def waits_for(self, i: int, again: bool) -> bool:
        """Whether probe i, or its base asked again, has no values yet."""
        return 0 <= i < len(self.values) and (i in self.bases if again else self.values[i] is None)


class InFlight:
    """Where a run is, and its steps in flight; `Optimizer` is what one sees of it."""

    seed: int
    variables: Variables
    history: History
    failures: int
    _state: Any  # the last that was reached
    _barren: int  # calls since the last usable difference,
    _barren_probes: int  # and probes

    def _start(self) -> None:
        self._plain = False  # whether the stage is a single probe that nobody holds, and nothing is unusual
        self._issued = 0  # probes of stages so far, where steps are asked ahead
        self._again: deque[tuple[StepInFlight, int]] = deque()  # base values that failed and are to be asked again
        self._follow()
        self._go_on_from(self._state)

    def _follow(self) -> None:
        """Take up the method of the state."""
        run = self._state.run
        self._active = run.method
        self._algorithm = algorithm_of(run.method)
        self._to_ask: deque[tuple[StepInFlight, int]] = deque()  # stages, by their first probes, in the order of these
        randoms = self._algorithm.randoms(run.method, run, self.seed)
        self._in_flight = [StepInFlight(self._state, randoms)]  # the first is the next to be taken

    @property
    def _pointless(self) -> bool:
        """Whether so many calls in a row have failed that there is no point in going on."""
        return self._barren >= BARREN_CALLS and self._barren_probes >= BARREN_PROBES

    def _go_on_from(self, state: Any) -> None:
        """From a state with nothing in flight."""
        self._state = state
        self._nfev: int = state.nfev  # calls told so far
        self._plain = False
        self._open_step()

    def _open_step(self) -> None:
        """Ask from the state; and from those ahead of it."""
        step = self._in_flight[0]
        step.state = s = self._state
        sizes = self._algorithm.stage(self._active, s, step.randoms)
        if self._plain and len(sizes) == 1:
            step.sizes = sizes
            return  # everything is as it was
        if not sizes:
            self._follow()  # the last directions, which may be large, are not needed any more
            step = self._in_flight[0]
        self._open(step, sizes)
        step.calls = 0
        self._plain = len(sizes) == 1 and self.variables.unchanged and self._barren == 0 and not s.run.ahead
        self._go_ahead()

    def _open(self, step: StepInFlight, sizes: list[int]) -> None:
        step.open(sizes, self._issued if step.state.run.ahead else step.state.asked)
        self._issued += len(sizes)
        self._to_ask.append((step, step.first))

    def _go_ahead(self) -> None:
        """Ask steps before those in flight are complete, as many as the run may."""
        while len(self._in_flight) <= self._state.run.ahead:
            s = self._algorithm.ahead(self._active, self._state, [step.state for step in self._in_flight])
            if s is None:
                return
            step = StepInFlight(s, self._in_flight[-1].randoms.another())
            self._open(step, self._algorithm.stage(self._active, s, step.randoms))
            self._in_flight.append(step)

    def _unasked(self) -> tuple[StepInFlight, int] | None:
        """The next probe that was not handed out: in the one order in which stages are opened, whoever is told when."""
        while self._to_ask:
            step, first = self._to_ask[0]
            if step.first == first and (i := step.unasked()) is not None:
                return step, i
            self._to_ask.popleft()
        return None

    def _take_alone(self, F: list[float]) -> None:
        """Note the values of the only probe, some of which failed."""
        step = self._in_flight[0]
        self._plain = False
        self._open(step, step.sizes)
        step.next = 1
        self._take(step, 0, F, again=False)

    def _take(self, step: StepInFlight, i: int, F: list[float], again: bool) -> None:
        """Note the values of probe i; the last one closes the stage."""
        self._nfev += len(F)
        step.calls += len(F)
        if isfinite(sum(F)) and not again:
            step.values[i] = F
            self._barren = self._barren_probes = 0
        elif self._failed(step, i, F, again):
            return  # the base value is asked again
        step.waiting -= 1
        if not step.waiting:
            self._close_stage(step)

    def _failed(self, step: StepInFlight, i: int, F: list[float], again: bool) -> bool:
        """Note what failed; whether the base value did and is asked again: once, where that can save a difference."""
        self.failures += sum(not isfinite(value) for value in F)
        F = [value if isfinite(value) else nan for value in F]
        base = self._algorithm.base(self._active)
        if again:
            first = step.values[i]
            assert first is not None
            assert base is not None
            F = [*first[:base], F[0], *first[base + 1 :]]
            step.bases.discard(i)
        step.values[i] = F
        usable = self._algorithm.usable(self._active, F)
        self._barren = 0 if usable else self._barren + (1 if again else len(F))
        self._barren_probes = 0 if usable else self._barren_probes + (not again)
        if again or base is None or isfinite(F[base]) or not any(map(isfinite, F)) or not self._one_more_call(step):
            return False
        step.repeats += 1
        step.bases.add(i)
        self._again.append((step, i))
        return True

    def _one_more_call(self, step: StepInFlight) -> bool:
        """Whether the budget has a call to spare. Where steps are asked ahead, it was reserved."""
        s = self._state
        return not self._alone(step) or bool(s.nfev + sum(step.sizes) + step.repeats + 1 <= s.run.budget)

    def _alone(self, step: StepInFlight) -> bool:
        """Whether the step is asked from where the run is, and nothing else is in flight."""
        return step.state is self._state and len(self._in_flight) == 1

    def _close_stage(self, step: StepInFlight) -> None:
        """Go on with the step, or take it; but in their order."""
        values: Any = step.values  # all are told
        if self._alone(step):
            s = self._state
            self._reached(self._algorithm.advance(self._active, s, values, step.randoms, self._nfev))
            return
        calls = sum(map(len, values)) + step.repeats
        step.state, step.complete = self._algorithm.told(
            self._active, step.state, values, step.randoms, step.state.nfev + calls
        )
        if not step.complete:
            self._open(step, self._algorithm.stage(self._active, step.state, step.randoms))
        while self._in_flight[0].complete:
            self._land()

    def _land(self) -> None:
        """Take the step that was asked first; then ask another, or go on alone where that must wait."""
        step, before, alone = self._in_flight[0], self._state, len(self._in_flight) == 1
        values: Any = step.values
        after = self._algorithm.landed(
            self._active, before, step.state, values, step.randoms, before.nfev + step.calls, alone
        )
        if alone:
            step.complete = False
            self._reached(after)
        else:
            del self._in_flight[0]
            self._state = after
            if after.t > before.t:
                self.history.record(after)
            self._go_ahead()

    def _reached(self, after: Any) -> None:
        """A state with nothing in flight."""
        before, self._state = self._state, after
        if after.t > before.t:
            self.history.record(after)
        self._open_step()


def algorithm_of(method: Method) -> Algorithm:
    """What makes a run of a method."""
    return method.algorithm or DESCENT


def asks_again(opt: InFlight) -> bool:
    """Whether a base value that failed is asked again: before anything else is told."""
    return bool(opt._again)


def budget_of(opt: InFlight) -> float:
    """How many values may be told."""
    budget: float = opt._state.run.budget
    return budget


def without_samples(opt: InFlight) -> None:
    """Note in a run that has not begun that there are no xi's to draw: all samples are the same."""
    s = opt._state
    opt._state = opt._in_flight[0].state = s._replace(run=s.run._replace(sampled=False))


def between_stages(opt: InFlight) -> bool:
    """Whether the budget can be changed: nothing was asked or told of the stage, or steps are asked ahead."""
    step = opt._in_flight[0]
    fresh = step.waiting == len(step.sizes) and step.next == 0 and not step.bases
    return fresh or not opt._alone(step)


def change_budget(opt: InFlight, budget: float) -> None:
    """Go on with another number of calls, from between two stages; it is the algorithm that knows how."""
    if budget == budget_of(opt):
        return
    opt._barren = opt._barren_probes = 0
    change, first = opt._algorithm.with_budget, opt._in_flight[0]
    if opt._alone(first):
        opt._go_on_from(change(opt._active, opt._state, budget, first.randoms))
        return
    opt._state = change(opt._active, opt._state, budget, first.randoms)
    for step in opt._in_flight:
        step.state = change(opt._active, step.state, budget, step.randoms)
