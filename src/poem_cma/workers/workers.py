"""What a user says about workers."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf
from typing import Any

import numpy as np

from poem_cma.run.algorithm import Method
from poem_cma.workers.task import Objective

__all__ = ["Workers", "as_workers", "auto_ahead", "make_place"]


@dataclass(frozen=True)
class Workers:
    """Where `fun` is evaluated, and what to do about evaluations that fail.

    Parameters
    ----------
    executor : int, Executor, Client or module
        A number of processes; any `concurrent.futures.Executor` (threads, processes, ``mpi4py.futures``); a Dask
        client; or the module ``ray`` after ``ray.init()``.
    timeout : float, optional
        The seconds that an evaluation may take. Then its process is killed; a thread cannot be killed.
    retries : int
        How often an evaluation is repeated, on another worker if possible, if its worker died or hung, or `fun` raised
        or returned no number. After that it has failed. It counts once. NaN is an answer and is not repeated.
    patience : float, optional
        The seconds to wait for workers if none are left; by default without end.

    Examples
    --------
    >>> import numpy as np, poem_cma as pc
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(4) as threads:
    ...     result = pc.minimize(
    ...         lambda x: float(abs(x).sum()), np.ones(3), budget=400, seed=0, workers=pc.Workers(threads, retries=0)
    ...     )
    >>> result.nfev <= 400
    True
    """

    executor: Any
    timeout: float | None = None
    retries: int = 2
    patience: float | None = None

    def __post_init__(self) -> None:
        e = self.executor
        if isinstance(e, bool) or (isinstance(e, int | np.integer) and e < 1):
            raise ValueError(f"workers must be a number of processes from 1 up, not {e!r}")
        if not isinstance(e, int | np.integer) and not _is_ray(e) and not callable(getattr(e, "submit", None)):
            raise TypeError(
                f"workers must be a number of processes, an executor, a Dask client, the module ray, or "
                f"poem_cma.Workers(...), not {e!r}"
            )
        for name in ("timeout", "patience"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float | np.number) and 0.0 < value < inf):
                raise ValueError(f"{name} must be a positive number of seconds, not {value!r}")
        if isinstance(self.retries, bool) or not isinstance(self.retries, int | np.integer) or self.retries < 0:
            raise ValueError(f"retries must be a whole number from 0 up, not {self.retries!r}")


def as_workers(workers: Any) -> Workers | None:
    """What the user gave as `workers`."""
    return workers if workers is None or isinstance(workers, Workers) else Workers(workers)


#: So many calls for each worker are in flight: one or two that it works on, and as many that it has at hand.
CALLS_A_WORKER = 4

#: Of the steps of a run, no more than one in so many is in flight at a time.
LEAST_STEPS = 50


def auto_ahead(workers: Workers | None, method: Method, budget: int) -> int:
    """How many steps must be asked before the one under way is complete, so that all workers are busy."""
    if workers is None or method.algorithm is not None:  # a generation of `auto` is a batch already
        return 0
    calls = method.difference.calls
    return max(0, min(ceil(CALLS_A_WORKER * _count(workers.executor) / calls), budget // (LEAST_STEPS * calls)) - 1)


def _count(executor: Any) -> int:
    """Workers there are, before anything is started."""
    if isinstance(executor, int | np.integer):
        return int(executor)
    if _is_ray(executor):
        from poem_cma.workers.ray import cpus

        return cpus(executor)
    if _is_dask(executor):
        from poem_cma.workers.dask import threads

        return threads(executor)
    from poem_cma.workers.futures import workers_of

    return workers_of(executor)


def make_place(workers: Workers | None, objective: Objective, dimension: int) -> Any:
    """Where the tasks will be worked on."""
    if workers is None:
        from poem_cma.workers.here import Here

        return Here(objective, dimension)
    executor = workers.executor
    if isinstance(executor, int | np.integer):
        from poem_cma.workers.processes import Processes

        return Processes(int(executor), objective)
    if _is_ray(executor):
        from poem_cma.workers.ray import Ray

        return Ray(executor, objective)
    if _is_dask(executor):
        from poem_cma.workers.dask import Dask

        return Dask(executor, objective)
    from poem_cma.workers.futures import Futures

    return Futures(executor, objective)


def _is_ray(executor: Any) -> bool:
    return getattr(executor, "__name__", None) == "ray" and hasattr(executor, "remote")


def _is_dask(executor: Any) -> bool:
    return type(executor).__module__.partition(".")[0] == "distributed" and hasattr(executor, "scheduler_info")
