"""Runs on a real Dask cluster of processes: ``python on_dask.py FOLDER``. Prints a line of JSON."""

from __future__ import annotations

import json
import logging
import os
import pathlib
import signal
import sys
import threading
import time

import numpy as np
from distributed import Client, LocalCluster
from runs import Heavy, bits, flaky, moody, mortal, run, slow

import poem_cma as pc
from poem_cma.store import View

MARKS = pathlib.Path(os.environ["POEM_CMA_TEST_FOLDER"])


def marking(x: np.ndarray, i: int) -> float:
    """Says in which process it is. A process's first call takes long, so that it is under way when it is killed."""
    mark = MARKS / f"worker-{os.getpid()}"
    first = not mark.exists()
    mark.touch()
    if first:
        time.sleep(3.0)
    return slow(x, i)


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    report: dict[str, object] = {}
    with LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=None) as cluster, Client(cluster) as client:
        report["same"] = bits(run(flaky, batch=4, workers=pc.Workers(client, retries=0))) == bits(run(flaky, batch=4))

        # Much data travels once to each worker: it is unpacked once in each process.
        report["heavy"] = bits(run(Heavy(), batch=4, workers=client)) == bits(run(batch=4))
        loads = [path.read_text() for path in MARKS.glob("load-*")]
        report["once"] = 1 <= len(loads) == len(set(loads)) <= 2

        # One worker is killed while it is at work, and one is added in mid-run.
        def disturb() -> None:
            victim = cluster.workers[0].process.pid
            while not (MARKS / f"worker-{victim}").exists():
                time.sleep(0.05)
            os.kill(victim, signal.SIGKILL)
            cluster.scale(3)

        threading.Thread(target=disturb, daemon=True).start()
        result = run(marking, budget=600, batch=4, workers=client, store=folder / "killed.db")
        report["killed"] = bits(result) == bits(run(budget=600, batch=4))
        with View(folder / "killed.db") as view:
            report["lost"] = sum("the worker" in text for *_, text in view.failures())
        report["workers"] = len(client.nthreads())

        # Workers that raise, die and hang.
        result = run(moody, budget=60, batch=2, workers=pc.Workers(client, timeout=3.0, retries=20))
        report["moody"] = bits(result) == bits(run(budget=60, batch=2))

        # Workers that die with other calls at hand.
        result = run(mortal, budget=60, ahead=7, workers=pc.Workers(client, retries=20))
        report["mortal"] = bits(result) == bits(run(budget=60, ahead=7))
        report["deaths"] = len(list(MARKS.glob("mortal-*")))

        # The cluster shrinks to nothing, and comes back.
        heard: list[str] = []
        handler = logging.Handler()
        handler.emit = lambda record: heard.append(record.getMessage())  # type: ignore[method-assign]
        logging.getLogger("poem_cma").addHandler(handler)

        def leave() -> None:
            time.sleep(0.5)
            cluster.scale(0)
            while not any("no workers" in line for line in heard):
                time.sleep(0.1)
            cluster.scale(2)

        threading.Thread(target=leave, daemon=True).start()
        result = run(slow, budget=600, batch=4, workers=pc.Workers(client, patience=120.0, retries=6))
        report["paused"] = bits(result) == bits(run(slow, budget=600, batch=4))
        report["heard"] = [line.split(" ")[0] for line in heard]
    print(json.dumps(report))  # noqa: T201


if __name__ == "__main__":
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    main()
