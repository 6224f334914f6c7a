"""Points that belong together, moved into a set together, so that the differences between them stay what they are."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import numpy as np

from poem_cma._types import Array
from poem_cma.domains.convex import ConvexSet
from poem_cma.run.arithmetic import distance, length

__all__ = ["moved_inside"]

#: Each sweep moves all points by what one of them lacks, point by point. One sweep suffices for a half-space and for a
#: box; sets with oblique edges take a few more.
SWEEPS = 20
#: The sweeps end when no point lacks more than this part of the distance between the points.
CLOSE = 1e-3
#: They also end when a sweep leaves more than this part of what was lacking: then the domain is too narrow.
STALLED = 0.9


def moved_inside(points: list[Array], domain: ConvexSet) -> Iterator[Array]:
    """The points, moved by one common vector to where all of them are in the domain.

    The move is about the shortest one: along a bound that a point has crossed, the points then begin at the bound.
    Where the domain is too narrow for them, each is moved to its nearest point, so none is ever outside.

    Examples
    --------
    >>> import numpy as np
    >>> from poem_cma.domains.sets import Box
    >>> [x.tolist() for x in moved_inside([np.array([0.25, 0.75]), np.array([0.5, 1.25])], Box(0.0, 1.0))]
    [[0.25, 0.5], [0.5, 1.0]]
    """
    close, left = CLOSE * distance(points[-1], points[0]), inf
    if max(distance(x, domain.nearest(x)) for x in points) <= close:
        return map(domain.nearest, points)
    move = np.zeros_like(points[0])
    for _ in range(SWEEPS):
        before, left = left, 0.0
        for x in points:
            y = x + move
            lack = np.subtract(domain.nearest(y), y, out=y)
            left = max(left, length(lack))
            move += lack
        if left <= close or left > STALLED * before:
            break
    return (domain.nearest(x + move) for x in points)
