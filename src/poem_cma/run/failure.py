"""Why an evaluation failed, and what happens if the first evaluations of a run all raise."""

from __future__ import annotations

import pickle
import traceback
from typing import Any, NoReturn

from poem_cma.run.failures import tried

__all__ = ["FIRST", "Failure", "reraise", "trace_of"]

#: If so many calls raise before one returns a number, the function is taken for broken.
FIRST = 3


class Failure(str):
    """The reason in words, with the exception if there was one.

    The exception travels between processes; where it cannot be pickled, a RuntimeError with its text stands for it.
    """

    __slots__ = ("error", "trace")

    error: Exception | None
    trace: str  # of an exception that was raised in another process

    def __new__(cls, text: str, error: Exception | None = None, trace: str = "") -> Failure:
        """Make one."""
        self = super().__new__(cls, text)
        self.error, self.trace = error, trace
        return self

    def __reduce__(self) -> Any:
        trace = self.trace
        if self.error is not None and self.error.__traceback__ is not None:
            trace = "".join(traceback.format_exception(self.error))
        _, unsent = tried(lambda error: pickle.loads(pickle.dumps(error)), self.error)
        if unsent is not None:
            return Failure, (str(self), RuntimeError(str(self)), trace)
        return Failure, (str(self), self.error, trace)


class _ElsewhereError(Exception):
    """Stands for a traceback of another process."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def reraise(failure: Failure) -> NoReturn:
    """Raise the user's own exception, with a note that says when it was raised."""
    error = failure.error if failure.error is not None else RuntimeError(str(failure))
    error.add_note("poem_cma: none of the first evaluations of fun returned a number; the last of them raised this.")
    if failure.trace:
        raise error from _ElsewhereError(failure.trace)
    raise error


def trace_of(error: BaseException) -> str:
    """The traceback of an exception that was raised in another process, as text; empty for any other exception."""
    return error.__cause__.args[0] if isinstance(error.__cause__, _ElsewhereError) else ""
