"""A compiled simulator as objective: ``python examples/program/run.py [FOLDER]``.

Compiles simulate.c, minimises its cost over both service rates with two processes, keeps the run in a store, shows it.
The optimum of the long run is rate_i = 1 + 1 / sqrt(price_i), here (2.41, 2.12): an M/M/1 queue with arrivals at rate 1
keeps a customer 1 / (rate - 1).
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent


def main() -> None:
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="poem-cma-"))
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, "-O2", "-o", folder / "simulate", HERE / "simulate.c", "-lm"], check=True)
    poem_cma = pathlib.Path(sys.executable).with_name("poem-cma")
    subprocess.run(
        [poem_cma, "minimize", "--command", "./simulate {x} {seed}", "--x0", "3,3", "--bounds", "1.1:6",
         "--budget", "600", "--workers", "2", "--timeout", "10", "--seed", "1", "--store", "run.db"],
        cwd=folder, check=True,
    )  # fmt: skip
    subprocess.run([poem_cma, "show", "run.db"], cwd=folder, check=True)
    print(f"the store is {folder / 'run.db'}")


if __name__ == "__main__":
    main()
