"""The pictures of docs/auto.md and of the pages on how it works, drawn from runs and from the code of these pages.

python docs/figures_auto.py [--only auto-scan.png,...] [folder]     # docs/images unless another is given; two minutes
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from figures import page
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse

import poem_cma as pc
from poem_cma import problems
from poem_cma.problems.suites import load_black_box

HERE = Path(__file__).resolve().parent
BLUE, ORANGE, GREEN, GREY, RED = "#2f6db3", "#d9782d", "#3c8d5a", "#888888", "#b42318"
SEEDS = range(5)
BUDGETS = (300, 1000, 3000, 10000)
#: pycma is told its usual first step.
SIGMA0 = 0.5
#: The size of two panels beside each other, in inches: small, so that letters are large on a phone.
WIDE = (7, 3.4)


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
    share_lower = page("how_scale.md")["share_lower"]
    hinge, pendulum, rounded = map(Task, ("hinge-mushrooms", "pendulum-features", "rounded-simulator"))
    shown: list[tuple[str, Any, Any, Any, str]] = [
        ("bowl in 10 variables, minimum at distance 1", bowl, np.zeros(10), lambda rng: rng.standard_normal(10), BLUE),
        ("hinge loss of one example (mushrooms)", hinge.fun, hinge.x0, hinge.sample, GREEN),
        ("return of a policy (pendulum-features)", pendulum.fun, pendulum.x0, pendulum.sample, ORANGE),
        ("simulator rounded to 0.01 (rounded-simulator)", rounded.fun, rounded.x0, rounded.sample, GREY),
    ]
    lengths = 10.0 ** np.arange(-3, 3.1, 0.5)
    figure = Figure(figsize=WIDE, layout="constrained")
    axes = figure.subplots()
    for label, fun, x0, draw, colour in shown:
        rng = np.random.default_rng(0)
        p = [share_lower(fun, x0, h, draw, rng, 150) for h in lengths]
        axes.semilogx(lengths, p, "o-", ms=3, label=label, color=colour)
    axes.axhline(0.1, color="black", lw=0.8, ls="--")
    axes.text(lengths[0], 0.11, "1/10")
    axes.set(xlabel="h", ylabel="p(h)", ylim=(-0.02, 0.7))
    figure.legend(frameon=False, loc="outside lower center", ncols=2)
    return _plain(figure)


def gates() -> Figure:
    """Near changes against far ones: a loss, where the gate passes, and a simulator that counts, where it does not."""
    changes = page("how_near_and_far.md")["changes"]
    figure = Figure(figsize=WIDE, layout="constrained")
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
    return _plain(figure)


def ours(task: Task, method: Any) -> Callable[[int, int], Any]:
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
    figure = Figure(figsize=WIDE, layout="constrained")
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
    figure.axes[0].legend(frameon=False)
    return _plain(figure)


def differences() -> Figure:
    """A sample along a line, with its near slope and a far difference: a loss, and a simulator that counts."""
    figure = Figure(figsize=WIDE, layout="constrained")
    shown = (
        ("logistic-mushrooms", "a loss (logistic-mushrooms)", 1.0),
        ("queue", "a simulator that counts (queue)", 3.0),
    )
    for axes, (name, title, h) in zip(figure.subplots(1, 2), shown, strict=True):
        task, rng = Task(name), np.random.default_rng(3)
        xi, v = task.sample(rng), rng.standard_normal(len(task.x0))
        v /= np.sqrt(v @ v)
        along = np.linspace(-1.5 * h, 1.5 * h, 601)
        F = np.array([task.fun(task.x0 + t * v, xi) for t in along])
        low, start, high = (task.fun(task.x0 + t * v, xi) for t in (-h, 0.0, h))
        e = 1e-5 * h
        slope = (task.fun(task.x0 + e * v, xi) - task.fun(task.x0 - e * v, xi)) / (2.0 * e)
        axes.plot(along, F, color=BLUE, label="F along a line")
        axes.plot(along, start + slope * along, "--", color=GREEN, label="near: the slope at x")
        axes.plot([-h, h], [low, high], "o-", color=ORANGE, ms=5, lw=1.2, label="far: a difference over 2 h")
        axes.set(title=title, xlabel="distance from x along v", ylim=_limits(F))
    figure.axes[0].set_ylabel("F")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), frameon=False, loc="outside lower center", ncols=3)
    return _plain(figure)


def walks() -> Figure:
    """A walk along the axes on one sample, and the places that are evaluated."""
    names = page("how_near_and_far.md")
    d, features = 128, names["features"]
    steps = np.where(np.random.default_rng(0).random(d) < 0.5, -1.0, 1.0) * 1e-6
    places = [np.where(np.arange(d) < k, steps, 0.0) for k in range(d + 1)]
    F = np.array([names["loss"](x, features) for x in places])
    known = sorted(names["walk"](lambda x: names["loss"](x, features), np.zeros(d), steps))
    figure = Figure(figsize=(7, 2.8), layout="constrained")
    axes = figure.subplots()
    axes.step(range(d + 1), 1e6 * (F - F[0]), where="post", color=GREY, lw=1.0, label="F along the walk")
    axes.plot(known, 1e6 * (F - F[0])[known], "o", ms=5, color=BLUE, label=f"evaluated: {len(known)} of {d + 1} places")
    axes.set(xlabel="axes along which a step was taken", ylabel="change of F, in 1e-6")
    axes.legend(frameon=False)
    return _plain(figure)


def generations() -> Figure:
    """The far search in a bent valley: the mean and the spread of some generations."""
    shown = (0, 4, 8, 12, 18)

    def valley(x: Any, xi: Any) -> float:
        return float((1.0 - x[0]) ** 2 + 10.0 * (x[1] - x[0] ** 2) ** 2 + 0.1 * (xi @ x))

    opt = pc.Optimizer(np.array([-1.0, 0.3]), method=pc.methods.far(), budget=1200, seed=1)
    far: list[Any] = []
    path: list[Any] = []
    while (probe := opt.ask()) is not None:
        state = opt._state
        if state.phase == "far" and len(far) == state.search.t:
            far.append(state.search)
            path.append(state.search.x)
        xis = {n: np.random.default_rng([7, n]).standard_normal(2) for n in set(probe.numbers)}
        opt.tell(probe, [valley(x, xis[n]) for x, n in zip(probe.points, probe.numbers, strict=True)])
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.subplots()
    X, Y = np.meshgrid(np.linspace(-2.0, 1.8, 200), np.linspace(-0.6, 1.5, 200))
    values = (1.0 - X) ** 2 + 10.0 * (Y - X**2) ** 2
    axes.contour(X, Y, values, levels=10.0 ** np.arange(-1.5, 2.6, 0.5), colors="#cccccc", linewidths=0.8)
    axes.plot(*np.array(path).T, "-", color=GREY, lw=0.8)
    for t in shown:
        if t < len(far):
            angle = np.degrees(np.arctan2(far[t].shape.basis[1, 1], far[t].shape.basis[0, 1]))
            width, height = 2.0 * far[t].sigma * far[t].shape.axes[::-1]
            axes.add_patch(Ellipse(far[t].x, width, height, angle=angle, fc="none", ec=BLUE, lw=1.5))
            axes.plot(*far[t].x, ".", color=BLUE)
            axes.annotate(f"{t}", far[t].x, xytext=(4, 4), textcoords="offset points", color=BLUE)
    axes.plot(1.0, 1.0, "*", ms=12, color=ORANGE, label="the minimum")
    axes.set(xlabel="x[0]", ylabel="x[1]", title="generations " + ", ".join(map(str, shown)), aspect="equal")
    axes.legend(frameon=False, loc="upper left")
    return _plain(figure)


def distances() -> Figure:
    """What a wrong first distance costs: POEM's score against the distance it is told."""
    told = 10.0 ** np.arange(-4, 3)
    figure = Figure(figsize=(7, 3.0), layout="constrained")
    axes = figure.subplots()
    for name, label, colour in (
        ("pendulum-features", "a policy (pendulum-features)", ORANGE),
        ("logistic-mushrooms", "a loss (logistic-mushrooms)", BLUE),
    ):
        task = Task(name)
        found = np.array([
            [task.exact(ours(task, pc.methods.poem(initial_distance=r))(1000, seed)) for seed in SEEDS] for r in told
        ])  # fmt: skip
        start = task.exact(task.x0)
        least = 0.0 if name in problems.names() else float(found.min())
        score = (found - least) / (start - least)
        axes.semilogx(told, np.median(score, axis=1), "o-", ms=4, color=colour, label=label)
        axes.fill_between(told, score.min(axis=1), score.max(axis=1), color=colour, alpha=0.15, lw=0)
    axes.axhline(1.0, color="black", lw=0.8, ls="--")
    axes.set(xlabel="first distance told to POEM, 1,000 evaluations", ylabel="score", ylim=(-0.03, 1.15))
    axes.legend(frameon=False)
    return _plain(figure)


