"""What is minimised: a function in a module or a file, or a program."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

from poem_cma.run.failures import described

__all__ = ["CommandError", "Target"]


class CommandError(Exception):
    """The command cannot do what was asked for; the message is one line."""


class Target:
    """A function by its place, ``package.module:function`` or ``path/to/file.py:function``; workers find it again."""

    def __init__(self, place: str, key: str = "target") -> None:
        module, _, name = place.rpartition(":")
        if not module or not name:
            raise CommandError(f"{key} must be package.module:function or path/to/file.py:function, not {place!r}")
        if module.endswith(".py"):
            module = os.path.abspath(module)
        self.place, self._key = f"{module}:{name}", key
        self._function = _find(module, name, key)

    def __call__(self, *arguments: Any) -> Any:
        """Call the function."""
        return self._function(*arguments)

    @property
    def __wrapped__(self) -> Any:
        """For those who look at the signature."""
        return self._function

    def __reduce__(self) -> tuple[Any, ...]:
        return (Target, (self.place, self._key))


def _find(module: str, name: str, key: str) -> Any:
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)  # as `python -m` does
    try:
        found = _load_file(Path(module)) if module.endswith(".py") else importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except Exception as error:  # whatever the user's module may raise
        raise CommandError(f"{key}: {module}:{name} cannot be loaded ({described(error)})") from None
    if not callable(found):
        raise CommandError(f"{key}: {module}:{name} is not a function but {type(found).__name__}")
    return found


def _load_file(path: Path) -> Any:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    name = f"poem_cma_target_{path.stem}"
    if name in sys.modules and getattr(sys.modules[name], "__file__", None) == str(path):
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent))
    spec.loader.exec_module(module)
    return module
