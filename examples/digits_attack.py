"""Fool a classifier of digits that answers with probabilities and nothing else, with few queries.

The attacker looks for an image within a small distance of the true one that is taken for another digit. It minimises
the margin, the log-probability of the true digit minus that of the next one, over a ball around the image; below zero
the attack has succeeded. Needs: pip install "poem-cma[gallery]"; the row of ZOO appears where ART is installed.
"""

from contextlib import suppress
from functools import partial
from importlib.util import find_spec

import _others as others
import _show as show
import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

import poem_cma as pc

RADIUS = 0.8  # in pixels between 0 and 1; the images have a length of about 3.5


class Service:
    """Predict-only access to the classifier, which counts queries and remembers the first success."""

    def __init__(self, model: MLPClassifier, image: np.ndarray, digit: int, budget: int) -> None:
        self.model, self.image, self.digit, self.budget = model, image, digit, budget
        self.queries, self.first_success = 0, np.inf

    def predict(self, X: np.ndarray) -> np.ndarray:
        if self.queries + len(X) > self.budget:
            raise RuntimeError("the queries are spent")
        X = np.clip(X, 0.0, 1.0)
        P = self.model.predict_proba(X)
        fooled = (P.argmax(axis=1) != self.digit) & (np.linalg.norm(X - self.image, axis=1) <= RADIUS + 1e-9)
        if fooled.any():
            self.first_success = min(self.first_success, self.queries + 1 + fooled.argmax())
        self.queries += len(X)
        return P

    def margin(self, X: np.ndarray) -> np.ndarray:
        logs = np.log(np.maximum(self.predict(X), 1e-12))
        return logs[:, self.digit] - np.delete(logs, self.digit, axis=1).max(axis=1)


def ours(service: Service, seed: int, method: str) -> None:
    ball = pc.Ball(RADIUS, center=service.image)  # no query outside it
    settings = {"domain": ball, "method": method, "budget": service.budget, "evaluate": 0, "seed": seed}
    pc.minimize(service.margin, service.image, vectorized=True, **settings)


def spsa(service: Service, seed: int) -> None:
    ball = pc.Ball(RADIUS, center=service.image)
    others.spsa(service.margin, service.image, ball.project, service.budget, seed, step=0.03, size=0.01)


def zoo(service: Service, seed: int) -> None:
    """ZOO (Chen et al. 2017) as ART has it."""
    from art.attacks.evasion import ZooAttack
    from art.estimators.classification import BlackBoxClassifier

    np.random.seed(seed)  # noqa: NPY002  (ART draws from the global generator)
    api = BlackBoxClassifier(service.predict, (64,), 10, clip_values=(0.0, 1.0))
    settings = {"learning_rate": 0.03, "initial_const": 1.0, "nb_parallel": 16, "variable_h": 0.01, "max_iter": 1000}
    attack = ZooAttack(api, binary_search_steps=1, use_resize=False, use_importance=False, verbose=False, **settings)
    with suppress(RuntimeError):  # the queries are spent
        attack.generate(service.image[None].astype(np.float32), np.eye(10)[[service.digit]])


METHODS = {"auto": partial(ours, method="auto"), "POEM": partial(ours, method="poem"), "SPSA, tuned by hand": spsa}
if find_spec("art"):
    METHODS["ZOO of ART, tuned by hand"] = zoo
else:
    print("ZOO is left out: pip install adversarial-robustness-toolbox")


def main() -> None:
    chosen = show.options(__doc__)
    images, budget = (3, 200) if chosen.quick else (40, 500)
    X, y = load_digits().data / 16.0, load_digits().target
    model = MLPClassifier((64,), max_iter=300, random_state=0, alpha=1e-3, tol=1e-3).fit(X[:1200], y[:1200])
    known = [n for n in range(1200, 1500) if model.predict(X[[n]]) == y[n]][:images]
    needed = {name: [] for name in METHODS}
    for name, attack in METHODS.items():
        for n in known:
            service = Service(model, X[n], y[n], budget)
            attack(service, n)
            needed[name].append(service.first_success)
    about = f"Images fooled, of {images}, within a distance of {RADIUS}; one seed an image"
    counts = [budget // 5, 2 * budget // 5, budget]
    rows = [[name, *(str(np.sum(np.array(q) <= n)) for n in counts)] for name, q in needed.items()]
    show.table(chosen, about, ["method", *(f"within {n} queries" for n in counts)], rows)
    figure, (axes,) = show.picture(7.5, 3.8, columns=1)
    show.successes(axes, needed, budget, xlabel="queries", ylabel="images fooled, percent")
    show.save(chosen, figure)


if __name__ == "__main__":
    main()
