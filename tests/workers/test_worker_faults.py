"""Workers that die by themselves, leave children behind, or write to their pipe what is no reply."""

from __future__ import annotations

import contextlib
import gc
import os
import pathlib
import signal
import subprocess
import sys
import time
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import pytest
from runs import P, bits, processes, run, zombies

import poem_cma as pc
from poem_cma.store import View

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="groups of processes are those of POSIX")


def once(name: str) -> bool:
    """Whether this is the first time, in any process."""
    with contextlib.suppress(FileExistsError):
        (pathlib.Path(os.environ["POEM_CMA_TEST_FOLDER"]) / name).touch(exist_ok=False)
        return True
    return False


@pytest.fixture
def mark(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every process of the test has it in its environment."""
    monkeypatch.setenv("POEM_CMA_TEST_FOLDER", str(tmp_path))
    return str(tmp_path)


def dies_before_its_child(x: np.ndarray, i: int) -> float:
    """The child holds everything that its parent had open."""
    if once("died"):
        if os.fork() == 0:
            time.sleep(600)
            os._exit(0)
        os.kill(os.getpid(), signal.SIGKILL)
    return P.fun(x, i)


def dies_before_its_program(x: np.ndarray, i: int) -> float:
    """The driver hears of it late: for a second a child holds the pipe."""
    if once("died"):
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        if os.fork() == 0:
            time.sleep(1.0)
        os._exit(3)
    return P.fun(x, i)


def left_behind(mark: str) -> list[str]:
    """Processes of the test, but for one that multiprocessing keeps for itself."""
    return [line for line in processes(mark) if "resource_tracker" not in line]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("fun", [dies_before_its_child, dies_before_its_program])
def test_what_a_dead_worker_has_started_is_ended_and_the_run_goes_on(mark: str, fun: Any, workers: int) -> None:
    settings: dict[str, Any] = {"budget": 60, "batch": 2}
    assert bits(run(fun, workers=pc.Workers(workers, retries=1), **settings)) == bits(run(**settings))
    assert (pathlib.Path(mark) / "died").exists()
    end = time.monotonic() + 5.0
    while left_behind(mark) and time.monotonic() < end:
        time.sleep(0.05)
    assert not left_behind(mark)
    assert not zombies()


def pipe_of_the_worker() -> Connection:
    """What a worker has to its driver; an objective should not touch it."""
    (pipe,) = (found for found in gc.get_objects() if isinstance(found, Connection) and found.writable)
    return pipe


def writes_text(x: np.ndarray, i: int) -> float:
    if once("wrote"):
        os.write(pipe_of_the_worker().fileno(), b"hello, I am a library that writes where it likes\n")
    return P.fun(x, i)


def writes_zeros(x: np.ndarray, i: int) -> float:
    if once("wrote"):
        os.write(pipe_of_the_worker().fileno(), bytes(64))
    return P.fun(x, i)


def sends_bytes(x: np.ndarray, i: int) -> float:
    if once("wrote"):
        pipe_of_the_worker().send_bytes(b"no pickle")
    return P.fun(x, i)


def sends_objects(x: np.ndarray, i: int) -> float:
    if once("wrote"):
        pipe_of_the_worker().send([1, 2, 3])
    return P.fun(x, i)


def sends_none(x: np.ndarray, i: int) -> float:
    if once("wrote"):
        pipe_of_the_worker().send(None)
    return P.fun(x, i)


@pytest.mark.parametrize("fun", [writes_text, writes_zeros, sends_bytes, sends_objects, sends_none])
def test_junk_on_the_pipe_of_a_worker_costs_that_worker_and_no_more(
    tmp_path: pathlib.Path, mark: str, fun: Any
) -> None:
    result = run(fun, budget=60, batch=2, workers=pc.Workers(2, retries=1), store=tmp_path / "run.db")
    assert bits(result) == bits(run(budget=60, batch=2))
    assert (tmp_path / "wrote").exists()
    with View(tmp_path / "run.db") as view:
        why = [text for *_, text in view.failures()]
    assert any("sent something that is no reply" in text for text in why)
    assert not zombies()
