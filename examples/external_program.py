"""A program as the objective: a simulator in C.

`./simulate RATE1 RATE2 SEED` (examples/program/simulate.c) prints what two counters in a row cost: the time of 2000
customers, plus the price of fast servers. `poem-cma minimize --command` runs it, one process a call, without a shell,
and gives points that are compared the same customers. The cost in the long run has a formula, so the best rates are
known.
A C compiler is needed, named by CC, or cc. Needs: pip install "poem-cma[gallery]"
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
from functools import partial

import _others as others
import _show as show
import numpy as np
from scipy.optimize import minimize

from poem_cma.external import Program, draw_seed

SOURCE = pathlib.Path(__file__).parent / "program" / "simulate.c"
START, LOW, HIGH = [3.0, 3.0], 1.1, 6.0
BEST = 1.0 + 1.0 / np.sqrt([0.5, 0.8])


def long_run(x: np.ndarray) -> float:
    """The exact cost: each counter is an M/M/1 queue with arrivals at rate 1."""
    return float(sum(1.0 / (np.array(x) - 1.0)) + 0.5 * x[0] + 0.8 * x[1])


def above(x: np.ndarray) -> float:
    return 100.0 * (long_run(x) / long_run(BEST) - 1.0)


def ours(folder: str, budget: int, seed: int) -> list[float]:
    command = [pathlib.Path(sys.executable).with_name("poem-cma"), "minimize", "--command", "./simulate {x} {seed}"]
    command += ["--x0", "3,3", "--bounds", f"{LOW}:{HIGH}", "--budget", str(budget), "--seed", str(seed)]
    done = subprocess.run([*command, "--json"], cwd=folder, check=False, capture_output=True, text=True)
    return json.loads(done.stdout)["x"]  # the exit status is 1 where x is not better than x0


def cma_es(folder: str, budget: int, seed: int) -> np.ndarray:
    def values(X, rng):
        customers = draw_seed(rng)  # the same for a generation
        return [simulate(x, customers) for x in X]

    simulate = Program("./simulate {x} {seed}", folder)
    return others.cma_es(values, START, 0.5, budget, seed, bounds=[LOW, HIGH])


def nelder_mead(folder: str, budget: int, seed: int, fixed: int) -> np.ndarray:
    """SciPy's, on the average over a few seeds drawn once."""
    simulate, rng = Program("./simulate {x} {seed}", folder), np.random.default_rng(seed)
    seeds, settings = [draw_seed(rng) for _ in range(fixed)], {"maxfev": budget // fixed}
    average = lambda x: np.mean([simulate(x, s) for s in seeds])  # noqa: E731
    return minimize(average, START, method="Nelder-Mead", bounds=[(LOW, HIGH)] * 2, options=settings).x


METHODS = {
    "poem-cma minimize --command": ours,
    "CMA-ES": cma_es,
    "Nelder-Mead, 10 seeds": partial(nelder_mead, fixed=10),
    "Nelder-Mead, 1 seed": partial(nelder_mead, fixed=1),
}


def main() -> None:
    chosen = show.options(__doc__)
    budget, seeds = (60, 2) if chosen.quick else (300, 5)
    with tempfile.TemporaryDirectory() as folder:
        compiler = os.environ.get("CC", "cc")
        subprocess.run([compiler, "-O2", "-o", f"{folder}/simulate", SOURCE, "-lm"], check=True)
        found = {name: [run(folder, budget, seed) for seed in range(seeds)] for name, run in METHODS.items()}
    excess = {name: [above(x) for x in points] for name, points in found.items()}
    about = f"Cost in the long run, percent above the best, after {budget} runs of the program; median and range over "
    about += f"{seeds} seeds; {above(START):.3f} at the start"
    rows = [[name, show.spread(values, 4)] for name, values in excess.items()]
    show.table(chosen, about, ["method", "percent above the best"], rows)
    figure, (left, right) = show.picture(10.5, 3.6, width_ratios=[1.0, 1.3])
    for points, colour in zip(found.values(), show.COLOURS, strict=False):
        left.plot(*np.transpose(points), "o", color=colour, ms=6, alpha=0.7, mec="none")
    left.plot(*BEST, "k+", ms=16, mew=1.5)
    left.set(xlabel="rate 1", ylabel="rate 2", title="The rates they return; + is the best")
    show.strips(right, excess)
    right.set(xscale="log", xlabel="cost, percent above the best", title=f"After {budget} runs")
    show.save(chosen, figure)


if __name__ == "__main__":
    main()
