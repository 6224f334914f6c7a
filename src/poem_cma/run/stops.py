"""The reasons to stop a run before its budget is spent: a target, a time limit, a callback."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable
from math import inf
from numbers import Real
from typing import Any

from poem_cma.estimate import Estimate
from poem_cma.optimizer import Optimizer
from poem_cma.result import Status
from poem_cma.run.settings import Stops

__all__ = ["CALLBACK_STOPPED", "STEPS_BEFORE_TARGET", "Watch", "wants_result"]

#: `target` is compared with the smoothed value only after so many steps.
STEPS_BEFORE_TARGET = 20

CALLBACK_STOPPED = "the callback stopped the run"


class Watch:
    """Looks at a run after each step; its clock starts when it is made."""

    def __init__(self, stops: Stops) -> None:
        target, time_limit = stops.target, stops.time_limit
        if target is not None and not (isinstance(target, Real) and -inf < target < inf):
            raise ValueError(f"target must be a finite number, not {target!r}")
        if time_limit is not None and not (isinstance(time_limit, Real) and time_limit > 0.0):
            raise ValueError(f"time_limit must be a positive number of seconds, not {time_limit!r}")
        if stops.callback is not None and not callable(stops.callback):
            raise TypeError(f"callback must be callable, not {stops.callback!r}")
        self._callback = _scipy_style(stops.callback) if stops.callback is not None else None
        self.target = target
        self._time_limit = time_limit
        self._started = time.monotonic()

    @property
    def looks(self) -> bool:
        """Whether a run may be stopped."""
        return any(look is not None for look in (self._callback, self.target, self._time_limit))

    def begin(self, opts: Iterable[Optimizer], final: int, show: Callable[[], None] | None) -> bool:
        """Prepare for runs that end with `final` calls; whether there is anything to look at."""
        self._nit, self._final, self._show = {opt: opt.nit for opt in opts}, final, show
        return self.looks or show is not None

    def __call__(self, opt: Optimizer) -> tuple[int, str] | None:
        """Show where the run is; the status and message of a reason to stop it, if there is one."""
        if self._show is not None:
            self._show()
        if self._late(opt.nfev):
            return Status.TIME, f"the time limit of {self._time_limit:g} s is reached"
        if opt.nit > self._nit[opt]:
            self._nit[opt] = opt.nit
            if self._on_target(opt):
                side = "below" if opt.sign > 0.0 else "above"
                return Status.TARGET, f"the smoothed value is {side} the target of {self.target:g}"
            if self._callback is not None and self._callback(opt):
                return Status.CALLBACK, CALLBACK_STOPPED
        return None

    def _late(self, nfev: int) -> bool:
        """Whether the final evaluation, at the pace so far, would end after the time limit."""
        if self._time_limit is None:
            return False
        elapsed = time.monotonic() - self._started
        return elapsed * (1.0 + self._final / max(nfev, 1)) >= self._time_limit

    def _on_target(self, opt: Optimizer) -> bool:
        if self.target is None or opt.nit < STEPS_BEFORE_TARGET:
            return False
        value, stderr = opt.value
        return opt.sign * (self.target - value) >= 2.0 * stderr


def wants_result(callback: Callable[..., Any]) -> bool:
    """Whether a callback has a parameter named intermediate_result."""
    try:
        return "intermediate_result" in inspect.signature(callback).parameters
    except (TypeError, ValueError):
        return False


def _scipy_style(callback: Callable[..., Any]) -> Callable[[Optimizer], bool]:
    """As SciPy does: a parameter named intermediate_result gets the result, any other gets the point."""
    by_name = wants_result(callback)

    def call(opt: Optimizer) -> bool:
        intermediate = opt.result(Status.RUNNING, "the run goes on")
        intermediate.value = Estimate(*opt.value, 0)
        try:
            if by_name:
                callback(intermediate_result=intermediate)
            else:
                callback(intermediate.x)
        except StopIteration:
            return True
        return False

    return call
