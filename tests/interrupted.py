"""A run with workers that start programs of their own, to be ended by signals: ``python interrupted.py STORE``."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

import poem_cma as pc


def objective(x: np.ndarray) -> float:
    if abs(x).max() > 0.0:  # the first call answers, the others wait for a program
        sys.stdout.write("waiting\n")  # in one piece, as two workers may write at a time
        sys.stdout.flush()
        subprocess.run(["sleep", "600"], check=True)
    return 0.0


if __name__ == "__main__":
    result = pc.minimize(objective, np.zeros(2), budget=100, seed=0, workers=2, store=sys.argv[1], batch=2)
    print(result.status, result.message)  # noqa: T201
