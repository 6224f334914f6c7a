"""Parts of the paper's methods: their directions, and the checks of their settings."""

from __future__ import annotations

from math import inf
from typing import Any

from poem_cma.paper.directions import Gaussian, Sphere

__all__ = ["count", "fixed_horizon", "gaussian", "number", "positive", "sphere"]


def sphere(d: int, domain: Any) -> Sphere:
    """Directions on the sphere, in the hull of the domain."""
    return Sphere(d, domain.hull_dimension(d), domain.tangent)


def gaussian(d: int, domain: Any) -> Gaussian:
    """Gaussian directions in the hull of the domain."""
    return Gaussian(d, domain.hull_dimension(d), domain.tangent)


def fixed_horizon(lipschitz: float, *, steps: int | None = None, **lengths: float | None) -> dict[str, Any]:
    """The settings of a method with a fixed step."""
    settings: dict[str, Any] = {"lipschitz": positive("lipschitz", lipschitz)}
    settings |= {name: positive(name, value) for name, value in lengths.items()}
    return settings if steps is None else settings | {"steps": count("steps", steps)}


def positive(name: str, value: float | None) -> float | None:
    """A positive number, or None."""
    if value is None:
        return None
    if not 0.0 < value < inf:
        raise ValueError(f"{name} must be positive and finite, but is {value!r}")
    return float(value)


def number(name: str, value: float, least: float, most: float) -> float:
    """A finite number of an interval."""
    if not least <= value <= most or value == inf:
        raise ValueError(f"{name} must be between {least:g} and {most:g}, but is {value!r}")
    return float(value)


def count(name: str, value: int) -> int:
    """A whole number from 1 up."""
    if value != int(value) or value < 1:
        raise ValueError(f"{name} must be a whole number from 1 up, but is {value!r}")
    return int(value)
