"""A pool of our own processes, each of which can be killed and replaced alone.

A process is the leader of its own group, with whatever programs the objective starts, and the whole group is killed at
once, also where the process has died by itself. It does not hear Ctrl-C. When the driver is gone, however it went, a
thread in each process ends its group.
"""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing
import os
import pickle
import selectors
import signal
import threading
import time
import weakref
from collections.abc import Collection
from multiprocessing.connection import Connection, wait
from typing import Any

from poem_cma.run.failures import LONGEST
from poem_cma.workers.crew import NotBegun
from poem_cma.workers.task import Objective, Reply, Task, _unloadable, answer, calls_of, from_payload, to_payload

__all__ = ["Processes"]

_MOST_DEATHS_AT_START = 3

#: A longer message to a process that is busy would keep the driver waiting until it reads it.
_FITS_IN_A_PIPE = 2**14

#: A process whose end does not close its pipe, because a child of its own holds that, is missed after so long.
_SECONDS_BETWEEN_LOOKS = 0.2

#: More bytes than a reply takes, for each call and for each of its values. What claims to be longer is no reply.
_BYTES_A_CALL, _BYTES_A_VALUE = 16 * LONGEST, 32

#: On Windows a selector knows sockets only; `wait` knows pipes everywhere, and is slower.
_PIPES_CAN_BE_SELECTED = os.name != "nt"

_pools: weakref.WeakSet[Processes] = weakref.WeakSet()


class Processes:
    """So many processes, kept alive."""

    def __init__(self, count: int, objective: Objective) -> None:
        self._payload = to_payload(objective)
        self._context = multiprocessing.get_context("spawn")
        self._deaths_at_start = 0
        self._workers: list[_Worker] = []
        self._selector = selectors.DefaultSelector()
        self._looked = 0.0
        _pools.add(self)
        try:
            for _ in range(count):
                self._workers.append(self._begin())
        except BaseException:
            self.close()
            raise

    def _begin(self) -> _Worker:
        worker = _Worker(self._context, self._payload)
        if _PIPES_CAN_BE_SELECTED:
            self._selector.register(worker.pipe, selectors.EVENT_READ, worker)
        return worker

    in_hand = 1

    def slots(self) -> int:
        """Processes there are: dead ones are replaced."""
        return len(self._workers)

    def start(self, ticket: int, tasks: list[Task], avoid: Collection[Any]) -> Any:
        """Give a parcel to an idle process, another than those to avoid if there are others; its id, or None."""
        others = [w for w in self._workers if w.pid not in avoid] or self._workers
        message = pickle.dumps(calls_of(tasks), pickle.HIGHEST_PROTOCOL)
        in_hand = self.in_hand if len(message) < _FITS_IN_A_PIPE else 1
        for worker in sorted(others, key=_load) if in_hand > 1 else others:
            if not worker.ready or len(worker.tickets) >= in_hand:
                continue
            try:
                worker.pipe.send_bytes(message)
            except OSError:  # died while idle: `collect` will see it
                worker.ready = False
                continue
            worker.tickets[ticket] = tasks
            return worker.pid
        return None

    def collect(self, seconds: float) -> list[tuple[int, list[Reply] | str]]:
        """Replies, or why there are none, as soon as there are any, or nothing after so many seconds."""
        replies: list[tuple[int, list[Reply] | str]] = []
        for worker in self._heard(seconds):
            try:
                message = worker.read()
            except (EOFError, OSError):
                replies += self._replace(worker, "died")
                continue
            except _JunkError:
                replies += self._replace(worker, "sent something that is no reply and was killed")
                continue
            if isinstance(message, str):
                raise RuntimeError(message)
            if message is None:
                worker.ready = True
                self._deaths_at_start = 0
            else:
                replies.append((worker.next_ticket(), message))
        for worker in self._ended():
            replies += self._replace(worker, "died")
        return replies

    def _ended(self) -> list[_Worker]:
        """Now and then: workers that have ended and said nothing more."""
        now = time.monotonic()
        if now - self._looked < _SECONDS_BETWEEN_LOOKS:
            return []
        self._looked = now
        return [w for w in self._workers if w.process.exitcode is not None and not w.pipe.poll()]

    def _heard(self, seconds: float) -> list[_Worker]:
        """Workers that have something to say, or have died, within so many seconds."""
        if _PIPES_CAN_BE_SELECTED:
            return [key.data for key, _ in self._selector.select(seconds)]
        ready = wait([worker.pipe for worker in self._workers], seconds)
        return [worker for worker in self._workers if worker.pipe in ready]

    def abandon(self, ticket: int) -> None:
        """Kill the process that is at a parcel."""
        for worker in self._workers:
            if ticket in worker.tickets:
                self._replace(worker, "was killed")

    def _replace(self, worker: _Worker, how: str) -> list[tuple[int, list[Reply] | str]]:
        if _PIPES_CAN_BE_SELECTED:
            self._selector.unregister(worker.pipe)
        code = worker.kill()
        if not worker.ready:
            self._deaths_at_start += 1
            if self._deaths_at_start >= _MOST_DEATHS_AT_START:
                raise RuntimeError(
                    f"worker processes die as they start (exit code {code}): is the part of your script that calls "
                    f'minimize under `if __name__ == "__main__":`, as multiprocessing needs it?'
                )
        self._workers[self._workers.index(worker)] = self._begin()
        why = f"the worker process {how} (exit code {code})"
        return [(ticket, NotBegun(why) if n else why) for n, ticket in enumerate(worker.tickets)]

    def close(self) -> None:
        """Kill all processes, and wait until they are gone."""
        for worker in self._workers:
            worker.kill(wait=False)
        for worker in self._workers:
            worker.kill()
        self._workers = []
        self._selector.close()


