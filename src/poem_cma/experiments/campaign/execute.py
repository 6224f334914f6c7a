"""Compute what is missing, in processes, each cell straight into its files.

A process is handed a group of cells: one, or some that it computes together.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import TypeAlias

from poem_cma.experiments.campaign.cells import Cell

__all__ = ["Group", "Work", "default_jobs", "run"]

Group: TypeAlias = Sequence[Cell]

#: What a process does with a group: compute and write its cells. A function of a module: processes are told its name.
Work: TypeAlias = Callable[[Path, Group], None]

#: One thread each: the processes are the parallelism, and sums come out the same whatever the machine.
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def default_jobs() -> int:
    """As many as there are processors, up to four: w8a takes some 300 MB in each."""
    try:
        available = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        available = os.cpu_count() or 1
    return min(4, available)


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def run(
    folder: Path,
    todo: Sequence[Group],
    jobs: int,
    done: Callable[[Cell], Iterable[Group] | None],
    work: Work,
) -> None:
    """Compute all the groups; `done` hears of each cell as it is finished, and may return groups that come next."""
    if not todo:
        return
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    spawn = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(jobs, len(todo)), mp_context=spawn, initializer=_leave_interrupts_to_the_parent)
    try:
        waiting: dict[Future[None], Group] = {}
        ahead = deque(todo)
        while True:
            # A few at a time, so that an interrupt has little to wait for.
            while len(waiting) < 2 * jobs and ahead:
                group = ahead.popleft()
                waiting[pool.submit(work, folder, group)] = group
            if not waiting:
                return
            finished = wait(waiting, return_when=FIRST_COMPLETED).done
            for future in [
                one for one in waiting if one in finished
            ]:  # in their order: what is done before an error counts
                group = waiting.pop(future)
                try:
                    future.result()
                except Exception as error:
                    raise RuntimeError(f"{_named(group)} failed: {type(error).__name__}: {error}") from error
                ahead.extendleft(reversed([following for cell in group for following in done(cell) or ()]))
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _named(group: Group) -> str:
    first, others = group[0], len(group) - 1
    return f"cell {first.kind}/{first.name}" + (f" or one of {others} others with it" if others else "")
