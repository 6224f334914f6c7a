"""What is the effective dimension of my problem?

A function of a hundred variables may change along a few directions only. With A the second moment of the gradients,
d* = trace(A) / (largest eigenvalue of A) counts them. `gradient_spectrum` estimates A from values by full gradients,
`effective_dimension` is the paper's Algorithm 2, from random pairs. The usual approach changes one variable after the
other (Morris). It counts variables, not directions. For these problems A is known.
Needs: pip install "poem-cma[gallery]"
"""

from collections import namedtuple

import _show as show
import numpy as np

import poem_cma as pc

Problem = namedtuple("Problem", "name fun sample moment")  # the moment is A at x0 = 0, exactly


def mushrooms() -> Problem:
    try:
        name, (A, y) = "mushrooms", pc.datasets.load("mushrooms")
    except pc.datasets.DatasetError as error:
        print(f"mushrooms is not here ({error}); breast_cancer takes its place")
        name, (A, y) = "breast_cancer", pc.datasets.load("breast_cancer")
        A = A / A.max(axis=0)

    def hinge(x, i):
        return max(0.0, 1.0 - y[i] * (A[i] @ x))

    return Problem(f"hinge on {name}", hinge, lambda rng: rng.integers(len(y)), A.T @ A / len(y))


def regression(d: int, rank: int) -> Problem:
    """|a'x - 1| with a in a hidden subspace that is aligned with no axis."""
    basis = np.linalg.qr(np.random.default_rng(rank).normal(size=(d, rank)))[0]

    def error(x, a):
        return abs(a @ x - 1.0)

    return Problem(f"regression of rank {rank}", error, lambda rng: basis @ rng.normal(size=rank), basis @ basis.T)


def dimension(eigenvalues: np.ndarray) -> float:
    return float(eigenvalues.sum() / eigenvalues.max())


def morris(problem: Problem, d: int, walks: int, seed: int, step: float = 1e-3) -> np.ndarray:
    """The mean absolute slope along each axis, from walks along all of them in random order."""
    rng, slopes = np.random.default_rng(seed), np.zeros(d)
    for _ in range(walks):
        xi, x = problem.sample(rng), 1e-2 * rng.uniform(-1.0, 1.0, size=d)
        value = problem.fun(x, xi)
        for j in rng.permutation(d):
            x[j] += step
            before, value = value, problem.fun(x, xi)
            slopes[j] += abs(value - before) / (step * walks)
    return slopes


def main() -> None:
    chosen = show.options(__doc__)
    seeds, few, many = (2, 5, 20) if chosen.quick else (10, 10, 100)
    rows, problems, (figure, panels) = (
        [],
        [mushrooms(), regression(100, 5), regression(50, 50)],
        show.picture(11, 3.5, 3),
    )
    for problem, axes in zip(problems, panels, strict=True):
        d, exact = len(problem.moment), np.linalg.eigvalsh(problem.moment)[::-1]
        ask = {"fun": problem.fun, "x0": np.zeros(d), "sample": problem.sample}
        looks = [
            [pc.gradient_spectrum(**ask, gradients=few, seed=seed) for seed in range(seeds)],
            [pc.gradient_spectrum(**ask, gradients=many, seed=seed) for seed in range(seeds)],
            [pc.effective_dimension(**ask, seed=seed) for seed in range(seeds)],
        ]
        cells = [f"{show.spread([s.effective_dimension for s in look], 1)}; {look[0].nfev}" for look in looks]
        screened = [dimension(morris(problem, d, few, seed) ** 2) for seed in range(seeds)]
        cells.append(f"{show.spread(screened, 1)}; {few * (d + 1)}")
        rows.append([problem.name, str(d), f"{dimension(exact):.1f}", *cells])
        axes.plot(range(1, d + 1), exact / exact[0], color="0.35", lw=2, label="exact")
        for look, n, colour, mark in zip(looks, (few, many), show.COLOURS, "os", strict=False):
            lam = look[0].eigenvalues / look[0].eigenvalues[0]
            axes.plot(range(1, len(lam) + 1), lam, mark, ms=4, color=colour, mfc="none", label=f"{n} gradients")
        axes.set(yscale="log", xlim=(0, 50.5), ylim=(8e-4, 1.5), xlabel="direction")
        axes.set_title(f"{problem.name}\nd = {d}, d* = {dimension(exact):.1f}", fontsize=11)
    panels[0].set_ylabel("eigenvalue / largest")
    panels[1].legend(frameon=False)
    about = f"Effective dimension at x0 = 0; median and range over {seeds} seeds; the calls it took"
    columns = ["problem", "variables", "exact d*", f"{few} gradients", f"{many} gradients", "Algorithm 2", "Morris"]
    show.table(chosen, about, columns, rows)
    show.save(chosen, figure)


if __name__ == "__main__":
    main()
