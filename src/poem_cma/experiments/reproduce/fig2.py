"""Figure 2: hinge loss on the paper's two sets, every method, in oracle calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import poem_cma as pc
from poem_cma._types import Array, IntArray
from poem_cma.experiments.campaign.cells import Arrays, Cell
from poem_cma.experiments.reproduce import data
from poem_cma.experiments.reproduce.data import PaperSet
from poem_cma.experiments.reproduce.runs import Followed, call_grid, follow, make_method
from poem_cma.experiments.reproduce.scale import Scale
from poem_cma.problems.optimum import least_hinge_loss

__all__ = ["DISTANCES", "METHODS", "compute_optimum", "compute_restricted", "compute_runs", "compute_spectrum", "plan"]

METHODS = {"poem-cma": "POEM-CMA", "poem": "POEM", "tpbco": "TPBCO", "tpge": "TPGE", "rsnso": "RSNSO"}
FIXED_HORIZON = ("tpbco", "rsnso")  # their step needs the number of iterations beforehand
#: Initial distances r_eps; the first is the one of the main comparison, a twentieth of the diameter.
DISTANCES = (0.1, 0.01, 0.001)
#: Seconds of one iteration, about.
_PACE = {"mushrooms": 60e-6, "w8a": 80e-6}


def plan(scale: Scale, sets: Sequence[tuple[PaperSet, str]]) -> list[Cell]:
    """The cells of Figure 2: runs, spectra, and the certified optima."""
    result = []
    for paper, name in sets:
        result.append(Cell("optimum", {"set": name}, seconds=5.0))
        spectra = {"set": name, "tol": paper.tol, "seeds": scale.spectrum_seeds}
        result += [Cell("spectrum", spectra | {"paired": p}, seconds=0.2 * scale.spectrum_seeds) for p in (True, False)]
        result += [
            Cell("restricted", run_cell(paper, name, "poem-cma", DISTANCES[0], True, 1, s).settings, seconds=4.0)
            for s in range(scale.seeds)
        ]
        for method in METHODS:
            for r, paired, iterations, seeds in _variants(method, scale):
                result += [run_cell(paper, name, method, r, paired, iterations, s) for s in range(seeds)]
    return result


def _variants(method: str, scale: Scale) -> list[tuple[float | None, bool, int, int]]:
    """(initial distance, shared xi, iterations, seeds) of every curve of a method."""
    own, main = method in ("poem", "poem-cma"), method in ("poem", "poem-cma", "tpbco")
    first, *others = DISTANCES if own else (None,)
    short, long, side = scale.iterations, scale.iterations * scale.beyond, scale.iterations * scale.side_beyond
    variants = [(first, True, long if main else side, scale.seeds), (first, False, side, scale.side_seeds)]
    variants += [(r, True, side, scale.side_seeds) for r in others]
    if method in FIXED_HORIZON:
        variants.append((None, True, short, scale.seeds))
        if side != short:
            variants.append((None, False, short, scale.side_seeds))
    return list(dict.fromkeys(variants))


def run_cell(
    paper: PaperSet, name: str, method: str, r: float | None, paired: bool, iterations: int, seed: int
) -> Cell:
    """One run."""
    settings = {
        "set": name, "method": method, "initial_distance": r, "paired": paired, "iterations": iterations, "seed": seed,
        "tol": paper.tol,
    }  # fmt: skip
    return Cell("run", settings, seconds=0.5 + iterations * _PACE.get(name, 60e-6))


def compute_runs(seeds: Sequence[Mapping[str, Any]]) -> list[Arrays]:
    """Runs that differ in their seed alone: f at the output, and at the last iterate, at chosen numbers of calls."""
    seen: list[list[tuple[float, ...]]] = [[] for _ in seeds]

    def noting(rows: list[tuple[float, ...]]) -> Callable[[pc.Optimizer], bool]:
        def look(opt: pc.Optimizer) -> bool:
            result = opt.result()
            rows.append((opt.nfev, opt.nit, problem.full(result.x), problem.full(result.x_last)))
            return False

        return look

    runs = _Runs(seeds, [noting(rows) for rows in seen])
    problem, preliminary = runs.problem, runs.preliminary
    runs.follow(_moments(call_grid(2 * seeds[0]["iterations"]), preliminary))
    result: list[Arrays] = []
    for run, rows in zip(runs.each, seen, strict=True):
        table = np.array(rows, dtype=float).reshape(-1, 4)
        spectrum = run.opt.result().spectrum
        result.append({
            "calls": table[:, 0],
            "iterations": table[:, 1],
            "output": table[:, 2],
            "last": table[:, 3],
            "preliminary": preliminary,
            "d_star": spectrum.effective_dimension if spectrum else float(problem.shape[1]),
            "kappa": spectrum.condition if spectrum else 1.0,
        })  # fmt: skip
    return result


class _Runs:
    """Runs that differ in their seed alone, before their first call."""

    def __init__(self, seeds: Sequence[Mapping[str, Any]], looks: Sequence[Callable[[pc.Optimizer], bool]]) -> None:
        settings = seeds[0]
        self.problem = problem = data.hinge(settings["set"])
        n, d = problem.shape
        name, r = settings["method"], settings["initial_distance"]
        method = make_method(name, lipschitz=problem.lipschitz, d=d, tol=settings["tol"], initial_distance=r)
        self.preliminary = 2 * pc.theory.sample_size(d) if name == "poem-cma" else 0  # calls
        calls = 2 * settings["iterations"] + self.preliminary
        # The same seed gives every method the same examples in the same order.
        self._examples = np.array([np.random.default_rng([s["seed"], 3]).integers(n, size=calls) for s in seeds])

        def run(s: Mapping[str, Any], own: IntArray, look: Callable[[pc.Optimizer], bool]) -> Followed:
            opt = pc.Optimizer(
                np.zeros(d),
                method=method,
                domain=pc.Ball(1.0, outside=True),
                budget=calls,
                paired=s["paired"],
                seed=s["seed"],
            )
            return Followed(opt, lambda x, k: problem.value(x, own.item(k % calls)), look)

        self.each = [run(*one) for one in zip(seeds, self._examples, looks, strict=True)]

    def follow(self, moments: Sequence[int]) -> None:
        """Run, and look at the moments."""
        follow(self.each, self._rows, moments)

    def _rows(self, X: Array, which: IntArray, numbers: IntArray) -> Array:
        values: Array = self.problem.values(X, self._examples[which, numbers % self._examples.shape[1]])
        return values


def _moments(grid: list[int], preliminary: int) -> list[int]:
    """The grid with the preliminary calls counted, and again without."""
    return sorted({*grid, *(c + preliminary for c in grid)})


def compute_optimum(settings: Mapping[str, Any]) -> Arrays:
    """f*, enclosed by a primal and a dual value, and the gradients' second moment at x0 = 0."""
    problem = data.hinge(settings["set"])
    best = least_hinge_loss(problem.sparse)
    n, d = problem.shape
    moment = np.linalg.eigvalsh(problem.moment())
    return {
        "x": best.x, "primal": best.primal, "dual": best.dual, "start": problem.full(np.zeros(d)), "n": n, "d": d,
        "lipschitz": problem.lipschitz, "moment": moment, "flat": _flat_share(problem, best.x),
    }  # fmt: skip