def returned() -> Figure:
    """Iterates and averages of a run, and a comparison of candidates on more and more samples."""
    noise = np.random.default_rng(0)

    def exact(x: Any) -> float:
        return bowl(x, np.zeros(len(x)))

    marks = np.arange(200, 3001, 50)
    found = np.full((10, len(marks), 2), np.nan)
    for seed, row in enumerate(found):
        opt = pc.Optimizer(np.zeros(10), method="far", budget=int(marks[-1]), seed=seed, paired=False)
        while (probe := opt.ask()) is not None:
            opt.tell(probe, [exact(x) + 0.5 * noise.standard_normal() for x in probe.points])
            state = opt._state
            row[marks >= opt.nfev] = exact(state.x), exact(state.average)
    last, average = np.median(found, axis=0).T
    figure = Figure(figsize=WIDE, layout="constrained")
    left, right = figure.subplots(1, 2)
    left.semilogy(marks, last, color=GREY, lw=1.0, label="iterate")
    left.semilogy(marks, average, color=BLUE, label="average")
    left.set(xlabel="evaluations", ylabel="f, median of 10 runs", title="a bowl, noise in every evaluation")
    left.set_yticks([0.02, 0.05, 0.1, 0.2, 0.5, 1.0], ["0.02", "0.05", "0.1", "0.2", "0.5", "1"])
    left.minorticks_off()
    left.legend(frameon=False)
    names = page("how_result.md")
    chosen, others = names["a"], {"x0": np.full(3, 10.0), "b of the page": names["b"], "a + 1": names["a"] + 1.0}
    samples = np.array([8, 16, 32, 64, 128, 256])
    for (label, point), colour in zip(others.items(), (RED, ORANGE, GREEN), strict=True):
        t = [names["t_value"](point, chosen, range(n)) for n in samples]
        right.semilogx(samples, t, "o-", ms=4, color=colour, label=label, base=2)
    right.axhline(3.0, color="black", lw=0.8, ls="--")
    right.set_yscale("symlog", linthresh=3.0)
    right.set_xticks(samples, map(str, samples))
    right.set_yticks([-3, 0, 3, 10, 30, 100], ["-3", "0", "3", "10", "30", "100"])
    right.set(xlabel="common samples", ylabel="t against a of the page", title="candidates are dropped above 3")
    right.legend(frameon=False)
    return _plain(figure)


