"""How workers scale, and what the driver costs: ``python benchmarks/workers.py [--kinds threads,processes,dask,ray]``.

The objective sleeps 20 ms. Speed-up is calls x 20 ms over the time taken, from the first tenth of the calls on, so that
starting the workers does not count. The driver's cost is the processor time of this process for each call. With Dask
the scheduler runs in a process of its own. Prints a table and writes results/workers.json.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest import mock

import numpy as np

import poem_cma as pc

SLEEP = 0.02
D = 20


def sleeps(x: np.ndarray) -> float:
    time.sleep(SLEEP)
    return float(np.abs(x - 0.3).sum())


def quick(x: np.ndarray) -> float:
    return float(np.abs(x - 0.3).sum())


def measure(fun: Any, workers: Any, batch: int, calls: int) -> tuple[float, float]:
    """Seconds and processor seconds of the driver, for each call, after a tenth of the calls."""
    marks: list[tuple[int, float, float]] = []
    tell = pc.Optimizer.tell

    def noting(self: pc.Optimizer, *arguments: Any) -> None:
        tell(self, *arguments)
        if (not marks and self.nfev >= calls // 10) or self.done:
            marks.append((self.nfev, time.perf_counter(), time.process_time()))

    with mock.patch.object(pc.Optimizer, "tell", noting):  # a callback would cost more than what is measured
        pc.minimize(
            fun, np.zeros(D), method="poem", budget=calls, evaluate=0, seed=0, batch=batch, workers=workers
        )  # fmt: skip
    first, last = marks[0], marks[-1]
    done = last[0] - first[0]
    return (last[1] - first[1]) / done, (last[2] - first[2]) / done


@contextlib.contextmanager
def threads(count: int) -> Iterator[Any]:
    with ThreadPoolExecutor(count) as executor:
        yield executor


@contextlib.contextmanager
def processes(count: int) -> Iterator[Any]:
    yield count


@contextlib.contextmanager
def dask(count: int) -> Iterator[Any]:
    from distributed import Client

    def start(*words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", *words, "--no-dashboard"]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)

    port = 20_000 + os.getpid() % 20_000
    address = f"tcp://127.0.0.1:{port}"
    started = [start("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port))]
    started.append(start("distributed.cli.dask_worker", address, "--nworkers", str(count), "--nthreads", "1"))
    try:
        with Client(address, timeout=60) as client:
            client.wait_for_workers(count, timeout=120)
            yield client
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextlib.contextmanager
def ray(count: int) -> Iterator[Any]:
    import ray as module

    module.init("local", num_cpus=count, include_dashboard=False, log_to_driver=False, _node_ip_address="127.0.0.1")
    try:
        yield module
    finally:
        module.shutdown()


def seconds_to_end() -> float:
    """How long a run with eight processes that all sleep takes to end after SIGTERM."""
    code = (
        "import time, numpy as np, poem_cma as pc\n"
        "def f(x):\n    print('on', flush=True)\n    time.sleep(600)\n"
        "if __name__ == '__main__':\n    pc.minimize(f, np.zeros(4), method='poem', budget=100, batch=4, workers=8)\n"
    )
    path = pathlib.Path("results") / "_ends.py"
    path.write_text(code)
    process = subprocess.Popen([sys.executable, str(path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    for _ in range(8):
        process.stdout.readline()
    sent = time.perf_counter()
    process.terminate()
    process.wait()
    path.unlink()
    return time.perf_counter() - sent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kinds", default="threads,processes,dask,ray")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    pathlib.Path("results").mkdir(exist_ok=True)
    rows = []
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} processors, load {load:.1f} at the start; medians of {arguments.rounds} rounds")
    print(
        f"{'kind':>10} {'workers':>8} {'batch':>6} {'speed-up':>9} {'share':>6} {'driver us/call':>15} "
        f"{'us/call, no work':>17}"
    )
    for kind in arguments.kinds.split(","):
        for count in {"threads": (2, 4, 8, 16), "processes": (2, 4, 8, 16)}.get(kind, (8,)):
            with globals()[kind](count) as workers:
                for batch in (count // 2, 2 * count):
                    taken = [measure(sleeps, workers, batch, 80 * count) for _ in range(arguments.rounds)]
                    idle = [measure(quick, workers, batch, 2000)[0] for _ in range(arguments.rounds)]
                    seconds, cost = np.median(np.array(taken), axis=0)
                    row = {
                        "kind": kind, "workers": count, "batch": batch, "speed_up": SLEEP / seconds,
                        "driver_us": 1e6 * cost, "no_work_us": 1e6 * float(np.median(idle)),
                    }  # fmt: skip
                    rows.append(row)
                    print(
                        f"{kind:>10} {count:>8} {batch:>6} {row['speed_up']:>9.2f} {row['speed_up'] / count:>6.2f} "
                        f"{row['driver_us']:>15.0f} {row['no_work_us']:>17.0f}",
                        flush=True,
                    )
    end = sorted(seconds_to_end() for _ in range(arguments.rounds))[arguments.rounds // 2]
    print(f"a run with 8 processes ends {end:.2f} s after SIGTERM")
    table = {"processors": os.cpu_count(), "load": load, "rows": rows, "seconds_to_end": end}
    (pathlib.Path("results") / "workers.json").write_text(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
