"""A Dask cluster, by its client.

A task of Dask's own costs its scheduler milliseconds. So each worker gets one actor, which keeps the objective, and
calls are messages to it: straight to the worker if the client is one with ``direct_to_workers=True``, else passed on by
the scheduler.
"""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import queue
import threading
import time
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from operator import itemgetter
from typing import Any, NamedTuple

from distributed import wait

from poem_cma.run.failures import described
from poem_cma.workers.crew import NotBegun
from poem_cma.workers.task import Objective, Reply, Task, calls_of, perform, to_payload

__all__ = ["Bench", "Dask", "threads"]

_SECONDS_BETWEEN_COUNTS = 0.5
_SECONDS_TO_RESTART = 30.0
_SECONDS_TO_BEGIN = 10.0


def threads(client: Any) -> int:
    """Threads in the cluster now."""
    return sum(client.nthreads().values())


class Bench:
    """The actor: where a worker's threads work."""

    def __init__(self, token: str, payload: bytes, threads: int) -> None:
        self._token, self._payload = token, payload
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="poem-cma")

    async def perform(self, calls: bytes) -> bytes:
        """A parcel in a thread, so that the worker can listen meanwhile. Bytes: Dask has least to do with them."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._perform, calls)

    def _perform(self, calls: bytes) -> bytes:
        return pickle.dumps(perform(self._token, self._payload, pickle.loads(calls)), pickle.HIGHEST_PROTOCOL)


class _Seat:
    """What is known of one worker."""

    def __init__(self, threads: int, actor: Any) -> None:
        self.threads = threads
        self.coming = actor  # the future of the actor
        self.actor: Any = None
        self.tickets: list[int] = []
        self.not_begun: set[int] = set()  # parcels that waited when a call failed with the worker

    def lose(self, ticket: int, why: str) -> str:
        """Take a ticket away whose parcel is lost; why, and whether it was at work."""
        begun = self.tickets.index(ticket) < self.threads and ticket not in self.not_begun
        if begun:
            self.not_begun.update(self.tickets[self.threads :])
        self.tickets.remove(ticket)
        return why if begun else NotBegun(why)


class Dask:
    """Workers may come and go: newcomers get an actor, the calls of those that left are reported as lost."""

    def __init__(self, client: Any, objective: Objective) -> None:
        self._client = client
        self._token, self._payload = objective.token, to_payload(objective)
        self._seats: dict[str, _Seat] = {}
        self._stuck: set[str] = set()  # workers that hang and could not be restarted
        self._replies: queue.SimpleQueue[tuple[int, list[Reply] | str | _Lost]] = queue.SimpleQueue()
        self._counted = 0.0
        self._count()
        with contextlib.suppress(TimeoutError):  # those that are there get ready
            get_ready: Any = wait
            get_ready([seat.coming for seat in self._seats.values()], timeout=_SECONDS_TO_BEGIN)
        self._count()

    in_hand = 1

    def slots(self) -> int:
        """Threads that are ready now."""
        if time.monotonic() - self._counted > _SECONDS_BETWEEN_COUNTS:
            self._count()
        return sum(seat.threads for seat in self._seats.values() if seat.actor is not None)

    def _count(self) -> None:
        """See who is there."""
        there: dict[str, int] = self._client.nthreads()
        for address in [a for a in self._seats if a not in there]:
            self._lose(address, "left")
        for address, threads in there.items():
            if address not in self._seats and address not in self._stuck:
                with contextlib.suppress(Exception):  # it may leave again this moment: the next count will tell
                    payload = self._client.scatter(self._payload, workers=[address], hash=False)
                    coming = self._client.submit(
                        Bench, self._token, payload, threads, actor=True, workers=[address], pure=False
                    )
                    self._seats[address] = _Seat(threads, coming)
        for address, seat in list(self._seats.items()):
            if seat.actor is None and seat.coming.done():
                try:
                    seat.actor = seat.coming.result()
                except Exception:
                    self._lose(address, "could not begin")
        self._counted = time.monotonic() if any(s.actor for s in self._seats.values()) else 0.0

    def start(self, ticket: int, tasks: list[Task], avoid: Collection[Any]) -> Any:
        """Send a parcel to the worker with the least to do, another than those to avoid if there are others."""
        calls = pickle.dumps(calls_of(tasks), pickle.HIGHEST_PROTOCOL)
        ready = {a: len(s.tickets) / s.threads for a, s in self._seats.items() if s.actor is not None}
        others = {a: load for a, load in ready.items() if a not in avoid} or ready
        for address, load in sorted(others.items(), key=itemgetter(1)):
            seat = self._seats[address]
            if seat.coming.status != "finished":  # the worker is gone
                self._lose(address, "left")
            elif load < self.in_hand:
                coming = self._send(ticket, seat.actor, calls)
                asyncio.run_coroutine_threadsafe(coming, self._client.loop.asyncio_loop)
                seat.tickets.append(ticket)
                return address
        return None

    async def _send(self, ticket: int, actor: Any, calls: bytes) -> None:
        """In the client's thread."""
        try:
            self._replies.put((ticket, pickle.loads(await actor.perform(calls))))
        except Exception as error:
            self._replies.put((ticket, f"the worker failed ({described(error)})"))

    def collect(self, seconds: float) -> list[tuple[int, list[Reply] | str]]:
        """Replies, or why there are none, as soon as there are any, or nothing after so many seconds."""
        replies: dict[int, list[Reply] | str] = {}
        with contextlib.suppress(queue.Empty):
            while True:
                ticket, reply = self._replies.get(timeout=0.0 if replies else max(0.0, seconds))
                for seat in self._seats.values():
                    if ticket in seat.tickets:
                        if isinstance(reply, str):
                            replies[ticket] = seat.lose(ticket, reply)
                        elif isinstance(reply, list):
                            seat.tickets.remove(ticket)
                            replies[ticket] = reply
                        break
                else:
                    if isinstance(reply, _Lost):
                        replies[ticket] = reply.why
        return list(replies.items())

    def abandon(self, ticket: int) -> None:
        """Have the worker that hangs restarted by its nanny; the other calls on it are lost with it."""
        for address, seat in list(self._seats.items()):
            if ticket in seat.tickets:
                seat.tickets.remove(ticket)
                self._lose(address, "was restarted")
                self._stuck.add(address)
                threading.Thread(target=self._restart, args=(address,), daemon=True).start()

    def _restart(self, address: str) -> None:
        with contextlib.suppress(Exception):  # no nanny: it stays among the stuck ones
            self._client.restart_workers([address], timeout=_SECONDS_TO_RESTART, raise_for_error=False)

    def _lose(self, address: str, how: str) -> None:
        seat = self._seats.pop(address)
        for ticket in list(seat.tickets):
            self._replies.put((ticket, _Lost(seat.lose(ticket, f"the worker at {address} {how}"))))

    def close(self) -> None:
        """Let the actors go. The cluster is the user's."""
        self._seats.clear()


class _Lost(NamedTuple):
    """Why a call is lost with its worker."""

    why: str
