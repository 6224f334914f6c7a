"""Stores and checkpoints as this version of the library writes them, for the tests of later versions.

    python tests/written.py     # writes tests/store/fixtures/VERSION; what a release has written is not written again

Every run is stopped in its middle: a store after 150 calls, of which the last were not told in a snapshot, and a
checkpoint with a probe in flight. One store holds a finished run.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from cases import CASES, Case, D, draw

import poem_cma as pc
from poem_cma.store import store as writer

FIXTURES = Path(__file__).resolve().parent / "store" / "fixtures"
WRITTEN = ("auto near", "auto far", "auto noiseless", "poem-cma")
BUDGET, STOPPED = 300, 150


def file_of(name: str) -> str:
    """What a file is called, after the name of a case."""
    return name.replace(" ", "-")


def run(case: Case, fun: Callable[..., Any], store: Path, budget: int = BUDGET, ahead: int = 0) -> pc.Result:
    """The run of a store, from its beginning or from where it is."""
    settings: dict[str, Any] = {"sample": draw, "method": case.method, "seed": 3, "batch": 1, "ahead": ahead}
    return pc.minimize(fun, np.zeros(D), budget=budget, store=store, **settings)


def optimizer(case: Case) -> pc.Optimizer:
    """The optimiser of a checkpoint, at its beginning."""
    return pc.Optimizer(np.zeros(D), method=case.method, seed=3, budget=BUDGET)


def tell(case: Case, opt: pc.Optimizer, calls: float) -> int:
    """Tell values until there are so many, or to the end; how many were told."""
    before = opt.nfev
    while opt.nfev < calls and (probe := opt.ask()) is not None:
        tell_one(case, opt, probe)
    return opt.nfev - before


def tell_one(case: Case, opt: pc.Optimizer, probe: pc.Probe) -> None:
    """Tell the values of a probe."""
    opt.tell(probe, [case.fun(x, n) for x, n in zip(probe.points, probe.numbers, strict=True)])


def write(folder: Path) -> None:
    """The files of this version."""
    folder.mkdir(parents=True)
    for name in WRITTEN:
        case, calls = CASES[name], 0

        def stopping(x: np.ndarray, n: int, fun: Any = case.fun) -> float:
            nonlocal calls
            calls += 1
            if calls > STOPPED:
                raise KeyboardInterrupt
            value: float = fun(x, n)
            return value

        run(case, stopping, folder / f"{file_of(name)}.db")
        opt = optimizer(case)
        tell(case, opt, STOPPED)
        opt.ask()
        opt.save(folder / f"{file_of(name)}.run")
    run(CASES["auto near"], CASES["auto near"].fun, folder / "finished.db")


if __name__ == "__main__":
    writer.CALLS_BETWEEN_SNAPSHOTS = 100  # so that there are told calls, and calls to be told again
    write(FIXTURES / pc.__version__)
