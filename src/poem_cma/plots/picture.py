"""A figure of matplotlib that shows itself at the end of a notebook's cell, without pyplot or a magic command."""

from __future__ import annotations

import io

from matplotlib.figure import Figure

__all__ = ["Picture"]

#: Pixels per inch in a notebook.
RESOLUTION = 100


class Picture(Figure):
    """A figure that a notebook displays."""

    def _repr_png_(self) -> bytes:
        content = io.BytesIO()
        self.savefig(content, format="png", dpi=RESOLUTION)
        return content.getvalue()
