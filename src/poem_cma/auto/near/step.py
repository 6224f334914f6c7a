"""A step of dual averaging at the scale R, which follows evidence.

    s <- s + g,   G <- G + |g|^2,   x <- Proj(x0 - R s / sqrt(G))

If the gradients keep pointing away from x0, that is, if the sum of <g, x - x0> is clearly negative, R is doubled; if it
is clearly positive, R is halved.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from poem_cma._types import Array
from poem_cma.auto.judge import SURE
from poem_cma.auto.near.state import NO_WALK, Evidence, Near
from poem_cma.auto.request import HUGE
from poem_cma.run.algorithm import Run

__all__ = ["TERMS", "moved_to", "step", "usable"]

#: R changes by this factor, after at least this many terms.
FACTOR, TERMS = 2.0, 8
#: Gradients above this multiple of the root mean square before are cut: walls, outliers.
CLIP = 10.0


def usable(g: Array) -> Array:
    """The gradient, or zero if one of its slopes is absurd or no number."""
    return g if float(np.abs(g).max()) < HUGE else np.zeros_like(g)


def step(near: Near, g: Array, run: Run, fresh: bool) -> Near:
    """The state after a gradient, of a fresh sample or of an old one."""
    g = usable(g)
    length = float(np.sqrt(g @ g))
    most = CLIP * sqrt(near.G / near.t) if near.t >= TERMS and near.G > 0.0 else np.inf
    if length > most:
        g, length = g * (most / length), most
    radial = float(g @ (near.x - near.x0))
    total, squares, terms = near.evidence
    evidence = Evidence(total + radial, squares + radial * radial, terms + (radial != 0.0))
    s, G, R = near.s + g, near.G + length * length, near.R
    if evidence.terms >= TERMS and evidence.total * evidence.total > SURE**2 * evidence.squares:
        if evidence.total > 0.0:
            R = R / FACTOR
        elif fresh:  # old samples point away from x0 for ever: they are fitted better and better
            R = min(R * FACTOR, 0.5 * run.domain.diameter, HUGE)
        evidence = Evidence(0.0, 0.0, 0)
    x = run.domain.project(near.x0 - R / sqrt(G) * s) if G > 0.0 else near.x
    return near._replace(x=x, s=s, G=G, R=R, t=near.t + 1, evidence=evidence)


def moved_to(near: Near, x: Array) -> Near:
    """The search at another point, as if its gradients had led there."""
    return near._replace(x=x, s=(near.x0 - x) * (sqrt(near.G) / near.R), walk=NO_WALK)
