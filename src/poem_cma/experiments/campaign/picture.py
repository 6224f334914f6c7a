"""What a picture shows, before anything is drawn: panels of lines with bands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Line", "Panel", "Picture"]


@dataclass(frozen=True, eq=False)
class Line:
    """A line with its quartiles, or single points."""

    label: str
    x: Any
    y: Any
    colour: str
    low: Any = None
    high: Any = None
    dash: str = "solid"  # or "dashed", "dotted"
    points: bool = False


@dataclass(frozen=True, eq=False)
class Panel:
    """One pair of axes, both logarithmic unless y is a share, from 0 to 1."""

    title: str
    x_label: str
    y_label: str
    lines: Sequence[Line]
    marks: Sequence[tuple[float, str]] = ()  # vertical lines
    levels: Sequence[tuple[float, str]] = ()  # horizontal lines
    ticks: Sequence[int] = ()  # of x, where only these occur
    shares: bool = False


@dataclass(frozen=True, eq=False)
class Picture:
    """A file, or a section's charts."""

    name: str
    title: str
    caption: str
    panels: Sequence[Panel]
