"""Rough functions: counts, rounded values, errors of classifiers, ripples, walls, outliers, and quadratics with noise.

>>> from poem_cma.problems import rough
>>> rough.BLACK_BOXES["wall"]()
BlackBox('wall', d=8, shared=True)
>>> minimiser, least = rough.LEAST["wall"]()
>>> rough.BLACK_BOXES["wall"]().score(minimiser, least)
0.0
"""

from __future__ import annotations

from collections.abc import Callable

from poem_cma._types import Array
from poem_cma.problems.black_box import BlackBox
from poem_cma.problems.rough import bounds, disturbances, quadratics, queue, ripples, rounding, zero_one

__all__ = ["BLACK_BOXES", "CORE", "LEAST"]

_FEW: dict[str, Callable[[], BlackBox]] = {
    **queue.BLACK_BOXES,
    **zero_one.BLACK_BOXES,
    **rounding.BLACK_BOXES,
    **ripples.BLACK_BOXES,
    **bounds.BLACK_BOXES,
    **disturbances.BLACK_BOXES,
}

#: The builder of every problem, by name.
BLACK_BOXES: dict[str, Callable[[], BlackBox]] = {**_FEW, **quadratics.BLACK_BOXES}

#: The names that a quick comparison uses: every kind, and six of the quadratics.
CORE: tuple[str, ...] = (*_FEW, *quadratics.CORE)

#: A minimiser in the domain and the least value of the judge, for the problems where both are known.
LEAST: dict[str, Callable[[], tuple[Array, float]]] = {
    **rounding.LEAST,
    **ripples.LEAST,
    **bounds.LEAST,
    **disturbances.LEAST,
    **quadratics.LEAST,
}
