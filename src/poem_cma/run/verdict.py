"""Has a run done what it was started for? If not, its status and the first sentence of its message say why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from poem_cma.result import Result, Status
from poem_cma.run.arithmetic import distance, length

if TYPE_CHECKING:
    from poem_cma.optimizer import Optimizer

__all__ = ["judge"]

#: The ends of a run that are looked at: all that can be a success, but for a target that is reached.
LOOKED_AT = (Status.BUDGET, Status.CONVERGED, Status.TIME, Status.CALLBACK)
#: F falls without bound if it is still lower at a distance from x0 that is so many times the scale of x0.
ENDLESS = 1e7
#: The interval of a gain above so many standard errors is not computed. It needs SciPy, whose import takes time.
OBVIOUS = 20.0


def judge(result: Result, opt: Optimizer) -> None:
    """Change the status of a result that is no improvement on x0, and put the reason before the message.

    Where the gain is positive, but its interval holds zero, the message says so at its end.
    """
    if result.status not in LOOKED_AT or not opt.nfev:
        return
    found = _failing(result, opt)
    if found is not None:
        result.status, reason = found
        result.message = f"{reason}; {result.message}"
    elif result.gain.mean < OBVIOUS * result.gain.stderr and result.gain.low < 0.0:
        result.message += f"; x may be no better than x0: the gain is {result.gain}"


def _failing(result: Result, opt: Optimizer) -> tuple[int, str] | None:
    x0, better = opt.start, "lower" if opt.sign > 0.0 else "higher"
    without_samples = not opt._state.run.sampled  # then values that differ between steps differ because of x
    if opt.constant and not (without_samples and opt.value[1] > 0.0):
        return Status.CONSTANT, f"F seems to be constant: in {opt.nfev} evaluations no value has changed with x"
    if np.array_equal(result.x, x0):
        if np.array_equal(result.x_last, x0):
            return Status.UNMOVED, f"the search has not moved: no {better} value was seen at any distance from x0"
        return Status.NOT_BETTER, "nothing better than x0 was found: x0 is returned"
    gain = result.gain
    if gain.mean <= 0.0:
        return Status.NOT_BETTER, f"x is not better than x0: on {gain.samples} common samples the gain is {gain}"
    away = float(distance(result.x, x0))
    if away > ENDLESS * max(1.0, float(length(x0))) and np.isinf(opt.domain.diameter):
        fall = "falls" if opt.sign > 0.0 else "grows"
        return Status.UNBOUNDED, f"F {fall} without bound: x is {away:.1g} from x0; give bounds= or domain="
    return None
