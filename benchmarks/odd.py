"""`auto` on random problems that nobody would choose, beside POEM: how often is it behind?

    python benchmarks/odd.py [--problems 400] [--budget 2000] [--first 0] [--processes 2]

The problems are those of `tests/odd_problems.py`. Printed are those on which `auto` ends above x_0 by more than a
fiftieth, or has left more than a quarter of the way to where POEM ended; then how many there are, and on how many it is
the other way round. Both have the same number of calls, and neither is told anything.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import pathlib
import sys
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests"))
from odd_problems import odd_problem

WORSE, BEHIND = 0.02, 0.25


def compare(number: int, budget: int) -> dict[str, float | str]:
    """The mean losses at x_0 and at the results, without the offset."""
    warnings.simplefilter("ignore")
    row: dict[str, float | str] = {"problem": str(odd_problem(number))}
    row["x0"] = odd_problem(number).mean(odd_problem(number).x0)
    for method in ("auto", "poem"):
        problem = odd_problem(number)
        row[method] = problem.mean(problem.solve(method, budget).x)
    return row


def is_behind(one: float, other: float, x0: float) -> bool:
    """Whether one is far behind the other, which has come some way."""
    return other < x0 * (1.0 - WORSE) and one - other > BEHIND * (x0 - other)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--problems", type=int, default=400)
    parser.add_argument("--budget", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    numbers = range(arguments.first, arguments.first + arguments.problems)
    with concurrent.futures.ProcessPoolExecutor(arguments.processes) as pool:
        rows = list(pool.map(compare, numbers, [arguments.budget] * len(numbers), chunksize=8))
    worse = [row for row in rows if row["auto"] > row["x0"] * (1.0 + WORSE)]
    behind = [row for row in rows if row not in worse and is_behind(row["auto"], row["poem"], row["x0"])]
    ahead = [row for row in rows if is_behind(row["poem"], row["auto"], row["x0"])]
    poem_worse = [row for row in rows if row["poem"] > row["x0"] * (1.0 + WORSE)]
    for title, found in (("above x0", worse), ("behind POEM", behind)):
        for row in found:
            print(f"{title}: {row['problem']}\n    x0 {row['x0']:.4g}, auto {row['auto']:.4g}, poem {row['poem']:.4g}")
    print(f"{len(rows)} problems, {arguments.budget} calls")
    print(f"auto ends above x0 on {len(worse)}, POEM on {len(poem_worse)}")
    print(f"auto is far behind POEM on {len(behind)} others, and POEM far behind auto on {len(ahead)}")
    place = pathlib.Path("results")
    place.mkdir(exist_ok=True)
    (place / "odd.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
