"""The random numbers of a run, read from their addresses as documented: (seed, stream, number)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from poem_cma.run.randomness import Stream, Streams


def normals(seed: int, rows: int, width: int, d: int, start: int = 0) -> Iterator[np.ndarray]:
    """The standard normal numbers (rows, width) behind the directions of probe start, start + 1, ..."""
    block = max(1, 2**13 // (rows * d))
    number = start
    while True:
        rng = Streams(seed).block(Stream.DIRECTIONS, number // block)
        Z = rng.standard_normal((block, rows, width))
        for row in range(number % block, block):
            yield Z[row]
            number += 1


def samples(seed: int, sample: Callable[[np.random.Generator], Any], start: int = 0) -> Iterator[Any]:
    """xi number start, start + 1, ..."""
    number = start
    while True:
        yield sample(Streams(seed).at(Stream.SAMPLES, number))
        number += 1
