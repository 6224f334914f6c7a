"""Do the threads of BLAS help? The same runs with one thread and with two, each in a process of its own.

    python benchmarks/threads.py

Printed are seconds on the clock and seconds of processor time: where the second is larger than the first, threads were
busy; where the first did not fall, for nothing.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

WORK = """
import sys, time
import numpy as np
import poem_cma as pc
name = sys.argv[1]
f = lambda x: float(np.abs(x[:100]).sum())
runs = {
    "POEM, d = 112": lambda: pc.minimize(f, np.ones(112), method="poem", budget=20_000, seed=0),
    "POEM, d = 1,000,000": lambda: pc.minimize(f, np.ones(10**6), method="poem", budget=60, seed=0),
    "POEM-CMA, d = 800": lambda: pc.minimize(
        f, np.ones(800), method=pc.methods.poem_cma(samples=1600), budget=6000, seed=0),
    "auto, d = 112": lambda: pc.minimize(f, np.ones(112), budget=10_000, seed=0),
}
start, busy = time.perf_counter(), time.process_time()
runs[name]()
print(time.perf_counter() - start, time.process_time() - busy)
"""


def main() -> None:
    """Measure and print."""
    rows = []
    print(f"{'run':24}{'threads':>8}{'clock s':>9}{'busy s':>8}")
    for name in ("POEM, d = 112", "POEM, d = 1,000,000", "POEM-CMA, d = 800", "auto, d = 112"):
        for threads in (1, 2):
            names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
            env = os.environ | dict.fromkeys(names, str(threads))
            done = subprocess.run(
                [sys.executable, "-c", WORK, name], env=env, capture_output=True, text=True, check=True
            )
            clock, busy = map(float, done.stdout.split())
            rows.append({"run": name, "threads": threads, "clock_s": clock, "busy_s": busy})
            print(f"{name:24}{threads:>8}{clock:>9.2f}{busy:>8.2f}", flush=True)
    place = pathlib.Path("results")
    place.mkdir(exist_ok=True)
    (place / "threads.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
