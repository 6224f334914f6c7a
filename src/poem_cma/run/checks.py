"""Before the first call: check what the user gave, and work out the constants of the run."""

from __future__ import annotations

import os
import warnings
from math import inf, isfinite, nan
from typing import Any

import numpy as np

from poem_cma._types import Array
from poem_cma.auto.far.rates import population
from poem_cma.domains.sets import Box
from poem_cma.paper import algorithm_2 as spectrum
from poem_cma.paper import theory
from poem_cma.run.algorithm import Method, Run
from poem_cma.run.arithmetic import equal, length

#: With fewer calls `auto` leaves the work to its fallback.
LEAST_SHARED = 20

__all__ = [
    "calls_per_step",
    "check_ahead",
    "check_batch",
    "check_budget",
    "check_memory",
    "check_scale",
    "check_working_memory",
    "check_x0",
    "default_initial_distance",
    "inside_domain",
    "machine_memory",
    "make_run",
    "widths",
    "working_memory",
]


def check_x0(x0: Any) -> Array:
    """The starting point as a vector of finite numbers, in double precision unless it comes in single."""
    single = getattr(x0, "dtype", None) == np.float32
    if x0 is None:
        raise TypeError("x0 must be a vector of numbers, not None")
    try:
        x: Array = np.array(x0, dtype=np.float32 if single else np.float64)
    except (TypeError, ValueError):
        hint = ": turn it into one with poem_cma.parameters.Structure" if isinstance(x0, dict | list | tuple) else ""
        raise TypeError(f"x0 must be a vector of numbers, not {x0!r}{hint}") from None
    x = np.atleast_1d(x)
    if x.ndim != 1:
        raise ValueError(f"x0 must be a vector, but has shape {x.shape}; flatten it, and restore the shape in fun")
    if not x.size:
        raise ValueError("x0 is empty: there is nothing to optimise")
    if not np.isfinite(x).all():
        where = int(np.flatnonzero(~np.isfinite(x))[0])
        raise ValueError(f"x0 must be finite, but x0[{where}] is {x[where]}")
    return x


def check_budget(budget: Any) -> float:
    """The budget as a number of calls; infinite if there is none."""
    if budget is None:
        return inf
    if isinstance(budget, float) and not budget.is_integer():
        raise ValueError(f"budget must be a whole number of calls, but is {budget}")
    if isinstance(budget, bool | str | bytes):
        raise TypeError(f"budget must be a whole number of calls, not {budget!r}")
    try:
        calls = int(budget)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"budget must be a whole number of calls, not {budget!r}") from None
    if calls < 1:
        raise ValueError(f"budget must be positive, but is {calls}")
    return calls


def check_batch(batch: Any) -> int:
    """The number of xi's a step uses."""
    if isinstance(batch, bool) or not isinstance(batch, int | np.integer) or batch < 1:
        raise ValueError(f"batch must be a whole number from 1 up, not {batch!r}")
    return int(batch)


def check_ahead(ahead: Any) -> int:
    """The number of steps that are asked before the one under way is complete."""
    if isinstance(ahead, bool) or not isinstance(ahead, int | np.integer) or ahead < 0:
        raise ValueError(f"ahead must be a whole number from 0 up, not {ahead!r}")
    return int(ahead)


def check_scale(scale: Any, x: Array) -> float | Array | None:
    """The typical size of each variable."""
    if scale is None:
        return None
    d = len(x)
    try:
        s = np.asarray(scale, dtype=float)
    except (TypeError, ValueError):
        raise TypeError(f"scale must be a number or have one entry for each variable, not {scale!r}") from None
    if s.ndim > 1 or (s.ndim == 1 and len(s) != d):
        raise ValueError(f"scale must be a number or have one entry for each of the {d} variables, not shape {s.shape}")
    with np.errstate(over="ignore"):
        held = s.astype(x.dtype)
    if not (np.isfinite(held).all() and (held > 0).all()):
        raise ValueError(f"scale must be positive and finite, as numbers of {x.dtype}, which x0 has")
    return float(s) if s.ndim == 0 else s.astype(x.dtype)


def widths(domain: Any, x: Array) -> float | Array | None:
    """The widths of a bounded box as it is searched, and 1 for a variable that it fixes; None for any other domain."""
    domain = domain.relaxed()
    if not isinstance(domain, Box) or not isfinite(domain.diameter):
        return None
    width = np.broadcast_to(np.subtract(domain.upper, domain.lower), x.shape)
    width = np.where(width > 0.0, width, 1.0).astype(x.dtype)
    return None if (width == width[0]).all() else width


def inside_domain(x0: Array, domain: Any) -> Array:
    """x0 itself, or the nearest point of the domain, with a warning."""
    nearest: Array = domain.project(x0)
    if not equal(nearest, x0) and not domain.contains(x0):
        gap = float(np.sqrt(((x0 - nearest) ** 2).sum()))
        warnings.warn(
            f"x0 lies outside the domain; the run starts from its projection, {gap:.3g} away",
            UserWarning,
            stacklevel=4,
        )
    return nearest


def default_initial_distance(x0: Array, diameter: float) -> float:
    """r_eps: a twentieth of the domain's diameter, or where that says nothing 1e-2 (1 + |x0|)."""
    return diameter / 20.0 if 0.0 < diameter < inf else 1e-2 * (1.0 + float(length(x0)))


