"""What travels: a task to a worker, a reply back, and once to each worker the objective."""

from __future__ import annotations

import pickle
import threading
import time
import traceback
import uuid
from collections.abc import Callable
from math import isfinite, nan
from typing import Any, Literal, NamedTuple

from poem_cma._types import Array
from poem_cma.run.failures import described, shortened
from poem_cma.run.oracle import Oracle
from poem_cma.run.randomness import Stream, Streams

__all__ = [
    "Calls", "Objective", "Reply", "Task", "answer", "calls_of", "evaluate", "from_payload", "keep", "perform",
    "to_payload",
]  # fmt: skip


class Task(NamedTuple):
    """Points to evaluate in one call of the user's function (or of `fun` for each of them)."""

    probe: int
    point: int  # the place of the first one in the probe
    points: Array
    numbers: list[int]  # of the samples
    stream: int = Stream.SAMPLES


#: A parcel of tasks as a worker needs it: points, numbers and stream of each.
Calls = list[tuple[Array, list[int], int]]


def calls_of(tasks: list[Task]) -> Calls:
    """What of some tasks travels."""
    return [(task.points, task.numbers, int(task.stream)) for task in tasks]


class Reply(NamedTuple):
    """What a worker says."""

    values: list[float]  # NaN where a call failed
    failure: str | None = None  # why the first one did
    again: bool = False  # whether it may be worth another attempt
    seconds: float = 0.0
    fatal: str | None = None  # what no other attempt can mend


class Objective:
    """The user's function as workers need it; xi is drawn where it is used, from its number."""

    def __init__(
        self,
        fun: Callable[..., Any],
        sample: Callable[..., Any] | None,
        seed: int,
        vectorized: bool | Literal["rows"] = False,
        on_failure: Literal["drop", "raise"] = "drop",
    ) -> None:
        self.fun, self.sample, self.seed, self.vectorized, self.on_failure = fun, sample, seed, vectorized, on_failure
        self.token = uuid.uuid4().hex
        self.oracle(on_failure)  # its checks, before anything is started

    def oracle(self, on_failure: Literal["drop", "raise"] = "drop") -> Oracle:
        """One for each thread: its generator moves."""
        return Oracle(self.fun, self.sample, Streams(self.seed), self.vectorized, on_failure, patient=True)

    def draw(self, number: int, stream: Stream = Stream.SAMPLES) -> Any:
        """xi by its number."""
        assert self.sample is not None
        return self.sample(Streams(self.seed).at(stream, number))


def answer(oracle: Oracle, points: Array, numbers: list[int], stream: int) -> Reply:
    """Evaluate on a worker: what is wrong with `sample`, or with the shape of what `fun` returns, is told as well."""
    try:
        return evaluate(oracle, points, numbers, stream)
    except Exception as error:
        where = "".join(traceback.format_tb(error.__traceback__)[-2:]).rstrip()
        return Reply([nan] * len(points), fatal=f"{described(error)}\n{shortened(where)}")


def evaluate(oracle: Oracle, points: Array, numbers: list[int], stream: int) -> Reply:
    """Call the user's function. A call that raises or returns no number may be tried again; a NaN is an answer."""
    started = time.perf_counter()
    oracle.first_failure = None
    values = oracle(points, numbers, Stream(stream))
    failure = oracle.first_failure
    again = failure is not None and not failure.startswith("fun returned")
    values = [v if isfinite(v) else nan for v in values]
    return Reply(values, failure, again, time.perf_counter() - started)


# The objective on a worker of somebody else's: sent with the first task that finds it missing, then kept.

_objectives: dict[str, Objective] = {}
_oracles = threading.local()
_unpacking = threading.Lock()
_MOST = 8  # runs that a process remembers


def keep(objective: Objective) -> None:
    """Make an objective known in this process."""
    while len(_objectives) >= _MOST:
        _objectives.pop(next(iter(_objectives)), None)
    _objectives[objective.token] = objective


def perform(token: str, payload: bytes | None, calls: Calls) -> list[Reply] | None:
    """A parcel on a worker; None if the objective is not known there, and was not sent along."""
    oracles: dict[str, Oracle] = _oracles.__dict__.setdefault("by_token", {})
    if token not in oracles:
        with _unpacking:  # once, though all threads of a worker may be here
            if token not in _objectives:
                if payload is None:
                    return None
                try:
                    keep(from_payload(payload))
                except Exception as error:
                    return [Reply([nan] * len(points), fatal=_unloadable(error)) for points, *_ in calls]
            objective = _objectives[token]
        while len(oracles) >= _MOST:
            del oracles[next(iter(oracles))]
        oracles[token] = objective.oracle()
    return [answer(oracles[token], *call) for call in calls]


def to_payload(objective: Objective) -> bytes:
    """The objective for other processes: by name where it can be imported there, else by value (cloudpickle)."""
    try:
        plain, why = pickle.dumps(objective), ""
    except Exception as error:
        plain, why = b"", described(error)
    if plain and b"__main__" not in plain:
        return plain
    try:
        import cloudpickle
    except ImportError:
        if plain:
            return plain  # works where the main module can be imported
        raise TypeError(
            f"the objective cannot be sent to other processes ({why}): define fun and sample at the top level of a "
            f'module, or pip install "poem-cma[workers]"'
        ) from None
    try:
        return bytes(cloudpickle.dumps(objective))
    except Exception as error:
        raise TypeError(f"the objective cannot be sent to other processes ({described(error)})") from None


def from_payload(payload: bytes) -> Objective:
    """The objective again; the payload comes from our own run, never from a file."""
    objective: Objective = pickle.loads(payload)
    return objective


def _unloadable(error: Exception) -> str:
    return (
        f"a worker cannot load the objective ({described(error)}): define fun and sample at the top "
        f'level of a module that workers can import, or pip install "poem-cma[workers]"'
    )
