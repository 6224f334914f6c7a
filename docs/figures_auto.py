"""The pictures of docs/auto.md, drawn from runs. They use the functions that the page defines.

python docs/figures_auto.py [folder]     # docs/images unless another is given; some minutes
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from figures import page
from matplotlib.figure import Figure

import poem_cma as pc
from poem_cma import problems
from poem_cma.problems.suites import load_black_box

HERE = Path(__file__).resolve().parent
BLUE, ORANGE, GREEN, GREY = "#2f6db3", "#d9782d", "#3c8d5a", "#888888"
SEEDS = range(5)
BUDGETS = (300, 1000, 3000, 10000)
#: pycma is told its usual first step.
SIGMA0 = 0.5


class Task:
    """A problem of the arena or of a suite: F, draw, x0, domain, and the share of the first gap that a point leaves."""

    def __init__(self, name: str) -> None:
        self.name = name
        if name in problems.names():
            loss = problems.load(name)
            self.fun: Callable[[Any, Any], float] = lambda x, i: float(loss.fun(x[None], i)[0])
            self.sample, self.x0, self.domain = loss.sample, loss.x0, loss.domain
            self.exact: Callable[[Any], float] = loss.gap
        else:
            box = load_black_box(name)
            self.fun, self.sample, self.x0, self.domain, self.exact = box.fun, box.sample, box.x0, box.domain, box.judge


def bowl(x: Any, xi: Any) -> float:
    """A paraboloid whose minimum is at distance 1 from the origin, with noise that is linear in x."""
    return float(((x - len(x) ** -0.5) ** 2).sum() + 0.1 * (xi @ x))


def shares() -> Figure:
    """p(h) on four functions."""
    share_lower = page("auto.md")["share_lower"]
    hinge, pendulum, rounded = map(Task, ("hinge-mushrooms", "pendulum-features", "rounded-simulator"))
    shown: list[tuple[str, Any, Any, Any, str]] = [
        ("bowl in 10 variables, minimum at distance 1", bowl, np.zeros(10), lambda rng: rng.standard_normal(10), BLUE),
        ("hinge loss of one example (mushrooms)", hinge.fun, hinge.x0, hinge.sample, GREEN),
        ("return of a policy (pendulum-features)", pendulum.fun, pendulum.x0, pendulum.sample, ORANGE),
        ("simulator rounded to 0.01 (rounded-simulator)", rounded.fun, rounded.x0, rounded.sample, GREY),
    ]
    lengths = 10.0 ** np.arange(-3, 3.1, 0.5)
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    axes = figure.subplots()
    for label, fun, x0, draw, colour in shown:
        rng = np.random.default_rng(0)
        p = [share_lower(fun, x0, h, draw, rng, 150) for h in lengths]
        axes.semilogx(lengths, p, "o-", ms=3, label=label, color=colour)
    axes.axhline(0.1, color="black", lw=0.8, ls="--")
    axes.text(lengths[0], 0.11, "1/10", fontsize=8)
    axes.set(xlabel="h", ylabel="p(h)", ylim=(-0.02, 0.7))
    figure.legend(frameon=False, fontsize=8, loc="outside lower center", ncols=2)
    return _plain(figure)


def gates() -> Figure:
    """Near changes against far ones: a loss, where the gate passes, and a simulator that counts, where it does not."""
    changes = page("auto.md")["changes"]
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    shown = (("hinge-mushrooms", "a loss (hinge-mushrooms)", 1.0), ("queue", "a simulator that counts (queue)", 3.0))
    for axes, (name, title, h) in zip(figure.subplots(1, 2), shown, strict=True):
        task = Task(name)
        near, far = changes(task.fun, task.x0, h, task.sample, np.random.default_rng(0), 60)
        r = np.corrcoef(near, far)[0, 1] if near.any() else 0.0
        axes.plot(near, far, "o", ms=4, color=BLUE, alpha=0.7)
        axes.axline((0.0, 0.0), slope=1.0, color="black", lw=0.8, ls="--")
        most = 1.1 * np.abs([near, far]).max()
        axes.set(title=f"{title}\ncorrelation {r:.2f}", xlabel="predicted by near differences", ylabel="change")
        axes.set(xlim=(-most, most), ylim=(-most, most))
        axes.title.set_fontsize(10)
    return _plain(figure)


def ours(task: Task, method: str) -> Callable[[int, int], Any]:
    """The results of `minimize` by budget and seed."""

    def solve(budget: int, seed: int) -> Any:
        return pc.minimize(
            task.fun,
            task.x0,
            sample=task.sample,
            domain=task.domain,
            method=method,
            budget=budget,
            seed=seed,
            evaluate=0,
        ).x

    return solve


def pycma(task: Task) -> Callable[[int, int], Any]:
    """The mean of pycma by budget and seed, with one sample a generation; points are moved into the domain."""
    import cma

    inside = task.domain.project if task.domain is not None else lambda x: x

    def solve(budget: int, seed: int) -> Any:
        rng = np.random.default_rng(seed)
        es = cma.CMAEvolutionStrategy(task.x0, SIGMA0, {"seed": seed + 1, "verbose": -9})
        while es.countevals + es.popsize <= budget:
            X = es.ask()
            xi = task.sample(rng)
            es.tell(X, [task.fun(inside(x), xi) for x in X])
        return inside(es.mean)

    return solve


def scores() -> Figure:
    """Evaluations against score: the share of the first gap that is left."""
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    for axes, name in zip(figure.subplots(1, 2), ("hinge-mushrooms", "pendulum-features"), strict=True):
        task = Task(name)
        players = {"auto": ours(task, "auto"), "POEM": ours(task, "poem"), f"pycma, sigma0 {SIGMA0}": pycma(task)}
        values = {
            label: np.array([[task.exact(solve(budget, seed)) for seed in SEEDS] for budget in BUDGETS])
            for label, solve in players.items()
        }
        start = task.exact(task.x0)
        least = 0.0 if name in problems.names() else min(float(v.min()) for v in values.values())
        for (label, found), colour in zip(values.items(), (BLUE, GREEN, ORANGE), strict=True):
            score = (found - least) / (start - least)
            axes.plot(BUDGETS, np.median(score, axis=1), "o-", ms=4, label=label, color=colour)
            axes.fill_between(BUDGETS, score.min(axis=1), score.max(axis=1), color=colour, alpha=0.15, lw=0)
        axes.set(xscale="log", xlabel="evaluations", ylabel="score", title=name, ylim=(-0.03, 1.1))
        axes.title.set_fontsize(10)
    figure.axes[0].legend(frameon=False, fontsize=8)
    return _plain(figure)


FIGURES = {"auto-scan.png": shares, "auto-gate.png": gates, "auto-scores.png": scores}


def main(folder: Path = HERE / "images") -> None:
    """Draw them."""
    warnings.simplefilter("ignore")
    for name, draw in FIGURES.items():
        draw().savefig(folder / name, dpi=90)
        print(name, f"{(folder / name).stat().st_size / 1000:.0f} kB", flush=True)


def _plain(figure: Figure) -> Figure:
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    return figure


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
