"""What a run is told, from options and from a TOML file: the same names, the same checks, errors that name the key."""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Callable
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from poem_cma.command_line.bounds import EXPECTED, read_bounds
from poem_cma.command_line.target import CommandError

__all__ = ["KEYS", "combined", "read_file"]

_MOST_NUMBERS = 10_000_000


class Key(NamedTuple):
    """How a setting is read."""

    read: Callable[[Any], Any]  # from text or from a TOML value; raises ValueError or TypeError
    expected: str


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise ValueError
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise TypeError
    number = float(value)
    if not isfinite(number):
        raise ValueError
    return number


def _positive(value: Any) -> float:
    if (number := _number(value)) <= 0.0:
        raise ValueError
    return number


def _whole(least: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise TypeError
        number = int(value.replace("_", "")) if isinstance(value, str) else value
        if not least <= number < 2**63:
            raise ValueError
        return number

    return read


def _vector(value: Any) -> list[float]:
    """Numbers as a list, or as text: ``1, 2.5, 0*10`` (ten zeros)."""
    if isinstance(value, list):
        return [_number(v) for v in value] or _fail()
    if isinstance(value, int | float):
        return [_number(value)]
    numbers: list[float] = []
    for item in value.replace(",", " ").split():
        number, _, times = item.partition("*")
        count = _whole(1)(times) if times else 1
        if len(numbers) + count > _MOST_NUMBERS:
            raise ValueError
        numbers += [_number(number)] * count
    return numbers or _fail()


def _start(value: Any) -> Any:
    """A vector; or a table of numbers, lists and tables, in TOML or as JSON text."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = json.loads(value)
    return _table(value) if isinstance(value, dict) else _vector(value)


def _table(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _table(part) for name, part in value.items()} or _fail()
    return [_table(part) for part in value] or _fail() if isinstance(value, list) else _number_itself(value)


def _number_itself(value: Any) -> float:
    return _number(value) if not isinstance(value, str) else _fail()


def _fail() -> Any:
    raise ValueError


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _batch(value: Any) -> int | str:
    return "auto" if value == "auto" else _whole(1)(value)


def _one_of(*names: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if value not in names:
            raise ValueError
        return str(value)

    return read


KEYS = {
    "target": Key(_text, "package.module:function or path/to/file.py:function"),
    "command": Key(_text, "a command, as text"),
    "sample": Key(_text, "package.module:function or path/to/file.py:function"),
    "x0": Key(_start, "finite numbers, as a list, as text like 1,2.5,0*10, or as a table of numbers and lists by name"),
    "ball": Key(_positive, "a positive radius"),
    "l1_ball": Key(_positive, "a positive radius"),
    "simplex": Key(_positive, "a positive total"),
    "bounds": Key(read_bounds, EXPECTED),
    "outside": Key(_flag, "true or false"),
    "scale": Key(_vector, "positive numbers, one or one for each coordinate"),
    "method": Key(_one_of("auto", "poem-cma", "poem"), "auto, poem-cma or poem"),
    "budget": Key(_whole(1), "a whole number of calls from 1 up"),
    "seed": Key(_whole(0), "a whole number from 0 up"),
    "store": Key(_text, "a path"),
    "name": Key(_text, "a text"),
    "workers": Key(_whole(1), "a whole number of processes from 1 up"),
    "timeout": Key(_positive, "a positive number of seconds"),
    "retries": Key(_whole(0), "a whole number from 0 up"),
    "patience": Key(_positive, "a positive number of seconds"),
    "batch": Key(_batch, 'a whole number from 1 up, or "auto"'),
    "ahead": Key(_whole(0), "a whole number from 0 up"),
    "paired": Key(_flag, "true or false"),
    "maximize": Key(_flag, "true or false"),
    "evaluate": Key(_whole(0), "a whole number of samples from 0 up"),
    "stop_below": Key(_number, "a finite number"),
    "time_limit": Key(_positive, "a positive number of seconds"),
    "on_failure": Key(_one_of("drop", "raise"), "drop or raise"),
    "samples": Key(_whole(1), "a whole number of pairs from 1 up"),
    "radius": Key(_positive, "a positive number"),
    "tol": Key(_number, "a number"),
    "ridge": Key(_number, "a number"),
}


def combined(file: Path | None, options: dict[str, Any]) -> dict[str, Any]:
    """The settings of a file, with options above them; checked one by one."""
    settings = read_file(file) if file is not None else {}
    for key, value in options.items():
        if value is not None:
            settings[key] = _read(key, value, "--" + key.replace("_", "-"))
    return settings


def read_file(path: Path) -> dict[str, Any]:
    """The settings in a TOML file."""
    try:
        content = tomllib.loads(path.read_bytes().decode())
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise CommandError(f"{path} is not a TOML file: {error}") from None
    settings = {}
    for key, value in content.items():
        if key not in KEYS:
            near = difflib.get_close_matches(key, KEYS, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(KEYS)}"
            raise CommandError(f"{path}: there is no setting {key!r}; {hint}")
        settings[key] = _read(key, value, f"{path}: {key}")
    return settings


def _read(key: str, value: Any, where: str) -> Any:
    try:
        return KEYS[key].read(value)
    except (ValueError, TypeError, OverflowError, AttributeError, RecursionError):
        shown = repr(value)
        shown = shown if len(shown) <= 60 else shown[:57] + "..."
        raise CommandError(f"{where} must be {KEYS[key].expected}, not {shown}") from None
