"""The user's function: sampling xi, one point or many at a time, counting calls and failures."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from itertools import groupby
from math import inf, isfinite, nan
from typing import Any, Literal

import numpy as np

from poem_cma._types import Array
from poem_cma.run.compiled import as_callable
from poem_cma.run.failure import FIRST, Failure, reraise
from poem_cma.run.failures import brief, described, shortened, tried
from poem_cma.run.randomness import Stream, Streams

__all__ = ["EvaluationError", "Oracle", "in_rows", "matrix", "one_for_each"]

LARGEST = float(np.finfo(float).max)


class EvaluationError(RuntimeError):
    """An evaluation failed in a run with ``on_failure="raise"``.

    Attributes
    ----------
    x, xi
        The point and the sample at which it failed.
    result : Result or None
        What the run had come to.
    """

    def __init__(self, message: str, x: Array, xi: Any = None) -> None:
        super().__init__(message)
        self.x = x
        self.xi = xi
        self.result: Any = None


class Oracle:
    """F(x; xi) with xi drawn by number.

    Parameters
    ----------
    fun : callable
        ``fun(x)``, or ``fun(x, xi)`` where `sample` is given.
    sample : callable, optional
        ``sample(rng)`` draws a xi.
    vectorized : bool or "rows"
        True: ``fun(X[, xi])`` takes points (m, d) and one xi. "rows": one xi for each row.
    on_failure : "drop" or "raise"
        Whether a call that raises, or does not return a finite number, gives NaN or an `EvaluationError`. If the first
        calls all raise, the exception itself is raised.
    patient : bool
        Whether first calls that raise are left to somebody else.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        sample: Callable[[np.random.Generator], Any] | None,
        streams: Streams,
        vectorized: bool | Literal["rows"] = False,
        on_failure: Literal["drop", "raise"] = "drop",
        patient: bool = False,
    ) -> None:
        if vectorized not in (True, False, "rows"):
            raise ValueError(f'vectorized must be True, False or "rows", not {vectorized!r}')
        if on_failure not in ("drop", "raise"):
            raise ValueError(f'on_failure must be "drop" or "raise", not {on_failure!r}')
        fun = as_callable(fun)
        _check_signature(fun, sample)
        self._fun = fun
        self._sample = sample
        self._streams = streams
        self._raise = on_failure == "raise"
        #: The values at points, each on the xi that its number names; NaN where a call failed.
        self.evaluate = {False: self._one_by_one, True: self._by_sample, "rows": self._by_row}[vectorized]
        self.by_row = vectorized == "rows"
        self.nfev = 0
        self.first_failure: str | None = None
        self._patient = patient
        self._answered = False  # whether a call has returned a number
        self._raises = 0  # calls that have raised before

    def __call__(self, points: Iterable[Array], samples: list[int], stream: Stream = Stream.SAMPLES) -> list[float]:
        """The same as `evaluate`."""
        return self.evaluate(points, samples, stream)

    def _one_by_one(self, points: Iterable[Array], samples: list[int], stream: Stream = Stream.SAMPLES) -> list[float]:
        self.nfev += len(samples)
        fun, sample = self._fun, self._sample
        values: list[float] = []
        xi: Any = None
        drawn: int | None = None
        for x in points:
            if sample is not None and (number := samples[len(values)]) != drawn:
                drawn = number
                xi = sample(self._streams.at(stream, number))
            try:
                value = fun(x) if sample is None else fun(x, xi)
            except Exception as error:
                value = self._raised(x, () if sample is None else (xi,), error)
            if not (isinstance(value, float) and isfinite(value)):
                value = self._number(value, x, () if sample is None else (xi,))
            if value == value:  # no NaN
                self._answered = True
            values.append(float.__float__(value))  # of a kind of float as well, whatever its own says
            del x  # before the next is made: it may be large
        return values

    def _by_sample(self, rows: Iterable[Array], samples: list[int], stream: Stream = Stream.SAMPLES) -> list[float]:
        self.nfev += len(samples)
        points = matrix(rows)
        if self._sample is None:
            return self._many(points, ())
        values: list[float] = []
        start = 0
        for number, same in groupby(samples):
            stop = start + len(list(same))
            xi = self._sample(self._streams.at(stream, number))
            values += self._many(points[start:stop], (xi,))
            start = stop
        return values

    def _by_row(self, rows: Iterable[Array], samples: list[int], stream: Stream = Stream.SAMPLES) -> list[float]:
        self.nfev += len(samples)
        points = matrix(rows)
        if self._sample is None:
            return self._many(points, ())
        return self._many(points, (in_rows(self.draw(samples, stream)),))

    @property
    def samples(self) -> bool:
        """Whether there is a xi to draw."""
        return self._sample is not None

    def xi(self, number: int) -> Any:
        """xi by its number, where there is one to draw."""
        return self._sample(self._streams.at(Stream.SAMPLES, number))  # type: ignore[misc]

    def draw(self, samples: list[int], stream: Stream = Stream.SAMPLES) -> list[Any]:
        """The xi's that the numbers name; nothing where there is nothing to draw."""
        if self._sample is None:
            return []
        if len(set(samples)) == 1:  # as a rule: the points of a probe share their xi
            return [self._sample(self._streams.at(stream, samples[0]))] * len(samples)
        drawn = {n: self._sample(self._streams.at(stream, n)) for n in dict.fromkeys(samples)}
        return [drawn[n] for n in samples]

    def _many(self, points: Array, xi: tuple[Any, ...]) -> list[float]:
        try:
            out = self._fun(points, *xi)
        except Exception as error:
            return [self._raised(points, xi, error)] * len(points)
        values = one_for_each(points, out)
        self._answered = True
        told: list[float] = values.tolist()
        if not isfinite(sum(told)):
            for j in np.flatnonzero(~np.isfinite(values)):
                self._failed(points[j], xi, f"fun returned {values[j]}")
        return told

    def _number(self, value: Any, x: Array, xi: tuple[Any, ...]) -> float:
        """The value as a float; NaN counts as a failure unless the failure is noted already."""
        if value is _FAILED:
            return nan
        number, error = tried(_as_float, value)
        if number is None:
            what = shortened(f"fun must return a number, but returned {brief(value)} ({described(error)})")  # type: ignore[arg-type]
            self._failed(x, xi, what, TypeError(what))
            return nan
        if not isfinite(number):
            self._failed(x, xi, f"fun returned {number}")
            return nan
        return number

    def _raised(self, x: Array, xi: tuple[Any, ...], error: Exception) -> float:
        """Note that fun raised; a mark that stands for NaN, unless failures are to be raised."""
        self._failed(x, xi, shortened(f"fun raised {described(error)}"), error)
        return _FAILED

    def _failed(self, x: Array, xi: tuple[Any, ...], what: str, error: Exception | None = None) -> None:
        """Note a failure, or raise it."""
        if self.first_failure is None:
            self.first_failure = Failure(what, error) if self._patient and not self._answered else what
        if self._raise:
            raise EvaluationError(
                f"{what} (in call {self.nfev}; the point is in .x, the sample in .xi)", np.array(x), *xi
            ) from error
        self._raises += error is not None
        if error is not None and self._raises >= FIRST and not (self._answered or self._patient):
            reraise(Failure(what, error))


