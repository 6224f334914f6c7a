"""Variables that are declared one by one, as the leaves of a nest: a real number, an integer."""

from __future__ import annotations

from math import isfinite, sqrt
from typing import final

import numpy as np

from poem_cma.domains.convex import number
from poem_cma.domains.sets import Box

__all__ = ["Declared", "Integer", "Real"]


class Declared:
    """A variable between bounds, with the value that a run starts from."""

    integer = False

    def __init__(self, lower: float, upper: float, *, log: bool = False, start: float | None = None) -> None:
        self.log = bool(log)
        lower, upper = number("lower", lower), number("upper", upper)
        self.box = Box(lower, upper, integer=self.integer, log=self.log).for_dimension(1)
        self.start = self._middle() if start is None else self._checked(number("start", start))

    def _middle(self) -> float:
        """The middle of the range, of the logarithm for `log`; without two bounds the number nearest to 0, or to 1."""
        low, high = (float(side[0]) for side in (self.box.lower, self.box.upper))  # type: ignore[index]
        if not (isfinite(low) and isfinite(high)):
            middle = min(max(1.0 if self.log else 0.0, low), high)
        else:
            middle = sqrt(low) * sqrt(high) if self.log else low + 0.5 * (high - low)
        return self._nearest(middle)

    def _checked(self, start: float) -> float:
        if self._nearest(start) != start:
            raise ValueError(f"start must be in {self!r}, got {start}")
        return start

    def _nearest(self, value: float) -> float:
        return float(self.box.project(np.array([value]))[0])

    def __repr__(self) -> str:
        low, high = (float(side[0]) for side in (self.box.lower, self.box.upper))  # type: ignore[index]
        return f"{type(self).__name__}({low:g}, {high:g}{', log=True' if self.log else ''})"


@final
class Real(Declared):
    """A real variable, as a leaf of x0 or of a nest of domains.

    Parameters
    ----------
    lower, upper : float
        The bounds, possibly infinite.
    log : bool, default False
        Whether the variable is searched on a log scale; `lower` must then be positive.
    start : float, optional
        The starting value; by default the middle of the range, on a log scale if `log` is True.

    Examples
    --------
    >>> import poem_cma as pc
    >>> Real(1e-4, 1.0, log=True).start
    0.01
    >>> result = pc.minimize(lambda p: (p["rate"] - 0.3) ** 2, {"rate": Real(1e-4, 1.0, log=True)}, budget=300, seed=0)
    >>> round(result.x["rate"], 3)
    0.3
    """

    def __init__(
        self, lower: float = float("-inf"), upper: float = float("inf"), *, log: bool = False,
        start: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__(lower, upper, log=log, start=start)


@final
class Integer(Declared):
    """An integer variable, as a leaf of x0 or of a nest of domains; the function receives a Python int.

    Parameters
    ----------
    lower, upper : int
        The bounds, both included, possibly infinite.
    log : bool, default False
        Whether the variable is searched on a log scale; `lower` must then be positive.
    start : int, optional
        The starting value; by default the middle of the range, on a log scale if `log` is True.

    Examples
    --------
    >>> import poem_cma as pc
    >>> result = pc.minimize(lambda p: abs(p["servers"] - 7), {"servers": Integer(1, 20)}, budget=200, seed=0)
    >>> result.x
    {'servers': 7}
    """

    integer = True

    def __init__(
        self, lower: float = float("-inf"), upper: float = float("inf"), *, log: bool = False,
        start: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__(lower, upper, log=log, start=start)
