"""`bounds=` as SciPy's users write it: pairs, a scipy.optimize.Bounds, or a box."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from poem_cma.domains.sets import Box

__all__ = ["domain_of"]


def domain_of(domain: Any, bounds: Any, x0: Any = None) -> Any:
    """The domain that is given by one of the arguments `domain` and `bounds`; else that of the run whose result x0 is.

    >>> domain_of(None, [(0, 1), (None, 5)])
    Box(lower=[  0., -inf], upper=[1., 5.], dimension=2)
    """
    if bounds is None and domain is None:
        learned = getattr(x0, "learned", None)
        return None if learned is None else learned.domain
    if bounds is None:
        return domain
    if domain is not None:
        raise ValueError("domain= and bounds= are both given: give one of them, not both")
    return _box(bounds)


def _box(bounds: Any) -> Any:
    """A box from pairs; for a mapping, what its entries stand for."""
    if isinstance(bounds, Mapping):
        return {name: _box(part) for name, part in bounds.items()}
    if hasattr(bounds, "project") or hasattr(bounds, "lb"):
        return bounds
    try:
        pairs = [bounds] if np.ndim(bounds[0]) == 0 else list(bounds)
        lower = np.array([-np.inf if low is None else low for low, _ in pairs], dtype=float)
        upper = np.array([np.inf if high is None else high for _, high in pairs], dtype=float)
    except (TypeError, ValueError, IndexError, KeyError):
        raise ValueError(
            f"bounds must be a pair (lower, upper) for each variable, None where there is no bound, or a "
            f"scipy.optimize.Bounds, not {bounds!r}"
        ) from None
    if (lower == upper).all():
        raise ValueError(
            f"bounds must be a pair (lower, upper) for each variable, but each pair of {bounds!r} is one value twice; "
            "lower and upper bounds in two lists are scipy.optimize.Bounds(lower, upper)"
        )
    return Box(float(lower[0]), float(upper[0])) if np.ndim(bounds[0]) == 0 else Box(lower, upper)
