"""Does the unit of F matter on CartPole? Scores of `auto` with the cost divided by a number.

    python benchmarks/agreement.py [--divide 500] [--budget 1000] [--seeds 40]

The cost is minus the number of steps of an episode, so the best value is -500. To measure an earlier version, put the
folder `src` of its tree into PYTHONPATH.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np

from poem_cma import problems

BEST = -500.0


def main() -> None:
    """Print the median score, the quartiles and the worst."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--divide", type=float, default=500.0)
    parser.add_argument("--budget", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=40)
    asked = parser.parse_args()
    whole = problems.load("cartpole")
    divided = replace(whole, fun=lambda x, xi: whole.fun(x, xi) / asked.divide)
    runs = [divided.solve(budget=asked.budget, seed=seed, evaluate=0) for seed in range(asked.seeds)]
    scores = [whole.score(run.x, BEST) for run in runs]
    low, median, high = np.quantile(scores, [0.25, 0.5, 0.75])
    print(f"cost / {asked.divide:g}, {asked.budget:,} evaluations, {asked.seeds} seeds: median {median:.2f}", end="")
    print(f" (quartiles {low:.2f} and {high:.2f}), worst {max(scores):.2f}")


if __name__ == "__main__":
    main()
