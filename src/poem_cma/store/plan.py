"""Does a call of `minimize` fit a store?"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from poem_cma.optimizer import Optimizer
from poem_cma.run.packing import CUSTOM, described, pack
from poem_cma.store.errors import StoreError

__all__ = ["describe", "refuse_other_settings"]

_LONGEST = 200  # numbers of an array that are kept as they are


def describe(opt: Optimizer, name: str | None, vectorized: bool | str, sampled: bool) -> dict[str, Any]:
    """What makes two runs the same run, as JSON."""
    packed, domain = pack(opt), described(opt.domain)
    method = repr(opt.method) if packed["method.name"] != CUSTOM else f"{opt.method!r}, a method of your own"
    if isinstance(domain, dict):
        domain = {name: _array(value) if isinstance(value, np.ndarray) else value for name, value in domain.items()}
    return {
        "name": name,
        "dimension": len(packed["run.x0"]),
        "method": method,
        "domain": "a domain of your own" if domain == CUSTOM else domain,
        "scale": _array(opt.scale) if isinstance(opt.scale, np.ndarray) else opt.scale,
        "paired": packed["run.paired"],
        "batch": packed["run.batch"],
        "ahead": packed["run.ahead"],
        "vectorized": vectorized,
        "sample": sampled,
        "maximize": opt.sign < 0.0,
        "seed": opt.seed,
        "x0": _array(packed["run.x0"]),  # last: domain and scale change it
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
