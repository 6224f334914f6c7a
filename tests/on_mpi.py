"""Runs on MPI processes by `mpi4py.futures`: ``mpiexec -n 3 python -m mpi4py.futures on_mpi.py``.

The first process is the driver, the others work. Prints a line of JSON.
"""

from __future__ import annotations

import json
import os
import pathlib

import numpy as np
from mpi4py.futures import MPIPoolExecutor
from runs import P, bits, flaky, run

import poem_cma as pc

MARKS = pathlib.Path(os.environ["POEM_CMA_TEST_FOLDER"])


def marking(x: np.ndarray, i: int) -> float:
    """Says which process it is in."""
    (MARKS / f"process-{os.getpid()}").touch()
    return P.fun(x, i)


def main() -> None:
    with MPIPoolExecutor() as executor:
        same = bits(run(flaky, batch=4, workers=pc.Workers(executor, retries=0))) == bits(run(flaky, batch=4))
        chosen = bits(run(marking, batch="auto", budget=1000, workers=executor)) == bits(run(ahead=3, budget=1000))
        workers = executor.num_workers
    processes = {path.name for path in MARKS.glob("process-*")} - {f"process-{os.getpid()}"}
    print(json.dumps({"same": same, "auto": chosen, "workers": workers, "processes": len(processes)}))  # noqa: T201


if __name__ == "__main__":
    main()
