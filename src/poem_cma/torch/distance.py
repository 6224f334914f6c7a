"""POEM's scale: the distance from the first weights, of which a copy is kept."""

from __future__ import annotations

from math import sqrt

from poem_cma.torch.layout import Layout, norm

__all__ = ["Distance"]


class Distance:
    """x_0, and the sum of the weights of the averaged iterates."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.x0 = [b.x.clone() for b in layout.blocks]
        self.weights = 0.0
        self.bytes = sum(t.nbytes for t in self.x0)

    def now(self) -> float:
        """|x - x_0|."""
        return sqrt(sum(norm(b.x - x0) ** 2 for b, x0 in zip(self.layout.blocks, self.x0, strict=True)))

    def share(self, weight: float) -> float:
        """Of an iterate that weighs so much, in the average with it."""
        self.weights += weight
        return weight / self.weights
