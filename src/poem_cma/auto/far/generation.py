"""One generation: mirrored pairs on one xi, the next mean, step size and covariance.

    y_j = C^(1/2) z_j,  y_{-j} = -y_j                    orthogonal directions, normal lengths
    x  <- x + eta sigma (sum_j w_j y_j - mean_j y_j)     the better half, by rank; where noise rules, all of them
                                                         with w_j = -psi((F_j - median F) / s) / sqrt(lambda mu_eff)
    sigma <- sigma exp(c_sigma / d_sigma (|p| / chi - 1))
    C  <- (1 - c_1 - c_mu) C + c_1 p_c p_c' + c_mu sum_j w_j y_j y_j'

Where noise rules, each point is evaluated on two xi's, F_j is the mean, and eta is less than one (see `noise`).

A point outside the domain is moved to the nearest one inside, and what it tells is used where it was evaluated. The
mean of the y_j is zero, but for points that were moved: at a bound all of them are on one side, and without this term
the mean would leave the bound also where F is lowest there.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from poem_cma._types import Array, IntArray
from poem_cma.auto.far import noise as of_noise
from poem_cma.auto.far.curvature import bend
from poem_cma.auto.far.margin import widened
from poem_cma.auto.far.rates import Rates, population, rates, slower
from poem_cma.auto.far.state import Far, Shape, decomposed
from poem_cma.auto.request import HUGE, Draws, Request, at, longest
from poem_cma.run.algorithm import Run

__all__ = ["advance", "requests", "slope"]

#: Where noise rules, a pair that a bound cuts is made symmetric but for this part of what was not cut: on a bound a
#: symmetric pair has no length.
ONE_SIDED = 1 / 8
#: Growth of the step size where all values are equal for longer than samples explain.
FLAT = 1.1
#: Pairs grow to the width of a bowl, where h = 2.56 rho / sqrt(d). At distance rho a tenth of the points is then
#: lower. This limit falls like n^(-1/4), with n the noisy generations: so fast may the distance of differences fall
#: while noise averages out (Kiefer and Wolfowitz 1952).
BOWL = 2.56
#: The standard deviation of a normal variable, in units of its mean absolute value.
NORMAL = (3.141592653589793 / 2.0) ** 0.5
#: Huber's threshold, in standard deviations: 95% as efficient as no threshold if noise is normal.
HUBER = 1.345


def requests(far: Far, run: Run, draws: Draws, address: int) -> list[Request]:
    """The centre and the pairs on one xi, and the pairs that are repeated on another one."""
    X = _points(far, run, draws, address)
    points = np.concatenate([far.x[None], X]) if far.shape.full else X
    again = of_noise.repeated(far.noise, len(X) // 2)
    return [at(points), at(X[_pairs(again, len(X))], 1)] if again else [at(points)]


def advance(far: Far, run: Run, draws: Draws, address: int, values: list[Array]) -> Far:
    """The state after a generation."""
    X, first = _points(far, run, draws, address), values[0][far.shape.full :]
    noisy, eta = of_noise.rules(far.noise), far.noise.rate
    if len(values) > 1:
        noise = of_noise.update(far.noise, first, _pairs(len(values[1]) // 2, len(X)), values[1])
    else:
        noise = of_noise.passed(far.noise)
    F = of_noise.averaged(first, values[1]) if noisy and len(values) > 1 else first
    if not np.isfinite(F).any() or np.nanmax(F) == np.nanmin(F):
        return _unseen(far._replace(noise=noise), run, values[0])
    far = far._replace(noise=of_noise.seen(noise, F))

    r = rates(len(far.x), len(F), far.shape.full)
    Y = (X - far.x) / far.sigma  # where it was evaluated
    order = np.argsort(np.where(np.isfinite(F), F, np.inf), kind="stable")
    step = _by_value(far, r, F, Y) if noisy else _by_rank(r, F, Y, order)
    rate = far.noise.rate * far.sigma
    x = run.domain.project(far.x + rate * step)
    step = (x - far.x) / rate  # without what leads out of the domain
    path, long_path, change = _paths(far, r, step, noisy)
    sigma = far.sigma * change * eta / far.noise.rate
    # The rates of the covariance fall with the share of noise: ranks of pure noise would turn it at random.
    C = _covariance(far.shape, slower(r, 1.0 - of_noise.share(far.noise)), long_path, Y[order])
    if not (np.isfinite(C).all() and np.isfinite(x).all()):  # F falls for ever, and here floating point ends
        return far
    shape = decomposed(widened(C, sigma, run.domain.steps(x), len(F)))
    sigma = _bounded(_within_bowl(far, sigma, shape, run.x0), shape, run)
    after = far._replace(x=x, sigma=sigma, path=path, long_path=long_path, t=far.t + 1, shape=shape, flat=0)
    after = _bent(far, after, Y, values[0]) if far.shape.full else after
    return after if np.isfinite(after.shape.axes).all() and np.isfinite(after.shape.C).all() else far


def _unseen(far: Far, run: Run, F: Array) -> Far:
    """The state after a generation in which all points have failed, or have the same value."""
    if far.shape.full and np.isfinite(F[0]) and not np.isfinite(F[1:]).any():
        return far._replace(sigma=far.sigma / FLAT)  # all but the centre have failed: shorter pairs may do better
    if not np.isfinite(F).any():  # as a rule the sample has failed as a whole, which says nothing of the step size
        return far
    longer = FLAT if far.flat >= far.patience else 1.0
    return far._replace(sigma=_bounded(longer * far.sigma, far.shape, run), flat=far.flat + 1)


def _paths(far: Far, r: Rates, step: Array, noisy: bool) -> tuple[Array, Array, float]:
    """The two paths after a step, and the factor of the step size, which comes from the agreement of successive steps.

    A step that is longer than chance makes it counts as one that is not: a single sample may be far steeper than f, and
    all points of a generation share it. A step by values may also be shorter, where the sample is flat, which says
    nothing of the step size either. The covariance, too, would grow with long steps by values, and steps with it.
    """
    d = len(step)
    w = np.sqrt(r.mu_eff) * far.shape.whiten(step)
    usual = sqrt(d) / max(float(np.sqrt(w @ w)), 1e-300)
    usual = usual if noisy else min(1.0, usual)
    path = (1 - r.c_sigma) * far.path + np.sqrt(r.c_sigma * (2 - r.c_sigma)) * w * usual
    size = float(np.sqrt(path @ path))
    change = float(np.exp(min(1.0, r.c_sigma / r.d_sigma * (size / r.chi - 1.0))))
    early = size / np.sqrt(1 - (1 - r.c_sigma) ** (2 * (far.t + 1))) < (1.4 + 2 / (d + 1)) * r.chi
    told = (usual if noisy else 1.0) * step
    long_path = (1 - r.c_c) * far.long_path + early * np.sqrt(r.c_c * (2 - r.c_c) * r.mu_eff) * told
    return path, long_path, change


def _covariance(shape: Shape, r: Rates, long_path: Array, Y: Array) -> Array:
    """The next covariance, or its diagonal, from the points in the order of their values."""
    whitened = shape.whiten(Y)
    lengths = np.maximum((whitened * whitened).sum(axis=1), 1e-30)
    weights = r.positive + r.negative * np.where(r.negative < 0, np.minimum(Y.shape[1] / lengths, 10.0), 1.0)
    keep = 1 - r.c_1 - r.c_mu * float(r.positive.sum() + r.negative.sum())
    C: Array
    if shape.full:
        C = keep * shape.C + r.c_1 * np.outer(long_path, long_path) + r.c_mu * (Y.T * weights) @ Y
    else:
        C = keep * shape.C + r.c_1 * long_path**2 + r.c_mu * (weights @ Y**2)
    return C


def _by_rank(r: Rates, F: Array, Y: Array, order: IntArray) -> Array:
    """The step of the mean by ranks: the weighted mean of the better half. A point that has failed does not attract."""
    succeeded = np.where(np.isfinite(F)[:, None], Y, 0.0)
    step: Array = r.positive @ succeeded[order[: len(r.positive)]] - Y.mean(axis=0)  # zero, but for pairs that are cut
    return step


def _by_value(far: Far, r: Rates, F: Array, Y: Array) -> Array:
    """The step of the mean where noise rules: each point counts by how far its value is from the median.

    Sums of values tell about f, the mean of F over samples, and ranks do not: they tell about the median, and a sample
    on which F is steep must count for more than one on which it is nearly flat. Outliers count as Huber's threshold. If
    values are pure noise, steps are as long as those by ranks.
    """
    V = (F - np.median(F[np.isfinite(F)])) / (NORMAL * far.noise.size)
    V = np.where(np.isfinite(V), V, 0.0)
    step: Array = -np.clip(V, -HUBER, HUBER) @ (Y - Y.mean(axis=0)) / np.sqrt(len(V) * r.mu_eff)
    return step


def _bent(far: Far, after: Far, Y: Array, F: Array) -> Far:
    """The covariance with what the curvatures along the pairs say, but for pairs that the domain has moved."""
    half = len(Y) // 2
    up, down = Y[:half], Y[half:]
    k = F[1 : half + 1] + F[half + 1 :] - 2.0 * F[0]
    whole = np.isclose(up, -down, rtol=1e-6, atol=1e-9).all(axis=1) & up.any(axis=1) & np.isfinite(k)
    if not whole.any():
        return after
    lengths = (far.shape.whiten(up[whole]) ** 2).sum(axis=1)
    k = k[whole] / (far.sigma**2 * np.maximum(lengths, 1e-30))
    shape, sums = bend(after.shape, after.curvature, up[whole], k, after.noise)
    return after._replace(shape=shape, curvature=sums)


def slope(far: Far, values: list[Array]) -> float:
    """A typical slope along the pairs of a generation, for the history."""
    F = values[0][far.shape.full :][: population(len(far.x))]
    D = F[: len(F) // 2] - F[len(F) // 2 :]
    D = D[np.isfinite(D)]
    return float(np.abs(D).max(initial=0.0) / (2.0 * far.spread * np.sqrt(len(far.x))))


def _bounded(sigma: float, shape: Shape, run: Run) -> float:
    """The step size, or one with which samples are half a diameter away: no scale is larger."""
    axes = shape.axes
    most = longest(run) / float(np.sqrt(axes @ axes)) if np.isfinite(run.domain.diameter) else np.inf
    return float(min(sigma, most, HUGE / axes.max()))


def _within_bowl(far: Far, sigma: float, shape: Shape, x0: Array) -> float:
    """The step size, or, where noise rules, the largest one at which pairs can see the slope of a bowl.

    Its width is that at which the scan has seen it, or the distance from x0, if it is more.
    """
    if not of_noise.rules(far.noise):
        return sigma
    d, way = len(far.x), far.x - x0
    width = max(far.first, far.first * sqrt(d) / BOWL, sqrt(float(way @ way) / d))
    return min(sigma, max(far.sigma, width * sqrt(far.noise.rate) / float(np.sqrt(np.mean(shape.axes**2)))))


def _pairs(number: int, size: int) -> IntArray:
    """The places of the first pairs among so many points: one side of all pairs, then the other."""
    first = np.arange(number)
    return np.concatenate([first, size // 2 + first])


def _points(far: Far, run: Run, draws: Draws, address: int) -> Array:
    """The points of a generation; they are made once."""

    def made() -> Array:
        return _inside(far, run, far.sigma * far.shape.stretch(_samples(far, draws, address)))

    points: Array = draws.once(far, address, made)
    return points


def _samples(far: Far, draws: Draws, address: int) -> Array:
    """Normal vectors, made orthogonal with their lengths kept, and their mirror images."""
    d = len(far.x)
    Z = draws.rng(address).standard_normal((population(d) // 2, d))
    for first in range(0, len(Z), d):
        block = Z[first : first + d]
        lengths = np.sqrt((block * block).sum(axis=1))
        Q, R = np.linalg.qr(block.T)
        Z[first : first + d] = (Q * np.sign(np.diag(R))).T * lengths[:, None]
    return np.concatenate([Z, -Z])


def _inside(far: Far, run: Run, ways: Array) -> Array:
    """The points at these ways from the mean, moved into the domain.

    Where noise rules, pairs are nearly symmetric about the mean. The steps of many generations then average, and a
    slope that is measured beside the mean would be an error that no average removes.
    """
    x, project = far.x, run.domain.project
    points = np.array([project(x + way) for way in ways])
    if of_noise.rules(far.noise) and not np.array_equal(points, x + ways):
        up, down = points[: len(ways) // 2] - x, x - points[len(ways) // 2 :]
        shorter = np.abs(up) < np.abs(down)
        half = ONE_SIDED * np.where(shorter, down, up) + (1.0 - ONE_SIDED) * np.where(shorter, up, down)
        points = np.array([project(x + way) for way in (*half, *-half)])
    return points
