"""The start of an episode: the seed with which an environment is reset, and the numbers that it draws."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["initial_state", "judged_seed", "reset_seed"]

_LIMIT = 2**31


def initial_state(seed: int, low: Any, high: Any, size: int) -> list[float]:
    """Uniform numbers between low and high, as Gymnasium draws them after ``reset(seed=seed)``."""
    rng = np.random.Generator(np.random.PCG64(seed))
    drawn: list[float] = rng.uniform(low, high, size).tolist()
    return drawn


def reset_seed(rng: np.random.Generator) -> int:
    """A seed below 2^31: xi of every problem of the suite."""
    return int(rng.integers(_LIMIT))


def judged_seed(rng: np.random.Generator) -> int:
    """A seed between 2^31 and 2^32: a judge has samples that no run can see."""
    return int(rng.integers(_LIMIT, 2 * _LIMIT))
