"""What the tests of stores and workers share: a small problem that other processes can import, and sameness."""

from __future__ import annotations

import contextlib
import os
import pathlib
import time
from typing import Any

import numpy as np
import pytest
from problems import hinge

import poem_cma as pc
from poem_cma.store import store as writer

P = hinge(d=4)
METHODS = {
    "auto": pc.methods.auto(),
    "poem": pc.methods.poem(),
    "poem-cma": pc.methods.poem_cma(samples=12),
    "tpge": pc.methods.tpge(lipschitz=2.0),
}


def run(fun: Any = P.fun, x0: Any = (0.1, 0.1, 0.1, 0.1), **changes: Any) -> pc.Result:
    """A short run; `changes` as of `minimize`."""
    settings: dict[str, Any] = {"sample": P.sample, "domain": pc.Ball(1.0), "method": "poem", "budget": 300, "seed": 3}
    settings["batch"] = 1  # the same run, whoever makes the calls
    return pc.minimize(fun, x0, **(settings | changes))


def finished_store(folder: pathlib.Path, fun: Any = P.fun, **changes: Any) -> pathlib.Path:
    """The store of a finished run, with snapshots, history and recent calls."""
    with pytest.MonkeyPatch.context() as often:
        often.setattr(writer, "CALLS_BETWEEN_SNAPSHOTS", 64)
        run(fun, store=folder / "run.db", **changes)
    return folder / "run.db"


def bits(result: pc.Result) -> tuple[Any, ...]:
    """All that must not depend on who made the calls, and when."""
    arrays = [getattr(result, name).tobytes() for name in ("x", "x_last", "x_average")]
    arrays += [column.tobytes() for column in result.history.values()]
    numbers = [np.float64(v).tobytes() for v in (result.fun, result.fun_stderr)]  # NaN is itself
    names = ("nfev", "nit", "failures", "status", "message", "seed", "method")
    return (*arrays, *numbers, *(getattr(result, name) for name in names))


def flaky(x: np.ndarray, i: int) -> float:
    """A function that fails on the sample's account, in three ways."""
    if i % 7 == 1:
        raise RuntimeError(f"sample {i} is bad")
    if i % 11 == 5:
        return float("nan")
    return P.fun(x, i)


def slow(x: np.ndarray, i: int) -> float:
    time.sleep(0.01)
    return P.fun(x, i)


def moody(x: np.ndarray, i: int) -> float:
    """Fails, hangs or dies the first time that it is called at a point, of which a folder keeps count; then answers."""
    folder = pathlib.Path(os.environ["POEM_CMA_TEST_FOLDER"])
    mark = folder / f"{x.tobytes().hex()}-{i}"
    u = np.random.default_rng(np.frombuffer(x.tobytes(), dtype=np.uint32)).random()
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return P.fun(x, i)
    if u < 0.1:
        raise RuntimeError("not today")
    if u < 0.15:
        os._exit(3)
    if u < 0.17:
        time.sleep(1000)
    return P.fun(x, i)


def mortal(x: np.ndarray, i: int) -> float:
    """Kills its process the first time that it is called at some points, of which a folder keeps count."""
    mark = pathlib.Path(os.environ["POEM_CMA_TEST_FOLDER"]) / f"mortal-{x.tobytes().hex()}-{i}"
    if np.random.default_rng(np.frombuffer(x.tobytes(), dtype=np.uint32)).random() < 0.08 and not mark.exists():
        mark.touch()
        os._exit(3)
    return P.fun(x, i)


class Heavy:
    """An objective with much data, that writes down where it is unpacked."""

    def __init__(self) -> None:
        self.data = np.zeros(100_000)

    def __call__(self, x: np.ndarray, i: int) -> float:
        time.sleep(0.02)  # so that one process does not do all the work before the other is there
        return P.fun(x, i)

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)
        folder = pathlib.Path(os.environ["POEM_CMA_TEST_FOLDER"])
        (folder / f"load-{time.time_ns()}-{os.getpid()}").write_text(str(os.getpid()))


def zombies() -> list[str]:
    """Children of this process that have ended and were not waited for."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, parent = (folder / "stat").read_text().rsplit(")", 1)[1].split()[:2]
            if state == "Z" and int(parent) == os.getpid():
                found.append(folder.name)
    return found


def processes(mark: str) -> list[str]:
    """Processes whose environment has this mark, other than this one."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            marked = mark.encode() in (folder / "environ").read_bytes()
            state = (folder / "stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if marked and int(folder.name) != os.getpid():
            found.append(f"{folder.name} {state} {line}")
    return found


def gone(mark: str, seconds: float = 5.0) -> bool:
    """Whether no process has this mark any longer; the system may take a moment to end them."""
    end = time.monotonic() + seconds
    while processes(mark) and time.monotonic() < end:
        time.sleep(0.05)
    return not processes(mark)
