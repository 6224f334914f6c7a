"""The final measurement: how many evaluations are kept for it, and what their values say."""

from __future__ import annotations

from typing import Any

import numpy as np

from poem_cma._types import Array
from poem_cma.estimate import Estimate, estimate
from poem_cma.result import Result

__all__ = ["POINTS", "check_evaluate", "summarise"]

#: The result is measured on one sample for so many evaluations of the budget, on at least FEWEST and at most MOST.
PART, FEWEST, MOST = 20, 10, 200
#: Two points are measured on each sample: x and x0.
POINTS = 2
#: By default the measurement takes at most one evaluation in so many, and there is none on fewer than so many samples:
#: small budgets are for the search.
LARGEST_PART, WORTH_IT = 3, 5
#: A result is clearly worse than x0 beyond so many standard errors.
CLEARLY = 3.0


def check_evaluate(evaluate: int | None, budget: Any) -> int:
    """The number of samples on which the result and x0 are measured."""
    if evaluate is None:
        samples = int(min(max(FEWEST, budget // PART), MOST, budget // (LARGEST_PART * POINTS)))
        return samples if samples >= WORTH_IT else 0
    if isinstance(evaluate, bool) or not isinstance(evaluate, int | np.integer) or evaluate < 0:
        raise ValueError(f"evaluate must be a whole number of samples, 0 or more, not {evaluate!r}")
    if POINTS * evaluate >= budget:
        raise ValueError(
            f"evaluate={evaluate} takes {POINTS * evaluate} evaluations, at x and at x0, and leaves nothing of the "
            f"budget of {budget}"
        )
    return int(evaluate)


def summarise(result: Result, values: Array, x0: Array, sign: float) -> None:
    """Put the mean of fresh values at x, and its gain over x0 on the same samples, into the result.

    The rows of `values` belong to x and, if it is another point, to x0; the sign is -1 where F is maximised. If x is
    clearly worse than x0, x0 is the result.
    """
    result.value = estimate(values[0])
    if len(values) > 1:
        with np.errstate(over="ignore"):  # a difference that no float can hold is left out
            result.gain = estimate(sign * (values[1] - values[0]))
        if result.gain.mean < -CLEARLY * result.gain.stderr:
            result.x, result.value = x0.copy(), estimate(values[1])
            result.gain = Estimate(0.0, 0.0, result.value.samples)
    elif result.value.samples:
        result.gain = Estimate(0.0, 0.0, result.value.samples)
