"""How workers scale, and what the driver costs: ``python benchmarks/workers.py [--kinds threads,processes,dask,ray]``.

The objective sleeps 20 ms. Speed-up is calls x 20 ms over the time taken, from the first tenth of the calls on, so that
starting the workers does not count. The driver's cost is the processor time of this process for each call. With Dask
the scheduler runs in a process of its own.

With `batch="auto"` steps are asked ahead; with a number, all calls of a step are awaited before the next one. Beside
it, on the same workers and in turn with it, stands what they do without a run: the same number of calls a step (four
for each worker beside "auto"), one task for each worker, all of them awaited before the next step; by `map` of the
threads' executor and of multiprocessing's pool, Dask's `map` and `gather`, Ray's tasks. Prints a table and writes
results/workers.json.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
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


def measure(fun: Any, workers: Any, batch: Any, calls: int) -> tuple[float, float]:
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


def sleeps_often(points: list[np.ndarray]) -> list[float]:
    return [sleeps(x) for x in points]


def bare(everywhere: Callable[[list[Any]], Any], count: int, batch: int, calls: int) -> tuple[float, float]:
    """The same as `measure`, of workers without a run."""
    x = np.zeros(D)
    tasks = [[x] * (2 * batch // count)] * count
    everywhere(tasks)
    steps = max(1, calls // (2 * batch))
    wall, processor = time.perf_counter(), time.process_time()
    for _ in range(steps):
        everywhere(tasks)
    done = steps * 2 * batch
    return (time.perf_counter() - wall) / done, (time.process_time() - processor) / done


# The kinds of workers: what `minimize` is given, and what works on tasks without it.


@contextlib.contextmanager
def threads(count: int) -> Iterator[Any]:
    with ThreadPoolExecutor(count) as executor:
        yield executor, lambda tasks: list(executor.map(sleeps_often, tasks))


@contextlib.contextmanager
def processes(count: int) -> Iterator[Any]:
    with multiprocessing.get_context("spawn").Pool(count) as pool:
        yield count, lambda tasks: pool.map(sleeps_often, tasks, chunksize=1)


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
        with Client(address, timeout=60, direct_to_workers=True) as client:
            client.wait_for_workers(count, timeout=120)
            yield client, lambda tasks: client.gather(client.map(sleeps_often, tasks, pure=False))
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextlib.contextmanager
def ray(count: int) -> Iterator[Any]:
    import ray as module

    module.init("local", num_cpus=count, include_dashboard=False, log_to_driver=False, _node_ip_address="127.0.0.1")
    task = module.remote(num_cpus=1)(sleeps_often)
    try:
        yield module, lambda tasks: module.get([task.remote(points) for points in tasks])
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


def compare(kind: str, count: int, batch: Any, workers: Any, everywhere: Any, rounds: int) -> dict[str, Any]:
    """A row of the table: a run and the workers alone in turn, medians."""
    calls = (400 if batch == "auto" else 80) * count
    alone = 2 * count if batch == "auto" else batch
    both = [(measure(sleeps, workers, batch, calls), bare(everywhere, count, alone, 80 * count)) for _ in range(rounds)]
    (seconds, cost), (bare_seconds, bare_cost) = np.median(np.array(both), axis=0)
    idle, _ = measure(quick, workers, batch, 2000)
    return {
        "kind": kind, "workers": count, "batch": batch, "speed_up": SLEEP / seconds, "driver_us": 1e6 * cost,
        "bare_speed_up": SLEEP / bare_seconds, "bare_us": 1e6 * bare_cost,
        "no_work_us": 1e6 * idle, "load": os.getloadavg()[0],
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kinds", default="threads,processes,dask,ray")
    parser.add_argument("--counts", default="", help="how many workers, with commas; by default 2,4,8,16 or 8")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    pathlib.Path("results").mkdir(exist_ok=True)
    rows = []
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} processors, load {load:.1f} at the start; medians of {arguments.rounds} rounds")
    print(
        f"{'':>27} {'with a run':^32} {'the workers alone':^17}\n"
        f"{'kind':>10} {'workers':>8} {'batch':>6} {'speed-up':>9} {'share':>6} {'driver us/call':>15} "
        f"{'share':>6} {'us/call':>10} {'us/call, no work':>17} {'load':>5}"
    )
    for kind in arguments.kinds.split(","):
        counts = (2, 4, 8, 16) if kind in ("threads", "processes") else (8,)
        for count in map(int, arguments.counts.split(",")) if arguments.counts else counts:
            with globals()[kind](count) as (workers, everywhere):
                for batch in ("auto", count // 2, 2 * count, 4 * count):  # all the time; 1, 4 and 8 calls a worker
                    row = compare(kind, count, batch, workers, everywhere, arguments.rounds)
                    rows.append(row)
                    print(
                        f"{kind:>10} {count:>8} {batch:>6} {row['speed_up']:>9.2f} {row['speed_up'] / count:>6.2f} "
                        f"{row['driver_us']:>15.0f} {row['bare_speed_up'] / count:>6.2f} {row['bare_us']:>10.0f} "
                        f"{row['no_work_us']:>17.0f} {row['load']:>5.1f}",
                        flush=True,
                    )
    end = sorted(seconds_to_end() for _ in range(arguments.rounds))[arguments.rounds // 2]
    print(f"a run with 8 processes ends {end:.2f} s after SIGTERM")
    table = {"processors": os.cpu_count(), "load": load, "rows": rows, "seconds_to_end": end}
    (pathlib.Path("results") / "workers.json").write_text(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
