"""Random numbers by address: every draw is a pure function of (seed, stream, number).

A counter-based generator (Philox) is placed at the address asked for, so nothing depends on what was drawn before:
a run can be resumed, probes can be answered in any order, and every method sees the same samples at the same seed.
For numbers that are drawn by the thousand it gives the state of a quicker generator (SFC64).
"""

from __future__ import annotations

import enum
import operator
import secrets
from typing import Any

import numpy as np
from numpy.random import SFC64, Generator, Philox, SeedSequence

__all__ = ["Stream", "Streams", "make_seed"]


class Stream(enum.IntEnum):
    """What the numbers are for; streams never overlap."""

    SAMPLES = 0  # the xi's of the run
    DIRECTIONS = 1  # the directions of the probes
    EVALUATION = 2  # the xi's on which the returned point is measured
    BASES = 3  # where full finite-difference gradients are taken


def make_seed(seed: int | None) -> int:
    """The seed as given, or a fresh one that the result will report."""
    if seed is None:
        return secrets.randbits(64)
    try:
        value = operator.index(seed)
    except TypeError:
        raise TypeError(f"seed must be a whole number or None, not {seed!r}") from None
    if value < 0:
        raise ValueError(f"seed must not be negative, but is {value}")
    return value


class Streams:
    """The generators of one seed.

    Examples
    --------
    >>> streams = Streams(seed=7)
    >>> a = streams.at(Stream.SAMPLES, 12).random()
    >>> _ = streams.at(Stream.SAMPLES, 3).random(1000)
    >>> a == streams.at(Stream.SAMPLES, 12).random()
    True
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        # Both generators are made when they are needed: a run whose function takes no xi draws none.
        self._generator: Generator | None = None
        self._quick: Generator | None = None

    def at(self, stream: Stream, number: int) -> Generator:
        """The generator at an address. It is one object that moves: use it before asking for the next."""
        generator = self._generator or self._begun()
        self._counter[2] = number  # words 0 and 1 count inside the draw: 2^130 numbers before two draws meet
        self._counter[3] = stream
        self._bits.state = self._state
        return generator

    def _begun(self) -> Generator:
        key = SeedSequence(self._seed).generate_state(2, np.uint64)
        self._bits = Philox(key=key)
        # The state of a fresh generator, in lists: they are taken over three times as quickly as arrays.
        self._counter = [0, 0, 0, 0]
        self._state: Any = self._bits.state | {
            "state": {"counter": self._counter, "key": key.tolist()},
            "buffer": [0, 0, 0, 0],
        }
        self._generator = Generator(self._bits)
        return self._generator

    def block(self, stream: Stream, number: int) -> Generator:
        """A generator for many numbers at an address, one and a half times as quick. It, too, is one that moves."""
        self.at(stream, number)
        words: Any = [*self._bits.random_raw(3).tolist(), 1]
        if self._quick is None:
            self._quick = Generator(SFC64(0))
        state = {"bit_generator": "SFC64", "state": {"state": words}, "has_uint32": 0, "uinteger": 0}
        self._quick.bit_generator.state = state
        return self._quick
