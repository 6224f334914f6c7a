"""Performance profiles (Dolan and Moré 2002) and data profiles (Moré and Wild 2009).

A problem counts as solved to the accuracy tau when the median gap, (f - f*) / (f(x0) - f*), has come to tau for good.
f* is known here, so that no player's luck sets the standard.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["area", "data_profile", "performance_profile", "steps"]


def performance_profile(calls: Any, factors: Any) -> Any:
    """The share of problems that each player solves within a factor of the least calls anybody needs.

    Parameters
    ----------
    calls : array (players, problems)
        Calls to the accuracy; infinity where it is not reached.
    factors : array (k,)

    Returns
    -------
    array (players, k)

    Examples
    --------
    >>> calls = np.array([[10.0, 60.0], [20.0, 30.0]])
    >>> performance_profile(calls, [1.0, 2.0]).tolist()
    [[0.5, 1.0], [0.5, 1.0]]
    """
    calls = np.asarray(calls, dtype=float)
    best = calls.min(axis=0)
    with np.errstate(invalid="ignore"):  # where nobody solves it, infinity over infinity, which is not within anything
        relative = calls / best
    return _share(relative, factors)


def data_profile(calls: Any, dimensions: Any, gradients: Any) -> Any:
    """The share of problems that each player solves within the calls of so many simplex gradients, d + 1 each.

    Examples
    --------
    >>> data_profile(np.array([[22.0, np.inf]]), [10, 10], [1.0, 2.0, 3.0]).tolist()
    [[0.0, 0.5, 0.5]]
    """
    return _share(np.asarray(calls, dtype=float) / (np.asarray(dimensions) + 1.0), gradients)


def _share(values: Any, limits: Any) -> Any:
    rounding = 1.0 + 1e-12
    return (values[:, :, None] <= np.asarray(limits, dtype=float) * rounding).mean(axis=1)


def area(profile: Any, limits: Any) -> Any:
    """The area under each profile over the logarithm of the limits, as a share: a single number to order players by.

    Examples
    --------
    >>> area(np.array([[0.0, 1.0, 1.0]]), [1.0, 10.0, 100.0]).tolist()
    [0.75]
    """
    x = np.log(np.asarray(limits, dtype=float))
    heights = 0.5 * (profile[:, 1:] + profile[:, :-1])
    return heights @ np.diff(x) / (x[-1] - x[0])


def steps(limits: Any, shares: Any) -> tuple[Any, Any]:
    """A profile as the staircase it is."""
    x, y = np.repeat(np.asarray(limits, dtype=float), 2)[1:], np.repeat(np.asarray(shares, dtype=float), 2)[:-1]
    return x, y
