"""How much is run: the quick mode, the full mode, and what their numbers mean."""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["FULL", "QUICK", "Scale"]


@dataclass(frozen=True)
class Scale:
    """The size of the grids.

    Attributes
    ----------
    name : str
        "quick" or "full".
    seeds : int
        Seeds of Figure 2's main comparison.
    side_seeds : int
        Seeds of its variants: independent xi, other initial distances.
    iterations : int
        The horizon taken for the paper's, which does not state it; `beyond` times as many for the long runs.
    side_beyond : int
        The same for the variants, and for TPGE and RSNSO.
    dimensions : tuple of int
        d of Figure 1; `figure1_seeds` seeds each.
    spectrum_seeds : int
        Seeds of d* and kappa on the real sets.
    ambient, intrinsic : tuple of int
        d (at fixed structure) and the structure's dimension (at fixed d) of Table 1; `table_seeds` seeds each.
    most_calls : int
        Where a run of Table 1 gives up.
    """

    name: str
    seeds: int
    side_seeds: int
    iterations: int
    beyond: int
    side_beyond: int
    dimensions: tuple[int, ...]
    figure1_seeds: int
    spectrum_seeds: int
    ambient: tuple[int, ...]
    intrinsic: tuple[int, ...]
    table_seeds: int
    most_calls: int

    def with_seeds(self, seeds: int | None) -> Scale:
        """The same grid with so many seeds everywhere."""
        if seeds is None:
            return self
        return replace(
            self, seeds=seeds, side_seeds=seeds, figure1_seeds=seeds, spectrum_seeds=seeds, table_seeds=seeds
        )

    def with_iterations(self, iterations: int | None) -> Scale:
        """The same grid with another horizon."""
        return self if iterations is None else replace(self, iterations=iterations)


QUICK = Scale(
    name="quick",
    seeds=3,
    side_seeds=2,
    iterations=10_000,
    beyond=10,
    side_beyond=1,
    dimensions=(10, 20, 50, 100, 200, 500),
    figure1_seeds=3,
    spectrum_seeds=20,
    ambient=(16, 32, 64, 128),
    intrinsic=(2, 4, 8, 16, 32),
    table_seeds=5,
    most_calls=30_000,
)

FULL = replace(
    QUICK,
    name="full",
    seeds=10,
    side_seeds=5,
    side_beyond=10,
    figure1_seeds=20,
    spectrum_seeds=100,
    ambient=(16, 32, 64, 128, 256),
    intrinsic=(2, 4, 8, 16, 32, 64),
    table_seeds=20,
    most_calls=60_000,
)
