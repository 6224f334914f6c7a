"""The public names and their arguments, one a line.

python tests/public_api.py > tests/public_api.txt     # after a change that was meant
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from typing import Any

#: Public modules. The names in each are its own list.
MODULES = (
    "poem_cma", "poem_cma.datasets", "poem_cma.integrations.art", "poem_cma.integrations.mlflow",
    "poem_cma.integrations.nevergrad", "poem_cma.integrations.optuna", "poem_cma.integrations.scipy",
    "poem_cma.integrations.tensorboard", "poem_cma.methods", "poem_cma.paper.theory", "poem_cma.plots",
    "poem_cma.problems", "poem_cma.torch",
)  # fmt: skip


def lines(module_name: str) -> list[str]:
    """Every public name of a module, with its arguments and members."""
    module = importlib.import_module(module_name)
    listed = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
    names = [name for name in listed if not inspect.ismodule(getattr(module, name))]
    return sorted(line for name in names for line in _described(f"{module_name}.{name}", getattr(module, name)))


def _described(name: str, value: Any) -> Iterator[str]:
    if inspect.isclass(value):
        yield name + _arguments(value)
        for member in sorted(set(dir(value)) - set(dir(Exception))):
            if not member.startswith("_") and _is_ours(value, member):
                kind = inspect.getattr_static(value, member)
                is_method = isinstance(kind, staticmethod | classmethod) or inspect.isfunction(kind)
                yield f"{name}.{member}" + (_arguments(getattr(value, member)) if is_method else "")
    elif callable(value):
        yield name + _arguments(value)
    else:
        yield name


def _is_ours(owner: type, member: str) -> bool:
    """Whether a class of this package, not one of Python or PyTorch, brings the member."""
    return any(member in vars(c) for c in owner.__mro__ if c.__module__.startswith("poem_cma"))


def _arguments(value: Any) -> str:
    """Names, kinds and defaults; types are the type checker's business."""
    try:
        signature = inspect.signature(value)
    except ValueError:
        return "(...)"
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))


if __name__ == "__main__":
    for name in MODULES:
        print("\n".join(lines(name)))