def _as_float(value: Any) -> float:
    """The number that a value is."""
    plain = value.item() if isinstance(value, np.ndarray | np.generic) else value
    if np.ma.is_masked(value):  # what is masked has a number all the same
        raise ValueError("it is masked")
    if isinstance(plain, str | bytes):
        raise TypeError("text is no number")
    return float(plain)


#: An object of its own, so that a failure that was noted can be told from a NaN that fun returned.
_FAILED = float("nan")


def in_rows(xi: list[Any]) -> Any:
    """Samples for the rows of a matrix: an array where each is a number, a list where not."""
    kinds = {type(v): v for v in xi}.values()  # one of each
    plain = all(np.isscalar(v) and not isinstance(v, str | bytes) for v in kinds)
    return np.array(xi) if plain else xi


def one_for_each(points: Array, out: Any) -> Array:
    """What a function of rows returned, as an array of one number for each."""
    if np.asarray(out).dtype.kind in "SU":
        raise TypeError(f"vectorized fun must return numbers, but returned text: {brief(out)}")
    try:
        values = np.array(out, dtype=float)
        masked: Array = np.ma.getmaskarray(out)  # type: ignore[no-untyped-call,unused-ignore]
        values[masked] = nan  # what is masked has a number all the same
    except OverflowError:  # an integer that no float can hold
        values = np.array([inf if isinstance(v, int) and abs(v) > LARGEST else v for v in out], dtype=float)
    m = len(points)
    if values.shape != (m,):
        raise ValueError(f"vectorized fun was given {m} points and must return shape ({m},), not {values.shape}")
    return values


def matrix(points: Iterable[Array]) -> Array:
    """Points that may come one by one as the rows of a matrix."""
    return points if isinstance(points, np.ndarray) else np.array(list(points))


def _check_signature(fun: Any, sample: Any) -> None:
    if not callable(fun):
        raise TypeError(f"fun must be callable, not {fun!r}")
    if sample is not None and not callable(sample):
        raise TypeError(f"sample must be callable, sample(rng) -> xi, not {sample!r}")
    try:
        signature = inspect.signature(fun)
    except (TypeError, ValueError):
        return  # compiled functions may not tell
    arguments, call = ((0,), "fun(x)") if sample is None else ((0, 1), "fun(x, xi)")
    try:
        signature.bind(*arguments)
    except TypeError:
        name = getattr(fun, "__name__", "fun")
        why = "no sample= is given" if sample is None else "sample= is given"
        fix = (
            "pass sample=, or give the other arguments defaults"
            if sample is None
            else "drop sample=, or let fun take xi"
        )
        raise TypeError(f"{why}, so the objective is called as {call}, but it is {name}{signature}: {fix}") from None
