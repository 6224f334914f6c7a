"""Small problems for the tests, drawn from fixed seeds."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Problem:
    """F(x; xi) with xi an index below n."""

    fun: Callable[[Any, Any], float]
    rows: Callable[[Any, Any], Any]  # F for points (m, d) and one xi each
    full: Callable[[Any], float]
    n: int
    d: int
    lipschitz: float

    def sample(self, rng: np.random.Generator) -> int:
        return int(rng.integers(self.n))


def hinge(d: int = 8, n: int = 200, seed: int = 0) -> Problem:
    """Hinge loss of a linear classifier: convex, kinked, Lipschitz."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, d)) * np.linspace(1.5, 0.3, d)
    y = np.sign(A @ rng.normal(size=d) + 0.1 * rng.normal(size=n))
    return Problem(
        fun=lambda x, i: max(0.0, 1.0 - y[i] * (A[i] @ x)),
        rows=lambda X, i: np.maximum(0.0, 1.0 - y[i] * (A[i] * X).sum(axis=-1)),
        full=lambda x: float(np.maximum(0.0, 1.0 - y * (A @ x)).mean()),
        n=n,
        d=d,
        lipschitz=float(np.sqrt((A**2).sum(axis=1).max())),
    )


def refuses_to_build_without(package: str, module: str, names: int, name: str) -> None:
    """Without an optional package the names of a suite are there, and to build one says what to install."""
    code = (
        f"import sys; sys.modules[{package!r}] = None; from poem_cma.problems.{module} import BLACK_BOXES;"
        f"print(len(BLACK_BOXES)); BLACK_BOXES[{name!r}]()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == str(names)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError")
    assert 'pip install "poem-cma[bench]"' in last
