"""Play a cell: one method on one problem with one budget and one seed, judged at the end."""

from __future__ import annotations

import logging
import random
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from poem_cma.experiments.bench.field.library import load
from poem_cma.experiments.bench.field.player import Ending
from poem_cma.experiments.bench.field.players import PLAYERS
from poem_cma.experiments.bench.field.task import FieldTask, Spent, worth
from poem_cma.experiments.campaign import records
from poem_cma.experiments.campaign.execute import Group

__all__ = ["play", "work"]


def work(folder: Path, group: Group) -> None:
    """Play cells and write each; this is what a process does."""
    for cell in group:
        records.save(folder, cell, play(cell.settings))


def play(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The result of a cell: the judge's values, the evaluations made, and what the method said.

    Everything but ``time`` is a function of the settings.
    """
    problem, player = load(settings["suite"], settings["problem"]), PLAYERS[settings["method"]]
    task = FieldTask(problem, settings["budget"], settings["seed"])
    usual = Ending(f"the budget of {task.budget} evaluations is spent")
    started = time.process_time()
    with warnings.catch_warnings(), np.errstate(all="ignore"), _global_generators(task.seed):
        warnings.simplefilter("ignore")
        logging.disable(logging.CRITICAL)
        try:
            ending = player.play(task) or usual
        except Spent:
            ending = usual
        except Exception as error:  # a method that breaks down is left with what it had recommended
            ending = Ending(f"{type(error).__name__}: {error}"[:200], said=True)
        finally:
            logging.disable(logging.NOTSET)
        seconds = time.process_time() - started
        value = task.judged()
    return {
        "value": value, "start": _start(problem.suite, problem.name), "nfev": task.nfev, "message": ending.message,
        "said": bool(ending.said), "time": {"seconds": round(seconds, 4), "inside": round(task.seconds_inside, 4)},
    }  # fmt: skip


@lru_cache(maxsize=64)
def _start(suite: str, name: str) -> float:
    problem = load(suite, name)
    return worth(problem.judge, problem.x0)


@contextmanager
def _global_generators(seed: int) -> Iterator[None]:
    """Some methods draw from the global generators: they begin with the seed, and are put back as they were."""
    before, numpys = random.getstate(), np.random.get_state()  # noqa: NPY002
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(before)
        np.random.set_state(numpys)  # noqa: NPY002
