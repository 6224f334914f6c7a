"""Packages that some problems need, imported when such a problem is built."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["package"]


def package(module: str, needed: str) -> Any:
    """Import a module, or say in one line what is wrong.

    Parameters
    ----------
    module : str
        Its name, with dots.
    needed : str
        Who needs what, for the message: "the simulators need SimOpt".
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        line = f'{needed}, but {error.name} is missing: pip install "poem-cma[bench]"'
        raise ImportError(line, name=error.name) from None
    except Exception as error:
        raise ImportError(f"{needed}, which cannot be imported ({' '.join(str(error).split())})") from None
