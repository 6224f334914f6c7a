"""What each part of `auto` contributes: relative scores with one part switched off at a time.

    python benchmarks/ablation.py [--suites rough,policies] [--losses hinge-mushrooms,...] [--seeds 3] [--calls 2000]

A part is switched off by replacing a constant or a function of `poem_cma.auto` while the runs are made. The score of a
point is (f(x) - best) / (f(x0) - best). `best` is the lowest value of all runs of the table, for losses the certified
least value. Printed are the means over problems of the medians over seeds, cut at 2, and on how many problems the
score without the part is higher or lower by more than 0.05. Of the quadratics of the suite `rough` four stand for all.
Writes results/ablation.json.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from poem_cma import problems
from poem_cma.auto import averages, axes, gate, judge, progress, scan
from poem_cma.auto.far import generation, noise
from poem_cma.auto.near import phase, replay, walk
from poem_cma.auto.request import first_unit
from poem_cma.problems.suites import black_boxes, load_black_box

LOSSES = "hinge-mushrooms,logistic-a9a,absolute-rank5-of-100,cvar-portfolio"
QUADRATICS = ("quadratic-1-d5-10pct-on", "quadratic-100-d20-1pct-inside", "quadratic-100-d20-10pct-near",
              "quadratic-1e4-d20-1pct-on")  # fmt: skip
WORST, LEVEL = 2.0, 0.05
DECIDE, BEGIN = gate.decide, judge.begin
Replacement = tuple[Any, str, Any]


def _first_length(now: scan.Scan, run: Any, *_: Any) -> scan.Scan:
    """A scan that believes in the unit of x0."""
    return now._replace(h=min(first_unit(now.centre), 0.5 * run.domain.diameter), over=True)


def _always(near: bool) -> Callable[..., gate.Gate]:
    return lambda *told: DECIDE(*told)._replace(near=near)


def _all_places(steps: Any, _: Any) -> list[int]:
    """A walk whose places are all evaluated at once."""
    return [k for k, value in enumerate(steps.known) if np.isnan(value)]


def _as_drawn(source: Callable[..., Any]) -> Callable[..., Any]:
    """A generation that uses values as if points had not been moved inside the domain; no step is centred then."""

    def advance(far: Any, run: Any, draws: Any, address: int, values: Any) -> Any:
        wanted = far.x + far.sigma * far.shape.stretch(generation._samples(far, draws, address))
        with patch.object(generation, "_points", lambda *_: wanted):
            return source(far, run, draws, address, values)

    return advance


#: What stands in the place of what. A name that several modules have imported is replaced in each of them.
PARTS: dict[str, list[Replacement]] = {
    "scan": [(scan, "update", _first_length)],
    "gate, always near": [(gate, "decide", _always(True))],
    "gate, always far": [(gate, "decide", _always(False))],
    "curvature": [(generation, "bend", lambda shape, sums, *_: (shape, sums))],
    "noise rule": [(noise, "RULES", 2.0)],
    "moved points at bounds": [(generation, "advance", _as_drawn(generation.advance))],
    "averages": [(averages, "add", lambda kept, x: kept._replace(t=kept.t + 1, points=0 * kept.points + x))],
    "judge": [(judge, "SHARE", 0.0), (judge, "begin", lambda points, most: BEGIN(points[:1], most))],
    "progress": [(progress, "due", lambda *_: False)],
    "replay": [(replay, "SHARE", 0.0)],
    "subspace": [(phase, "seen", lambda memory, *_: memory)],
    "axes": [(axes, "affordable", lambda *_: False)],
    "bisection": [(walk, "places", _all_places), (phase, "places", _all_places)],
}


@contextlib.contextmanager
def without(part: str) -> Iterator[None]:
    """`auto` without one part; with all of them if it has no name."""
    with contextlib.ExitStack() as stack:
        for module, name, other in PARTS.get(part, []):
            stack.enter_context(patch.object(module, name, other))
        yield


def ends(name: str, calls: int, seeds: int) -> tuple[str, float, dict[str, list[float]]]:
    """The value at x0, and the values at the results of all runs, each minus the least value if that is known."""
    warnings.simplefilter("ignore")
    values: dict[str, list[float]] = {}
    problem: Any = problems.load(name) if name in problems.names() else load_black_box(name)
    value, start = (problem.gap, 1.0) if name in problems.names() else (problem.judge, problem.judge(problem.x0))
    for part in ("", *PARTS):
        with without(part):
            results = [problem.solve(budget=calls, seed=seed, evaluate=0) for seed in range(seeds)]
        values[part] = [float(value(result.x)) for result in results]
    return name, start, values


def scores(name: str, start: float, values: dict[str, list[float]]) -> dict[str, float]:
    """The median score of every variant."""
    best = 0.0 if name in problems.names() else min(min(found) for found in values.values())
    gap = start - best or 1.0
    return {part: min(float(np.median((np.array(found) - best) / gap)), WORST) for part, found in values.items()}


def chosen(suites: str, losses: str) -> list[str]:
    """The names of the problems."""
    found = [name for suite in filter(None, suites.split(",")) for name in black_boxes(suite)]
    found = [name for name in found if not name.startswith("quadratic-") or name in QUADRATICS]
    return [*found, *filter(None, losses.split(","))]


def main() -> None:
    """Run, print, and keep the scores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suites", default="rough,policies")
    parser.add_argument("--losses", default=LOSSES)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--processes", type=int, default=1)
    asked = parser.parse_args()
    names = chosen(asked.suites, asked.losses)
    with ProcessPoolExecutor(asked.processes) as pool:
        made = pool.map(partial(ends, calls=asked.calls, seeds=asked.seeds), names)
        table = {name: scores(name, start, values) for name, start, values in made}
    print(f"{len(table)} problems, {asked.calls:,} evaluations, {asked.seeds} seeds\n")
    print("| without | mean of medians | higher on | lower on |\n|---|---|---|---|")
    whole = np.array([row[""] for row in table.values()])
    for part in ("", *PARTS):
        column = np.array([row[part] for row in table.values()])
        higher, lower = int((column > whole + LEVEL).sum()), int((column < whole - LEVEL).sum())
        print(f"| {part or '(nothing)'} | {column.mean():.3f} | {higher} | {lower} |")
    Path("results").mkdir(exist_ok=True)
    Path("results/ablation.json").write_text(json.dumps(table, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