def _flat_share(problem: data.Hinge, x: Any) -> float:
    return float((problem.sparse @ x > 1.0).mean())


def compute_spectrum(settings: Mapping[str, Any]) -> Arrays:
    """Algorithm 2 at x0 = 0 over many seeds: d* before and after the filter, kappa, rank, and 30 full gradients."""
    problem = data.hinge(settings["set"])
    n, d = problem.shape
    rows = []
    for seed in range(settings["seeds"]):
        found = _algorithm_2(problem, 0.0, seed, settings["paired"])
        kept = found.eigenvalues[found.eigenvalues >= settings["tol"] * found.eigenvalues[0]]
        rows.append((found.effective_dimension, pc.theory.effective_dimension(kept), kept[0] / kept[-1], len(kept)))
    table = np.array(rows)
    gradients = pc.gradient_spectrum(
        problem.value, np.zeros(d), sample=lambda rng: int(rng.integers(n)), gradients=30, seed=0
    )
    return {
        "before": table[:, 0], "after": table[:, 1], "kappa": table[:, 2], "rank": table[:, 3],
        "gradients": gradients.effective_dimension, "samples": pc.theory.sample_size(d),
    }  # fmt: skip


def compute_restricted(settings: Mapping[str, Any]) -> Arrays:
    """The least value in the subspace that POEM-CMA of that seed searches, and in a random one of its dimension."""
    runs = _Runs([settings], [lambda _: True])
    runs.follow([runs.preliminary + 2])
    problem, found = runs.problem, runs.each[0].opt.result().spectrum
    assert found is not None
    Q = found.vectors
    best = least_hinge_loss(problem.sparse @ Q, accuracy=1e-6)
    random = np.linalg.qr(np.random.default_rng([settings["seed"], 4]).standard_normal(Q.shape))[0]
    other = least_hinge_loss(problem.sparse @ random, accuracy=1e-6)
    return {
        "primal": best.primal, "dual": best.dual, "rank": found.rank, "basis": Q,
        "random_primal": other.primal, "random_dual": other.dual,
    }  # fmt: skip


def _algorithm_2(problem: data.Hinge, tol: float, seed: int, paired: bool) -> pc.Spectrum:
    n, d = problem.shape
    return pc.effective_dimension(
        problem.value, np.zeros(d), sample=lambda rng: int(rng.integers(n)), paired=paired, tol=tol, seed=seed
    )