def calls_per_step(method: Method, batch: int) -> int:
    """Oracle calls of one step."""
    return batch * method.difference.calls


def make_run(method: Method, x0: Array, domain: Any, budget: float, batch: int, paired: bool, ahead: int = 0) -> Run:
    """The constants of a run, or an error that says what is missing."""
    if method.fallback is not None and budget < LEAST_SHARED:
        method = method.fallback
    check_working_memory(method, x0, ahead, domain.outside)
    if domain.hull_dimension(len(x0)) == 0:
        raise ValueError("the domain is a single point: there is nothing to optimise")
    settings = method.settings
    r_eps = settings.get("initial_distance") or default_initial_distance(x0, domain.diameter)
    least = float(np.finfo(x0.dtype).tiny)
    if r_eps < least:
        raise ValueError(
            f"the search would begin with a distance of {r_eps:g}, and the least number of {x0.dtype}, which x0 has, "
            f"is {least:.2g}: measure the variables, or the domain, in smaller units"
        )
    pairs = _pairs(method, len(x0), budget)
    step = calls_per_step(method, batch)
    preliminary = pairs * method.difference.calls
    if budget < preliminary + step:
        before = f" after {preliminary} preliminary ones" if preliminary else ""
        raise ValueError(
            f"budget is {budget} calls, but {method.name} needs at least {preliminary + step}: "
            f"one step costs {step} calls{before}"
        )
    run = Run(
        method=method,
        x0=x0,
        domain=domain,
        budget=budget,
        batch=batch,
        ahead=ahead,
        paired=paired,
        initial_distance=r_eps,
        steps=settings.get("steps") or (budget - preliminary) // step,
        diameter=settings.get("diameter") or domain.diameter,
        lipschitz=settings.get("lipschitz") or nan,
        distance=settings.get("distance") or domain.diameter,
        pairs=pairs,
    )
    for need in method.needs:
        if not isfinite(getattr(run, need)) or getattr(run, need) <= 0.0:
            raise ValueError(_MISSING[need].format(name=method.name))
    return run


_MISSING = {
    "lipschitz": "{name} needs the Lipschitz constant of F: poem_cma.methods.{name}(lipschitz=...)",
    "diameter": "{name} needs the diameter of the domain: give a bounded domain=, "
    "or poem_cma.methods.{name}(..., diameter=...)",
    "distance": "{name} needs a bound on the distance from x0 to a minimiser: "
    "poem_cma.methods.{name}(..., distance=...), or give a bounded domain=",
    "steps": "{name} fixes its step by the number of steps: give budget=, or poem_cma.methods.{name}(..., steps=...)",
}


def _pairs(method: Method, d: int, budget: float) -> int:
    """M: as asked for, else floor(d ln d) within an eighth of the budget and within memory."""
    if method.learning is None:
        return 0
    if method.learning.samples is not None:
        check_memory(d, method.learning.samples)
        return method.learning.samples
    most = min(theory.sample_size(d), budget // 8)
    if spectrum.memory_needed(d, d) > spectrum.MEMORY_LIMIT:  # no d x d matrix fits: stay with a thin one
        most = min(most, spectrum.MEMORY_LIMIT // spectrum.memory_needed(d, 1))
    return max(1, int(most))


def working_memory(method: Method, x0: Array, ahead: int = 0, outside: bool = True) -> int:
    """Bytes that a run takes: eight vectors, three for each step ahead, three to keep points inside a domain.

    `auto` holds thirteen for a sample. Its samples are in double precision, whatever x0 is.
    """
    if method.algorithm is None:
        return (8 + 3 * ahead + 3 * (not outside)) * x0.nbytes
    return 13 * population(len(x0)) * 8 * len(x0)


def machine_memory() -> float:
    """Bytes of memory that this machine has; infinite where it does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return inf


def check_working_memory(method: Method, x0: Array, ahead: int = 0, outside: bool = True) -> None:
    """Refuse a run that this machine cannot hold, before anything of it is made."""
    needed, there = working_memory(method, x0, ahead, outside), machine_memory()
    if needed > there:
        half = " Give x0 in float32 for half of it," if x0.dtype == np.float64 else " Use"
        fewer = f", fewer than {ahead} steps ahead" if ahead else ""
        raise MemoryError(
            f"{method.name} in {len(x0)} dimensions needs about {needed / 2**30:.1f} GiB, and this machine has "
            f"{there / 2**30:.1f} GiB.{half}{fewer} or a machine with more; POEM needs least"
        )


def check_memory(d: int, samples: int) -> None:
    """Refuse more estimates than memory is meant to hold."""
    needed, limit = spectrum.memory_needed(d, samples), spectrum.MEMORY_LIMIT
    if needed > limit:
        fit = limit // spectrum.memory_needed(d, 1)
        raise MemoryError(
            f"{samples} gradient estimates in {d} dimensions need {needed / 2**30:.1f} GiB, more than the "
            f"{limit / 2**30:.1f} GiB allowed; ask for at most {fit} (samples={fit}), "
            f"or raise poem_cma.paper.algorithm_2.MEMORY_LIMIT"
        )
