"""A run that is killed again and again: ``python killed.py FOLDER KILLS WORKERS AHEAD``. Prints a line of JSON.

Every round forks this process, which has everything imported, lets the child go on with the run, and kills it with
SIGKILL at a random moment: after a random number of calls, so that the speed of the machine does not matter, and a
random part of a call. Calls are written down by the objective itself.
"""

from __future__ import annotations

import json
import os
import pathlib
import random
import signal
import sys
import time

import numpy as np

import poem_cma as pc
from poem_cma.store import store as writer

FOLDER, KILLS, WORKERS, AHEAD = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
BUDGET = 1500 if WORKERS else 5000
BYTES_A_CALL = 51  # of a line in the list of calls, about
writer.CALLS_BETWEEN_SNAPSHOTS = 300  # many snapshots, so that kills hit them


def objective(x: np.ndarray, i: int) -> float:
    with open(FOLDER / "calls", "ab", buffering=0) as file:
        file.write(f"{x.tobytes().hex()} {i}\n".encode())
    time.sleep(0.0005)
    if i % 13 == 3:
        raise RuntimeError("a bad sample")
    return float(abs(x - 0.01 * i).sum())


def draw(rng: np.random.Generator) -> int:
    return int(rng.integers(50))


def minimize(store: pathlib.Path | None, workers: int | None) -> pc.Result:
    policy = None if workers is None else pc.Workers(workers, retries=0)
    return pc.minimize(
        objective, np.zeros(3), sample=draw, domain=pc.Ball(1.0), budget=BUDGET, seed=1, batch=2, store=store,
        workers=policy, ahead=AHEAD,
    )  # fmt: skip


def outcome(result: pc.Result) -> list[object]:
    history = [result.history[name].tobytes().hex() for name in result.history]
    return [result.x.tobytes().hex(), result.fun, result.nfev, result.failures, result.message, history]


def wait_for_calls(child: int, count: int) -> None:
    """Until the child has made so many calls, or has ended."""
    file = FOLDER / "calls"
    until = (file.stat().st_size if file.exists() else 0) + count * BYTES_A_CALL
    while count and (file.stat().st_size if file.exists() else 0) < until:
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return
        time.sleep(0.0005)


def main() -> None:
    whole = outcome(minimize(None, None))
    calls = (FOLDER / "calls").read_text().splitlines()
    (FOLDER / "calls").unlink()
    store, workers = FOLDER / "run.db", WORKERS or None
    moments = random.Random(5)
    kills = 0
    while kills < KILLS:
        child = os.fork()
        if not child:
            minimize(store, workers)
            os._exit(0)
        wait_for_calls(child, round(moments.uniform(0.0, 1.6 * BUDGET / KILLS)))
        time.sleep(moments.uniform(0.0, 0.003))
        os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
        if os.WIFEXITED(status):
            break  # it ended before the last kill: there was nothing left to kill
        kills += 1
    end = outcome(minimize(store, workers))
    made = (FOLDER / "calls").read_text().splitlines()
    print(json.dumps({"same": end == whole, "kills": kills, "made": len(made), "needed": len(calls)}))  # noqa: T201


if __name__ == "__main__":
    main()
