"""Adapters to what people already use; each is imported when it is named, and says what to install if that is missing.

========================  ====================================================
`optuna`                  ``PoemSampler``, a sampler for studies
`nevergrad`               ``PoemAuto`` and others, in Nevergrad's registry
`scipy`                   ``scipy_method``, for `scipy.optimize.minimize`
`art`                     ``PoemAttack``, an evasion attack
`tensorboard`, `mlflow`   callbacks that log a run
========================  ====================================================
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_ROOMS = ("art", "mlflow", "nevergrad", "optuna", "scipy", "tensorboard")

__all__ = ["art", "mlflow", "nevergrad", "optuna", "scipy", "tensorboard"]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"poem_cma.integrations.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
