"""POEM-CMA, POEM and TPBCO side by side on a problem that needs no download.

A linear classifier is trained by its hinge loss on one random example a call, from values alone. The features have a
few strong directions and many weak ones. Prints a table and writes a picture.
"""

from __future__ import annotations

import pathlib

import numpy as np

import poem_cma as pc

D, N, BUDGET, SEEDS = 60, 2000, 12_000, 5

rng = np.random.default_rng(0)
A = rng.normal(size=(N, D)) * np.linspace(2.0, 0.2, D) ** 2 / 2
y = np.sign(A @ rng.normal(size=D) + 0.3 * rng.normal(size=N))


def hinge(x: np.ndarray, i: int) -> float:
    """F(x; xi), where xi is the index of an example."""
    return max(0.0, 1.0 - y[i] * (A[i] @ x))


def full_objective(x: np.ndarray) -> float:
    """f(x), which the methods never see."""
    return float(np.maximum(0.0, 1.0 - y * (A @ x)).mean())


def main() -> None:
    """Run, print, draw."""
    steepest = float(np.sqrt((A**2).sum(axis=1).max()))
    methods = {
        "POEM-CMA": pc.methods.poem_cma(),
        "POEM": pc.methods.poem(),
        "TPBCO": pc.methods.tpbco(lipschitz=steepest),
    }
    print(f"hinge loss in {D} dimensions on the unit ball, {BUDGET} calls, {SEEDS} seeds; f(x0) = 1\n")
    print(f"{'method':<10} {'f at the result':>16} {'':>9} {'as seed 0 measured it':>22}   what it was told")
    curves = {}
    for name, method in methods.items():
        results = [
            pc.minimize(
                hinge,
                np.zeros(D),
                sample=lambda rng: rng.integers(N),
                domain=pc.Ball(radius=1.0),
                method=method,
                budget=BUDGET,
                seed=seed,
            )
            for seed in range(SEEDS)
        ]
        f = np.array([full_objective(r.x) for r in results])
        told = f"L = {steepest:.2f}, D = 2, T" if name == "TPBCO" else "nothing"
        spread = f.std(ddof=1) / np.sqrt(SEEDS)
        first = results[0]
        print(f"{name:<10} {f.mean():>16.4f} ± {spread:<6.4f} {first.fun:>13.3f} ± {first.fun_stderr:.3f}   {told}")
        curves[name] = [r.history for r in results]
    draw(curves)


def draw(curves: dict[str, list]) -> None:
    """The smoothed values that the runs saw, the median over seeds."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for name, histories in curves.items():
        calls = histories[0]["nfev"]
        axes.plot(calls, np.median([h["fun"] for h in histories], axis=0), lw=1.2, label=name)
    axes.set(xlabel="oracle calls", ylabel="smoothed value of recent probes", title="Hinge loss from values alone")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    place = pathlib.Path("results")
    place.mkdir(exist_ok=True)
    figure.savefig(place / "quickstart.png", dpi=120)
    print(f"\nthe picture is in {place / 'quickstart.png'}")


if __name__ == "__main__":
    main()
