"""The suites' problems: loaded by suite and name, with one line for everything that cannot be had."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from pathlib import Path

from poem_cma.experiments.bench.provenance import source_digest
from poem_cma.problems.black_box import BlackBox
from poem_cma.problems.suites import SUITES, black_boxes, load_black_box

__all__ = ["NotHere", "load", "names_of", "source_of"]

#: The distribution to install for a module that is missing.
_DISTRIBUTIONS = {
    "simopt": "simoptlib",
    "mrg32k3a": "simoptlib",
    "cocoex": "coco-experiment",
    "sklearn": "scikit-learn",
}


class NotHere(RuntimeError):  # noqa: N818
    """A suite or a problem cannot be used on this machine; the message is one line that says why."""


def names_of(suite: str) -> list[str]:
    """The names of a suite's problems."""
    try:
        return black_boxes(suite)
    except Exception as error:
        raise NotHere(_why(error)) from None


@lru_cache(maxsize=4)
def load(suite: str, name: str) -> BlackBox:
    """Build a problem; other suites, which may need packages that are missing, are left alone."""
    try:
        return load_black_box(name, suite)
    except Exception as error:
        raise NotHere(_why(error)) from None


def source_of(suite: str) -> str:
    """The checksum of a suite's source; another one makes its results out of date."""
    file = Path(str(import_module(SUITES[suite]).__file__))
    return source_digest((str(file.parent if file.name == "__init__.py" else file), "problems/black_box.py"))


def _why(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name:
        module = error.name.partition(".")[0]
        if module != "poem_cma":
            return f'{_DISTRIBUTIONS.get(module, module)} is not installed (pip install "poem-cma[bench]")'
        return f"there is no module {error.name} in this version of poem-cma"
    text = " ".join(str(error).split())
    return (text if isinstance(error, ImportError) else f"{type(error).__name__}: {text}")[:300]