def phases() -> Figure:
    """What the evaluations of two runs were used for."""
    colours = {"scan": GREY, "gate": RED, "near": GREEN, "far": ORANGE, "compare": BLUE}
    figure = Figure(figsize=WIDE, layout="constrained")
    for axes, name in zip(figure.subplots(1, 2), ("logistic-mushrooms", "queue"), strict=True):
        task = Task(name)
        opt = pc.Optimizer(task.x0, domain=task.domain, budget=1000, seed=0)
        xis: dict[int, Any] = {}
        told: dict[str, list[tuple[int, Any]]] = {what: [] for what in colours}
        while (probe := opt.ask()) is not None:
            phase = opt._state.phase
            values = []
            for x, n in zip(probe.points, probe.numbers, strict=True):
                xi = xis.setdefault(n, task.sample(np.random.default_rng([3, n])))
                values.append(task.fun(x, xi))
                told[phase if phase in colours else "compare"].append((opt.nfev + len(values), x))
            opt.tell(probe, values)
        result = opt.result().x
        for what, points in told.items():
            away = [float(np.sqrt(((x - result) ** 2).sum())) for _, x in points]
            axes.plot([n for n, _ in points], away, ".", ms=3, color=colours[what], label=what)
        axes.set(xlabel="evaluations", title=name)
        axes.set_yscale("symlog", linthresh=1.0)
        axes.set_yticks([0, 1, 3, 10, 30], ["0", "1", "3", "10", "30"])
    figure.axes[0].set_ylabel("distance from the result")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, loc="outside lower center", ncols=5, markerscale=3.0)
    return _plain(figure)


FIGURES: dict[str, Callable[[], Figure]] = {
    "auto-scan.png": shares, "auto-gate.png": gates, "auto-scores.png": scores, "auto-phases.png": phases,
    "how-differences.png": differences, "how-walk.png": walks, "how-far.png": generations, "how-scale.png": distances,
    "how-result.png": returned,
}  # fmt: skip


def main() -> None:
    """Draw them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=HERE / "images")
    parser.add_argument("--only", default=",".join(FIGURES))
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    with rc_context({"font.size": 10, "axes.titlesize": 10, "legend.fontsize": 9}):
        for name in asked.only.split(","):
            FIGURES[name]().savefig(asked.folder / name, dpi=120)
            print(name, f"{(asked.folder / name).stat().st_size / 1000:.0f} kB", flush=True)


def _limits(values: Any) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    return low - 0.1 * (high - low), high + 0.1 * (high - low)


def _plain(figure: Figure) -> Figure:
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    return figure


if __name__ == "__main__":
    main()
