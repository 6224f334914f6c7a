"""What callbacks log of a run: numbers by name, now and then."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import isfinite
from typing import Any, Self

from poem_cma.result import Result

__all__ = ["Logger", "metrics"]

_COLUMNS = ("distance", "step_size", "smoothing", "gradient_norm", "effective_dimension")


def metrics(result: Result) -> dict[str, float]:
    """The numbers of a result that are worth a curve: the value and its error, the last row of the history, failures.

    >>> import numpy as np, poem_cma as pc
    >>> list(metrics(pc.minimize(lambda x: float(abs(x).sum()), np.ones(2), method="poem", budget=100)))[:3]
    ['value', 'value_stderr', 'distance']
    """
    found = {"value": result.fun, "value_stderr": result.fun_stderr}
    found |= {name: float(result.history[name][-1]) for name in _COLUMNS if len(result.history["nfev"])}
    found |= {"failures": float(result.failures), "steps": float(result.nit)}
    return {name: float(value) for name, value in found.items() if isfinite(value)}


class Logger(ABC):
    """A callback that logs every so many calls; a `with` block around the run closes it.

    After the run, `finish` logs the value that was measured at the end.
    """

    def __init__(self, every: int) -> None:
        if every < 1:
            raise ValueError(f"every must be a number of calls from 1 up, not {every!r}")
        self._every = every
        self._next = 0  # calls at which to log again

    def __call__(self, intermediate_result: Result) -> None:
        """After a step."""
        if intermediate_result.nfev >= self._next:
            self._next = intermediate_result.nfev + self._every
            self._log(intermediate_result, metrics(intermediate_result))

    def finish(self, result: Result) -> None:
        """Log the result, its value under the name final_value, and close."""
        found = metrics(result)
        final = {f"final_{name}": found.pop(name) for name in ("value", "value_stderr") if name in found}
        self._log(result, found | final)
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    @abstractmethod
    def _log(self, result: Result, numbers: dict[str, float]) -> None:
        """Write numbers down, at the number of calls so far."""

    @abstractmethod
    def close(self) -> None:
        """Write what is left; nothing more may be logged."""
