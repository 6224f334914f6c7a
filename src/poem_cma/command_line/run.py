"""`poem-cma minimize`, `resume` and `dimension`: from settings to a run, and its result on the screen."""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from poem_cma.command_line.bounds import as_box, as_nest, middles, names_of
from poem_cma.command_line.settings import combined
from poem_cma.command_line.target import CommandError, Target
from poem_cma.domains.sets import Ball, L1Ball, Simplex
from poem_cma.external import Program, ProgramError, draw_seed
from poem_cma.paper.dimension import effective_dimension
from poem_cma.result import Result, Status
from poem_cma.run.failure import trace_of
from poem_cma.run.failures import described, printable
from poem_cma.run.front import run
from poem_cma.run.settings import Place, Problem, Search, Stops
from poem_cma.store import StoreError, View
from poem_cma.workers import Workers

__all__ = ["dimension", "minimize", "resume"]

_DOMAINS = {"ball": Ball, "l1_ball": L1Ball, "simplex": Simplex, "bounds": None}
_EXPECTED = (ValueError, TypeError, ArithmeticError, RuntimeError, MemoryError, OSError, AssertionError)


def minimize(file: Path | None, options: dict[str, Any], *, as_json: bool = False) -> int:
    """Run, and print the result; the exit code."""
    settings = combined(file, options) | {"folder": os.getcwd()}
    return _run(settings, as_json)


def resume(path: Path, options: dict[str, Any], *, as_json: bool = False) -> int:
    """Go on with the run of a store, as it was started."""
    with _opened(path) as view:
        launch, plan = view.launch, view.plan
    if not isinstance(launch, dict):
        raise CommandError(f"{path} was started from Python: call minimize(..., store={str(path)!r}) again")
    given = combined(None, options)
    settings = launch | {"budget": plan["budget"]} | given | {"store": str(path)}
    what = settings.get("command") or settings.get("target")
    print(printable(f"going on with {what} in {settings['folder']}"), file=sys.stderr)  # noqa: T201
    return _run(settings, as_json)


def dimension(file: Path | None, options: dict[str, Any], *, as_json: bool = False) -> int:
    """Algorithm 2, and what it found."""
    settings = combined(file, options)
    fun, sample = _objective(settings | {"folder": None})
    names = ("samples", "radius", "tol", "ridge", "seed")
    try:
        found = effective_dimension(
            fun, _x0(settings), sample=sample, paired=settings.get("paired", True),
            **{name: settings[name] for name in names if name in settings},
        )  # fmt: skip
    except _EXPECTED as error:
        raise CommandError(_one_line(error)) from None
    numbers = {
        "effective_dimension": found.effective_dimension, "condition": found.condition, "rank": found.rank,
        "samples": found.size, "calls": found.nfev,
    }  # fmt: skip
    _print(json.dumps(numbers) if as_json else "\n".join(f"{k:>20}: {_short(v)}" for k, v in numbers.items()))
    return 0


def _run(settings: dict[str, Any], as_json: bool) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's, of numbers that are too large
        warnings.showwarning = _warn  # type: ignore[assignment]
        try:
            result = _minimize(settings)
        except Exception as error:
            raise _as_command_error(error) from None
    _print(_result_as_json(result) if as_json else _result_as_text(result))
    if result.status == Status.INTERRUPTED:
        if "store" in settings:
            print(f"go on with: poem-cma resume {settings['store']}", file=sys.stderr)  # noqa: T201
        return 130
    return 0 if result.success else 1


def _as_command_error(error: Exception) -> Exception:
    """What the user is told: of a function that fails its traceback, of a program what it has written, else a line."""
    if isinstance(error, ProgramError):
        return CommandError(str(error))
    if trace := trace_of(error):
        return CommandError(f"the function raised {described(error)}\n{trace.strip()}")
    return CommandError(_one_line(error)) if isinstance(error, _EXPECTED) else error


def _minimize(s: dict[str, Any]) -> Result:
    fun, sample = _objective(s)
    if "budget" not in s:
        raise CommandError("budget is missing: how many calls may be made? Give --budget")
    policy = {name: s[name] for name in ("timeout", "retries", "patience") if name in s}
    launch = {key: value for key, value in s.items() if key not in ("store", "budget")}
    launch["folder"] = s["folder"]
    if "target" in launch:
        launch["target"] = fun.place
    if "sample" in launch:
        launch["sample"] = sample.place
    given = {name: s[name] for name in Search._fields if name in s}
    return run(
        Problem(fun, sample, on_failure=s.get("on_failure", "drop"), maximize=s.get("maximize", False)),
        Search(**given | {"x0": _x0(s), "domain": _domain(s), "scale": _scale(s)}),
        Stops(target=s.get("stop_below"), time_limit=s.get("time_limit")),
        Place(
            workers=Workers(s.get("workers", 1), **policy), store=s.get("store"), launch=launch,
            name=s.get("name") or s.get("command") or fun.place, progress=sys.stderr.isatty(),
        ),
    )  # fmt: skip


