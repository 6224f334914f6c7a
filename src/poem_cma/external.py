"""Programs as functions: they read a point from arguments, a file or standard input, and print a number."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from math import nan
from typing import Any

import numpy as np

__all__ = ["Program", "ProgramError", "draw_seed"]

_PLACE = re.compile(r"\{(x|seed|file|x\[(\d+)\])\}")
_LONGEST = 2000  # characters of standard error that are kept
_MOST_OUTPUT = 2**20  # bytes of standard output that are looked at, the last ones


class ProgramError(RuntimeError):
    """A program failed, or its output cannot be read; the message ends with its standard error."""


def draw_seed(rng: np.random.Generator) -> int:
    """Draw xi for a program: a number with which it can seed its own generator."""
    return int(rng.integers(2**31))


class Program:
    """A command as a function of x, and of a seed if it takes one.

    Parameters
    ----------
    command : str
        The command, split as by a shell but run without one. ``{x}`` is the whole point: one argument for each
        coordinate if it stands alone, otherwise joined by commas. ``{x[2]}`` is one coordinate, counted from 0.
        ``{seed}`` is the sample. ``{file}`` is the path of a JSON file ``{"x": [...], "seed": ...}``. A command with
        none of ``{x}``, ``{x[2]}`` and ``{file}`` gets that JSON on standard input.
    folder : str, optional
        The working directory of the command; by default the current one.
    integer : sequence of bool, optional
        Which coordinates are integers, or one truth value for all. Integers are written without a decimal point.

    The last line of the output must be the value: a number, or JSON with a ``"value"``.

    Examples
    --------
    >>> import sys, poem_cma as pc
    >>> square = Program(f"{sys.executable} -c 'import sys; print(float(sys.argv[1]) ** 2)' {{x}}")
    >>> square([3.0])
    9.0
    """

    def __init__(self, command: str, folder: str | None = None, integer: Sequence[bool] = ()) -> None:
        try:
            self._words = _words(command)
        except ValueError as error:
            raise ValueError(f"the command {command!r} cannot be split into words: {error}") from None
        if not self._words:
            raise ValueError("the command is empty")
        if "\0" in command:
            raise ValueError("the command contains a zero byte")
        self.command, self.folder = command, folder
        self._integer = np.array(integer or [False], dtype=bool)
        places = {place for word in self._words for place in _PLACE.findall(word)}
        names = {name for name, _ in places}
        self._in_file = "file" in names
        self._on_input = not self._in_file and not any(name.startswith("x") for name in names)
        self.takes_seed = "seed" in names or self._in_file or self._on_input
        self._highest = max((int(index) for _, index in places if index), default=-1)

    def __call__(self, x: Any, seed: int | None = None) -> float:
        """Run it once."""
        values = np.asarray(x, dtype=float)
        whole = np.broadcast_to(self._integer, values.shape)
        point = [int(v) if i else float(v) for v, i in zip(values, whole, strict=True)]
        if self._highest >= len(point):
            raise ProgramError(f"the command asks for x[{self._highest}], but x has {len(point)} coordinates")
        message = json.dumps({"x": point} if seed is None else {"x": point, "seed": seed})
        with contextlib.ExitStack() as stack:
            path = ""
            if self._in_file:
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="poem-cma-"))
                path = os.path.join(folder, "point.json")  # closed before the program starts: Windows wants that
                with open(path, "w", encoding="utf-8") as file:
                    file.write(message)
            return self._run(self._arguments(point, seed, path), message if self._on_input else None)

    def _arguments(self, point: Sequence[float], seed: int | None, path: str) -> list[str]:
        def put(match: re.Match[str]) -> str:
            if match[1] == "x":
                return ",".join(map(repr, point))
            if match[1] == "seed":
                return "" if seed is None else str(seed)
            return path if match[1] == "file" else repr(point[int(match[2])])

        words: list[str] = []
        for word in self._words:
            words += map(repr, point) if word == "{x}" else [_PLACE.sub(put, word)]
        return words

    def _run(self, arguments: list[str], message: str | None) -> float:
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:  # files: any amount, and no deadlock
            try:
                process = subprocess.Popen(
                    arguments, stdin=subprocess.DEVNULL if message is None else subprocess.PIPE, stdout=out, stderr=err,
                    cwd=self.folder,
                )  # fmt: skip
            except OSError as error:
                raise ProgramError(f"{arguments[0]} cannot be run: {error.strerror or error}") from None
            try:
                with contextlib.suppress(BrokenPipeError):
                    process.communicate(None if message is None else message.encode())
            except BaseException:
                process.kill()
                process.wait()
                raise
            answer, complaint = _end_of(out, _MOST_OUTPUT), _end_of(err, _LONGEST).strip()
        if process.returncode:
            how = f"exit code {process.returncode}" if process.returncode > 0 else f"signal {-process.returncode}"
            raise ProgramError(f"{arguments[0]} ended with {how}" + (f": {complaint}" if complaint else ""))
        return _number(answer, arguments[0], complaint)


def _words(command: str) -> list[str]:
    """Split as a shell would; on Windows a backslash is a part of a path."""
    return shlex.split(command.replace("\\", "\\\\") if os.name == "nt" else command)


def _end_of(file: Any, most: int) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - most))
    text: str = file.read().decode(errors="replace")
    return text


def _number(answer: str, program: str, complaint: str) -> float:
    """The number in the last line of an answer."""
    lines = answer.strip().splitlines()
    last = lines[-1].strip() if lines else ""
    try:
        value = json.loads(last)
        value = value["value"] if isinstance(value, dict) else value
        if value is None:
            return nan
        return float(value)
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    try:
        return float(last)
    except ValueError:
        shown = repr(last if len(last) <= 80 else last[:77] + "...")
        raise ProgramError(
            f'{program} answered {shown}, expected a number or JSON {{"value": ...}}'
            + (f"; on standard error: {complaint}" if complaint else "")
        ) from None
