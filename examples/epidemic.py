"""Calibrate a stochastic epidemic to data: the influenza in an English boarding school, 1978.

The number of boys in bed is known for fourteen days, of 763 boys. The simulator follows every boy, and its random
numbers are a function of xi. Two settings that are compared on the same xi have common random numbers. The counts are
whole numbers, so the loss has steps. POEM takes differences over a distance and works in spite of them.
Needs: pip install "poem-cma[gallery]"
"""

from functools import partial

import _others as others
import _show as show
import numpy as np
from scipy.optimize import minimize

import poem_cma as pc

IN_BED = np.array([3, 8, 26, 76, 225, 298, 258, 233, 189, 128, 68, 29, 14, 4])
BOYS, A_DAY = 763, 4  # four looks a day
START = np.log([1.0, 0.3, 3.0])  # infections and recoveries a day, ill boys at the beginning


def simulate(x: np.ndarray, seed: int) -> np.ndarray:
    """How many are ill, day by day."""
    infect, recover, first = np.exp(np.clip(x, -6.0, 6.0))
    luck = np.random.default_rng(seed).random((A_DAY * len(IN_BED), BOYS))
    ill, course = np.arange(BOYS) < max(1, round(first)), []
    well = ~ill
    for step, u in enumerate(luck):
        if step % A_DAY == 0:
            course.append(ill.sum())
        caught = well & (u < 1.0 - np.exp(-infect * ill.sum() / BOYS / A_DAY))
        cured = ill & (u < 1.0 - np.exp(-recover / A_DAY))
        well, ill = well & ~caught, (ill | caught) & ~cured
    return np.array(course)


def error(x: np.ndarray, seed: int) -> float:
    """F(x; xi): boys a day between the simulation and the data."""
    return float(np.abs(simulate(x, seed) - IN_BED).mean())


def draw(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31))


def ours(budget, seed, method="poem", paired=True):
    settings = {"method": method, "paired": paired, "budget": budget, "evaluate": 0, "seed": seed}
    return pc.minimize(error, START, sample=draw, **settings).x


def cma_es(budget, seed):
    return others.cma_es(lambda X, rng: [error(x, draw(rng)) for x in X], START, 0.3, budget, seed)


def nelder_mead(budget, seed):
    """On the average of ten epidemics drawn once, as is usual."""
    ten = np.random.default_rng(seed).integers(2**31, size=10)
    options = {"maxfev": budget // len(ten), "initial_simplex": START + 0.3 * np.eye(4, 3)}
    return minimize(lambda x: np.mean([error(x, n) for n in ten]), START, method="Nelder-Mead", options=options).x


METHODS = {
    "POEM, common random numbers": ours,
    "POEM, without them": partial(ours, paired=False),
    "auto, common random numbers": partial(ours, method="auto"),
    "CMA-ES": cma_es,
    "Nelder-Mead, 10 epidemics": nelder_mead,
}


def main() -> None:
    chosen = show.options(__doc__)
    budget, seeds, tests = (60, 2, 10) if chosen.quick else (400, 5, 200)

    def test(x):
        return np.mean([error(x, 10**6 + n) for n in range(tests)])

    found = {name: [method(budget, seed) for seed in range(seeds)] for name, method in METHODS.items()}
    errors = {name: [test(x) for x in points] for name, points in found.items()}
    about = f"Error in {tests} new epidemics, in boys a day, after {budget} simulated epidemics; median and range over "
    about += f"{seeds} seeds; {test(START):.1f} at the start"
    rows = [[name, show.spread(values, 1)] for name, values in errors.items()]
    show.table(chosen, about, ["method", "error in boys a day"], rows)
    figure, (left, right) = show.picture(10.5, 3.6, width_ratios=[1.0, 1.1])
    best = found["POEM, common random numbers"][0]
    left.plot(np.transpose([simulate(best, n) for n in range(30)]), color=show.COLOURS[0], alpha=0.25, lw=1)
    left.plot(IN_BED, "ko", ms=4, label="data")
    left.set(xlabel="day", ylabel="ill", title="Data, and 30 calibrated epidemics")
    show.strips(right, errors)
    right.set(xlabel="error in boys a day (less is better)", title=f"After {budget} simulated epidemics")
    show.save(chosen, figure)


if __name__ == "__main__":
    main()