def _objective(s: dict[str, Any]) -> tuple[Any, Any]:
    """The function, and what draws its samples."""
    if ("target" in s) == ("command" in s):
        problem = "both are given" if "target" in s else "neither is given"
        raise CommandError(f"what is to be minimised? Give TARGET or --command, one of them; {problem}")
    if "target" in s:
        return Target(s["target"]), Target(s["sample"], "sample") if "sample" in s else None
    if "sample" in s:
        raise CommandError("sample is for functions; a command gets its sample as {seed}")
    try:
        program = Program(s["command"], s["folder"], [bound["integer"] for bound in s.get("bounds", ())])
    except ValueError as error:
        raise CommandError(f"command: {error}") from None
    return program, draw_seed if program.takes_seed else None


def _x0(s: dict[str, Any]) -> Any:
    names = names_of(s.get("bounds", []))
    if names and not isinstance(s.get("x0"), dict):
        return _named_x0(s, names)
    if "x0" not in s:
        raise CommandError("x0 is missing: where does the run start? Give --x0, or --bounds with names")
    if isinstance(s["x0"], dict) and "command" in s:
        raise CommandError("x0 as a table is for functions; a command gets its numbers one after another")
    return _arrays(s["x0"])


def _named_x0(s: dict[str, Any], names: list[str]) -> Any:
    """The numbers of a list by name, or the middle of each range; a command gets them one after another."""
    try:
        x0 = s["x0"] if "x0" in s else middles(s["bounds"])
    except ValueError as error:
        raise CommandError(f"bounds: {error}") from None
    if len(x0) != len(names):
        raise CommandError(f"x0 has {len(x0)} numbers, and bounds have the {len(names)} names {', '.join(names)}")
    return np.array(x0, dtype=float) if "command" in s else dict(zip(names, x0, strict=True))


def _arrays(x0: Any) -> Any:
    """A list as an array; a table as a dictionary of them."""
    if isinstance(x0, dict):
        return {name: _arrays(part) for name, part in x0.items()}
    try:
        return np.array(x0, dtype=float) if isinstance(x0, list) else x0
    except ValueError:
        raise CommandError("a list in x0 must be a vector, or rows of the same length") from None


def _lists(x: Any) -> Any:
    """A point as JSON has it."""
    if isinstance(x, dict):
        return {name: _lists(part) for name, part in x.items()}
    return x.tolist() if isinstance(x, np.ndarray) else x


def _scale(s: dict[str, Any]) -> Any:
    scale = s.get("scale")
    return scale if scale is None or len(scale) > 1 else scale[0]


def _domain(s: dict[str, Any]) -> Any:
    given = [key for key in _DOMAINS if key in s]
    if len(given) > 1:
        raise CommandError(f"{' and '.join(given)} are given, but a run has one domain")
    if not given:
        if s.get("outside"):
            raise CommandError("outside needs a domain: give ball, bounds, l1_ball or simplex")
        return None
    outside = s.get("outside", False)
    try:
        if given == ["bounds"]:
            named = names_of(s["bounds"]) and "command" not in s
            return (as_nest if named else as_box)(s["bounds"], outside)
        make: Any = _DOMAINS[given[0]]
        return make(s[given[0]], outside=outside)
    except (ValueError, TypeError) as error:
        raise CommandError(f"{given[0]}: {error}") from None


def _warn(message: Warning | str, *_: Any) -> None:
    print(f"poem-cma: {printable(str(message))}", file=sys.stderr)  # noqa: T201


def _opened(path: Path) -> View:
    try:
        return View(path)
    except StoreError as error:
        raise CommandError(str(error)) from None


def _one_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _result_as_text(result: Result) -> str:
    x = json.dumps(_lists(result.x))
    if isinstance(result.x, np.ndarray):
        x = "[" + ", ".join(f"{v:.8g}" for v in result.x[:20]) + (", ..." if len(result.x) > 20 else "") + "]"
    lines = {
        "x": x, "value": str(result.value), "gain": str(result.gain), "calls": str(result.nfev),
        "failures": str(result.failures), "seed": str(result.seed), "end": result.message,
    }  # fmt: skip
    return "\n".join(f"{name:>10}: {printable(value)}" for name, value in lines.items())


def _result_as_json(result: Result) -> str:
    names = ("fun", "fun_stderr", "nfev", "nit", "success", "status", "message", "failures", "seed", "method")
    content: dict[str, Any] = {name: getattr(result, name) for name in names}
    content = {k: None if isinstance(v, float) and v != v else v for k, v in content.items()}
    estimates = {name: getattr(result, name).to_dict() for name in ("value", "gain")}
    return json.dumps({"x": _lists(result.x), **content, **estimates})


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
