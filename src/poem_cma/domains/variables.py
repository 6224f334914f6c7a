"""The change of variables between the user's points and those that are searched: integers, logarithms, units."""

from __future__ import annotations

from typing import final

import numpy as np

from poem_cma._types import Array
from poem_cma.domains.convex import ConvexSet

__all__ = ["Variables"]


@final
class Variables:
    """What the points that are searched stand for.

    A point z of the search stands for x = z * scale, for the exponentials of these along `log` variables, and for the
    nearest point of the user's domain, where integers are integers.

    Parameters
    ----------
    domain : ConvexSet
        The user's.
    scale : float or array or None
        The unit of each variable; of its logarithm along `log` variables.

    Examples
    --------
    >>> from poem_cma.domains.sets import Box
    >>> kinds = Variables(Box([1e-4, 1.0], [1.0, 20.0], log=[True, False], integer=[False, True]), None)
    >>> kinds.to_user(np.array([np.log(0.01), 6.7]))
    array([0.01, 7.  ])
    """

    def __init__(self, domain: ConvexSet, scale: float | Array | None) -> None:
        self._domain, self._scale = domain, scale
        self._logs, self._integers = bool(np.any(domain.log)), bool(np.any(domain.integer))

    @property
    def unchanged(self) -> bool:
        """Whether the search sees the user's points as they are."""
        return self._scale is None and not (self._logs or self._integers)

    def to_user(self, z: Array, held: bool = True) -> Array:
        """The user's point, in the domain; if it need not be held there, the search's own points may be outside."""
        x = z if self._scale is None else z * self._scale
        if self._logs:
            x = np.exp(x, out=x.copy(), where=self._domain.log)
        return self._domain.project(x) if held or self._integers or not self._domain.outside else x

    def to_search(self, x: Array) -> Array:
        """The point of the search for a point of the user."""
        if self._logs:
            x = np.log(x, out=x.copy(), where=self._domain.log)
        return x if self._scale is None else x / self._scale

    def rounded(self, z: Array) -> Array:
        """The point of the search that stands for the same point of the user as z, the same for all of these."""
        return self.to_search(self.to_user(z))

    def steps(self, z: Array) -> Array:
        """The distance to the next integer, half of that between both neighbours, along each variable; else zero."""
        x = self.to_user(z)
        ends = [self.to_search(np.where(self._domain.integer, x + side, x)) for side in (0.5, -0.5)]
        steps: Array = ends[0] - ends[1]
        return steps
