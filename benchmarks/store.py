"""What a store costs: ``python benchmarks/store.py [--calls 1000000]``.

1. The same run with and without a store, in turns, with an objective that takes 10 ms: the share that the store adds,
   of the time on the clock and of the processor.
2. A store with 10^6 calls, written by a run of large batches: its size, the time to open it, to look at it
   (`poem-cma show`, the whole command) and to export it.

Prints both, and writes results/store.json.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np

import poem_cma as pc

CALLS = 1000


def busy(x: np.ndarray, i: int) -> float:
    """Ten milliseconds of waiting, as for a program."""
    time.sleep(0.01)
    return float(np.abs(x - 0.01 * i).sum())


def draw(rng: np.random.Generator) -> int:
    return int(rng.integers(100))


def rows(X: np.ndarray, i: np.ndarray) -> np.ndarray:
    return np.abs(X - 0.01 * i[:, None]).sum(axis=1)


def run(fun, store, budget: int = 0, d: int = 100, **more) -> pc.Result:
    return pc.minimize(
        fun, np.zeros(d), sample=draw, method="poem", budget=budget or CALLS, evaluate=0, seed=0, store=store, **more
    )


def timed(fun, store) -> np.ndarray:
    """Seconds on the clock, and of the processor."""
    started = time.perf_counter(), time.process_time()
    run(fun, store)
    return np.array([time.perf_counter() - started[0], time.process_time() - started[1]])


def cost_at_ten_milliseconds(folder: pathlib.Path, rounds: int) -> tuple[float, float]:
    """What a store adds to the time of the run, and the processor time that it takes as a share of it: medians."""
    added = []
    for n in range(rounds):
        plain, stored = timed(busy, None), timed(busy, folder / f"{n}.db")
        added.append((stored - plain) / plain[0])
    clock, processor = np.median(np.array(added), axis=0)
    return float(clock), float(processor)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="poem-cma-"))
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} at the start")
    clock, processor = cost_at_ten_milliseconds(folder, arguments.rounds)
    table: dict[str, float] = {"share_at_10_ms": clock, "processor_share_at_10_ms": processor}
    print(
        f"with an objective of 10 ms a store adds {100 * clock:.1f}% to the time of a run of {CALLS} calls, "
        f"{100 * processor:.1f}% of it processor time",
        flush=True,
    )

    store = folder / "large.db"
    large = {"budget": arguments.calls, "d": 10, "vectorized": "rows", "batch": 500}
    run(rows, store, **large)
    table["megabytes"] = store.stat().st_size / 1e6
    opened, shown, exported = [], [], []
    poem_cma = str(pathlib.Path(sys.executable).with_name("poem-cma"))
    for _ in range(arguments.rounds):
        started = time.perf_counter()
        run(rows, store, **large)  # it is finished: this opens it and returns the result
        opened.append(time.perf_counter() - started)
        started, used = time.perf_counter(), os.times().children_user + os.times().children_system
        subprocess.run([poem_cma, "show", str(store)], check=True, stdout=subprocess.DEVNULL)
        shown.append(time.perf_counter() - started)
        processor_of_show = os.times().children_user + os.times().children_system - used
    started = time.perf_counter()
    subprocess.run(
        [poem_cma, "export", str(store), "--out", str(folder / "large.csv")], check=True, capture_output=True
    )
    exported.append(time.perf_counter() - started)
    table |= {
        "open_s": float(np.median(opened)),
        "show_s": float(np.median(shown)),
        "show_processor_s": processor_of_show,
        "export_s": exported[0],
    }
    print(
        f"{arguments.calls} calls: {table['megabytes']:.0f} MB, opened in {table['open_s']:.2f} s, shown in "
        f"{table['show_s']:.2f} s (the whole command; {processor_of_show:.2f} s of processor time), exported as CSV in "
        f"{table['export_s']:.1f} s"
    )
    shutil.rmtree(folder)
    place = pathlib.Path("results")
    place.mkdir(exist_ok=True)
    (place / "store.json").write_text(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
