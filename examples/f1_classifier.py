"""Train a linear classifier on the F1 score itself, which is a step function and has no gradient.

F(w; xi) is 1 - F1 on a random batch of 1000 people of the census data a9a (income above 50,000 or not; breast_cancer of
scikit-learn if a9a is not available). The usual approach is a logistic regression with the threshold that has the best
F1. All methods start at the weights of the logistic regression. Needs: pip install "poem-cma[gallery]"
"""

import _others as others
import _show as show
import numpy as np
from sklearn.linear_model import LogisticRegression

import poem_cma as pc


def load(rows: int):
    """Training and test examples with a column of ones for the intercept."""
    try:
        (A, y), (B, z) = pc.datasets.load("a9a"), pc.datasets.load("a9a.t")
    except pc.datasets.DatasetError as error:
        print(f"a9a is not here ({error}); breast_cancer takes its place")
        A, y = pc.datasets.load("breast_cancer")
        A = (A - A.mean(axis=0)) / A.std(axis=0)
        A, y, B, z = A[::2], y[::2], A[1::2], y[1::2]
    keep = np.random.default_rng(0).permutation(len(A))[:rows]
    return np.c_[A[keep], np.ones(len(keep))], y[keep] > 0, np.c_[B, np.ones(len(B))], z > 0


def f1(W: np.ndarray, A: np.ndarray, y: np.ndarray) -> np.ndarray:
    """2 true positives / (predicted positives + positives), for every row of W."""
    hit = W @ A.T > 0.0
    return 2.0 * (hit & y).sum(axis=1) / np.maximum(hit.sum(axis=1) + y.sum(), 1)


def main() -> None:
    chosen = show.options(__doc__)
    rows, budget, seeds = (2000, 300, 2) if chosen.quick else (6000, 2000, 5)
    A, y, B, z = load(rows)
    batch = min(1000, len(y) // 2)
    logistic = LogisticRegression(fit_intercept=False, max_iter=2000).fit(A, y).coef_[0]
    logistic /= np.linalg.norm(logistic)  # F1 does not see the length of w

    def draw(rng):
        return rng.choice(len(y), batch, replace=False)

    def loss(W, people):
        return 1.0 - f1(W, A[people], y[people])

    def ours(seed, method):
        return pc.minimize(
            loss, logistic, sample=draw, method=method, budget=budget, vectorized=True, evaluate=0, seed=seed
        ).x

    def cma_es(seed):  # one batch for a generation
        return others.cma_es(lambda W, rng: loss(W, draw(rng)), logistic, 0.03, budget, seed)

    def best_threshold():
        shifts = np.quantile(A @ logistic, np.linspace(0.0, 1.0, 1000)[1:-1])
        W = logistic - shifts[:, None] * np.eye(len(logistic))[-1]
        return W[np.argmax(f1(W, A, y))]

    found = {
        "POEM on F1": [ours(seed, "poem") for seed in range(seeds)],
        "auto on F1": [ours(seed, "auto") for seed in range(seeds)],
        "CMA-ES on F1": [cma_es(seed) for seed in range(seeds)],
        "logistic + best threshold": [best_threshold()],
        "logistic regression": [logistic],
    }
    train = {name: f1(np.array(W), A, y) for name, W in found.items()}
    test = {name: f1(np.array(W), B, z) for name, W in found.items()}
    about = f"F1 on {len(y)} training and {len(z)} test examples, {A.shape[1]} variables, {budget} calls on batches of "
    about += f"{batch}; median and range over {seeds} seeds; more is better"
    cells = [[name, show.spread(train[name]), show.spread(test[name])] for name in found]
    show.table(chosen, about, ["method", "F1, training", "F1, test"], cells)
    figure, (left, right) = show.picture(10, 3.4)
    show.strips(left, train)
    show.strips(right, test, names=False)
    left.set(title="Training examples", xlabel="F1 (more is better)")
    right.set(title="Test examples", xlabel="F1 (more is better)")
    show.save(chosen, figure)


if __name__ == "__main__":
    main()
