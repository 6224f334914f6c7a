"""The arguments of a run as four small records, which travel from `minimize`, `replicate` or the command line."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from poem_cma.run.algorithm import Method

__all__ = ["Place", "Problem", "Search", "Stops"]


class Problem(NamedTuple):
    """What is minimised."""

    fun: Callable[..., Any]
    sample: Callable[..., Any] | None = None
    vectorized: bool | Literal["rows"] = False
    on_failure: Literal["drop", "raise"] = "drop"
    maximize: bool = False


class Search(NamedTuple):
    """How it is searched."""

    x0: Any
    method: str | Method = "auto"
    domain: Any = None
    scale: Any = None
    budget: int = 10_000
    evaluate: int | None = None
    paired: bool = True
    seed: int | None = None
    batch: int | Literal["auto"] = "auto"
    ahead: int = 0


class Stops(NamedTuple):
    """What may end it before its budget is spent."""

    callback: Callable[..., Any] | None = None
    target: float | None = None
    time_limit: float | None = None


class Place(NamedTuple):
    """Where its calls are made, where they are kept, and who watches."""

    workers: Any = None
    store: str | os.PathLike[str] | None = None
    name: str | None = None
    launch: dict[str, Any] | None = None  # how the command line started the run, kept in a new store
    progress: bool = False