def _load(worker: _Worker) -> int:
    return len(worker.tickets)


class _Worker:
    """A process and our end of its pipe."""

    def __init__(self, context: Any, payload: bytes) -> None:
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs,), name="poem-cma worker")
        self.process.start()
        self.pid: int = self.process.pid
        theirs.close()
        self.ready = False  # until it has the objective
        self.tickets: dict[int, list[Task]] = {}  # the parcel it works on, and those that come next
        # In a thread: a large payload fills the pipe until the process reads it.
        threading.Thread(target=self._send, args=(payload,), daemon=True).start()

    def _send(self, payload: bytes) -> None:
        with contextlib.suppress(OSError):
            self.pipe.send_bytes(payload)

    def next_ticket(self) -> int:
        """The parcel that its next message answers; it is no longer at it."""
        ticket = next(iter(self.tickets))
        del self.tickets[ticket]
        return ticket

    def read(self) -> Any:
        """What it says: None that it is ready, a text that it never will be, or the replies to its next parcel."""
        tasks = next(iter(self.tickets.values()), [])
        longest = _BYTES_A_CALL * (1 + len(tasks)) + _BYTES_A_VALUE * sum(len(task.points) for task in tasks)
        try:
            content = self.pipe.recv_bytes(longest)
        except OSError:
            if self.pipe.readable:
                raise
            raise _JunkError from None  # it claims to be longer than any reply
        try:
            message = pickle.loads(content)
        except Exception:
            raise _JunkError from None
        expected = _answers(message, tasks) if self.ready else message is None or isinstance(message, str)
        if not expected:
            raise _JunkError
        return message

    def kill(self, wait: bool = True) -> int | None:
        """End the process and all that it started; its exit code."""
        with contextlib.suppress(OSError, AttributeError):
            if self._has_group():
                os.killpg(self.pid, signal.SIGKILL)
        if self.process.exitcode is None:
            self.process.kill()
        if wait:
            self.process.join()
            self.pipe.close()
        code: int | None = self.process.exitcode
        return code

    def _has_group(self) -> bool:
        """Whether it became the leader of a group. The group outlives it, and no other gets its number until then."""
        try:
            return os.getpgid(self.pid) == self.pid
        except ProcessLookupError:  # it has ended, and somebody has waited for it
            return True


class _JunkError(Exception):
    """A message that no worker of ours would send."""


def _answers(message: Any, tasks: list[Task]) -> bool:
    """Whether a message holds a reply to each of some tasks."""
    return (
        bool(tasks)
        and isinstance(message, list)
        and len(message) == len(tasks)
        and all(
            isinstance(reply, Reply) and len(reply.values) == len(task.points)
            for reply, task in zip(message, tasks, strict=True)
        )
    )


def _work(pipe: Connection) -> None:
    """The life of a process: get the objective, say that it is there, then answer parcels."""
    with contextlib.suppress(OSError, AttributeError):
        os.setsid()  # a group of its own: no Ctrl-C, and everything below it ends with it
    threading.Thread(target=_end_with_the_driver, daemon=True).start()
    try:
        oracle = from_payload(pipe.recv_bytes()).oracle()
    except EOFError:
        return
    except Exception as error:
        pipe.send(_unloadable(error))
        return
    try:
        pipe.send(None)
        while True:
            replies = [answer(oracle, *call) for call in pickle.loads(pipe.recv_bytes())]
            pipe.send_bytes(pickle.dumps(replies, pickle.HIGHEST_PROTOCOL))
    except (EOFError, OSError):
        return  # the driver is gone


def _end_with_the_driver() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    if hasattr(os, "killpg") and os.getpgid(0) == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


@atexit.register
def _close_all() -> None:
    for pool in list(_pools):
        pool.close()
