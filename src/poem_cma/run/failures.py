"""What failed, in words: the text of any exception and of any value, whatever their own methods do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

__all__ = ["LONGEST", "brief", "described", "printable", "shortened", "tried"]

#: Characters of a text that are kept; of a longer one the beginning and the end, where tracebacks have their reason.
LONGEST = 4000

_BEGINNING = 1000  # characters

_BRIEF = 60  # characters of a value

T = TypeVar("T")


def tried(call: Callable[[Any], T], value: Any) -> tuple[T | None, BaseException | None]:
    """What a call returns that runs methods of the user's own class, or what it raises: no SystemExit ends the run.

    Examples
    --------
    >>> tried(float, "0.5")
    (0.5, None)
    >>> tried(float, None)[1]
    TypeError("float() argument must be a string or a real number, not 'NoneType'")
    """
    try:
        return call(value), None
    except KeyboardInterrupt:  # Ctrl-C
        raise
    except BaseException as error:
        return None, error


def described(error: BaseException) -> str:
    """The type and the text of an exception, as text that every file and terminal can take.

    Examples
    --------
    >>> described(ValueError("a bad sample"))
    'ValueError: a bad sample'
    """
    name = type(error).__name__
    text, other = tried(str, error)
    if text is None:
        return shortened(f"{name} (whose text cannot be had: its __str__ raised {type(other).__name__})")
    return shortened(f"{name}: {text}")


def shortened(text: str) -> str:
    r"""A text of at most LONGEST characters; surrogates, which no file can hold, are written as \udc80.

    Examples
    --------
    >>> len(shortened("x" * 50_000_000))
    4000
    """
    if len(text) > LONGEST:
        gap = f" ... ({len(text)} characters) ... "
        text = text[:_BEGINNING] + gap + text[len(text) - (LONGEST - _BEGINNING - len(gap)) :]
    return text.encode(errors="backslashreplace").decode()[:LONGEST]


def printable(text: str) -> str:
    r"""A line of text for a terminal, which takes no orders from it: what is not printed is written as \\x1b.

    Examples
    --------
    >>> printable("a name\x1b[2J")
    'a name\\x1b[2J'
    """
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def brief(value: Any) -> str:
    """A value in a few characters.

    Examples
    --------
    >>> brief(10**5000)
    'a value of type int'
    """
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    text, _ = tried(repr, value)
    if text is None:
        return f"a value of type {type(value).__name__}"
    return shortened(text if len(text) <= _BRIEF else text[: _BRIEF - 3] + "...")
