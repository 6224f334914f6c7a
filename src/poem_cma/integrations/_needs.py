"""What to say when an extra is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["needs"]


@contextmanager
def needs(what: str, extra: str) -> Iterator[None]:
    """Imports in this block belong to an extra; one that is missing is answered with a line that says what to do."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{what} is needed here, but {error.name} is missing: pip install 'poem-cma[{extra}]'", name=error.name
        ) from None
