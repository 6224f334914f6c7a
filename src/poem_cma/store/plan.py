"""Does a call of `minimize` fit a store? And how a run goes on with another number of calls."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from poem_cma.optimizer import Optimizer
from poem_cma.run import checkpoint
from poem_cma.run.checks import calls_per_step
from poem_cma.run.in_flight import algorithm_of
from poem_cma.store.errors import StoreError

__all__ = ["at_boundary", "describe", "refuse_other_settings", "with_budget"]

_LONGEST = 200  # numbers of an array that are kept as they are


def describe(opt: Optimizer, name: str | None, vectorized: bool | str, sampled: bool) -> dict[str, Any]:
    """What makes two runs the same run, as JSON."""
    arrays, header = checkpoint._pack(opt)
    domain = header["domain"]
    if isinstance(domain, dict):
        domain |= {k.removeprefix("domain_"): _array(v) for k, v in arrays.items() if k.startswith("domain_")}
    method = header["method"]
    return {
        "name": name,
        "dimension": len(arrays["x0"]),
        "method": repr(opt.method) if isinstance(method, dict) else f"{opt.method!r}, a method of your own",
        "domain": domain if domain is None or isinstance(domain, dict) else "a domain of your own",
        "scale": _array(arrays["scale"]) if "scale" in arrays else header["scale"],
        "paired": header["run"]["paired"],
        "batch": header["run"]["batch"],
        "ahead": header["run"]["ahead"],
        "vectorized": vectorized,
        "sample": sampled,
        "seed": header["seed"],
        "x0": _array(arrays["x0"]),  # last: domain and scale change it
    }


def _array(values: Any) -> Any:
    """An array as numbers if they are few, else by a checksum."""
    values = np.asarray(values, dtype=float)
    if values.size <= _LONGEST:
        return values.tolist()
    return {"numbers": values.size, "sha256": hashlib.sha256(values.tobytes()).hexdigest()}


def refuse_other_settings(path: Any, stored: dict[str, Any], given: dict[str, Any]) -> None:
    """Raise a StoreError that names the first setting in which a call differs from its store."""
    for key, value in given.items():
        if stored.get(key) != value:
            raise StoreError(
                f"{path} holds another run: its {key} is {_short(stored.get(key))}, here it is {_short(value)}. "
                f"Give the same settings to go on with it, or another store"
            )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def at_boundary(opt: Optimizer) -> bool:
    """Whether nothing was asked or told of the present stage; steps that are asked ahead can go on as they are."""
    lane = opt._lanes[0]
    return _ahead(opt) or (lane.waiting == len(lane.sizes) and lane.next == 0 and not lane.bases)


def _ahead(opt: Optimizer) -> bool:
    return len(opt._lanes) > 1 or opt._lanes[0].state is not opt._state


def with_budget(opt: Optimizer, budget: float) -> None:
    """Go on with another number of calls, from a boundary between two stages.

    Methods whose step depends on the number of steps take it for the new number from here on; `auto` makes its last
    comparison again at the new end.
    """
    s = opt._state
    run = s.run
    if budget == run.budget:
        return
    preliminary = run.pairs * run.method.difference.calls
    steps = run.method.settings.get("steps") or (budget - preliminary) // calls_per_step(run.method, run.batch)
    run = run._replace(budget=budget, steps=steps)
    opt._barren = opt._barren_probes = 0
    if _ahead(opt):
        opt._state = s._replace(run=run)
        for lane in opt._lanes:
            lane.state = lane.state._replace(run=run)
        return
    opt._go_on_from(algorithm_of(run.method).with_budget(s, run, opt._lanes[0].randoms))
