"""`PoemAttack` on real classifiers behind ART, and its neighbourhoods against a general solver."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

pytest.importorskip("art", reason="ART is not installed: pip install 'poem-cma[art]'")
from art.estimators.classification import BlackBoxClassifier, SklearnClassifier
from art.exceptions import EstimatorError

from poem_cma.integrations.art import PoemAttack, _Neighbourhood

CLIP = (0.0, 1.0)


@pytest.fixture(scope="module")
def digits() -> tuple[Any, np.ndarray, np.ndarray]:
    """A scikit-learn classifier of digits wrapped by ART, and twelve inputs that it gets right."""
    X, y = load_digits(return_X_y=True)
    X = (X / 16.0).astype(np.float32)
    model = LogisticRegression(max_iter=300).fit(X[:1200], y[:1200])
    right = np.flatnonzero(model.predict(X[1200:]) == y[1200:])[:12] + 1200
    return SklearnClassifier(model=model, clip_values=CLIP), X[right], y[right]


class Counted:
    """`predict` as a black box that counts and looks at its inputs."""

    def __init__(self, model: Any) -> None:
        self.model, self.rows, self.largest = model, 0, 0
        self.seen: list[np.ndarray] = []

    def __call__(self, x: np.ndarray) -> np.ndarray:
        self.rows += len(x)
        self.largest = max(self.largest, len(x))
        self.seen.append(np.array(x))
        return np.asarray(self.model.predict(x))


def black_box(model: Any) -> tuple[Any, Counted]:
    counted = Counted(model)
    return BlackBoxClassifier(counted, (64,), 10, clip_values=CLIP), counted


@pytest.mark.parametrize(("norm", "eps"), [(2, 1.5), (np.inf, 0.25), ("inf", 0.25)])
def test_untargeted(digits: Any, norm: Any, eps: float) -> None:
    model, x, y = digits
    box, counted = black_box(model)
    attack = PoemAttack(box, norm=norm, eps=eps, max_queries=400, batch_size=32)
    adversarial = attack.generate(x, y)
    fooled = model.predict(adversarial).argmax(axis=1) != y
    assert fooled.mean() >= 0.75
    assert attack.queries.max() <= 400
    assert counted.rows == attack.queries.sum()
    assert counted.largest <= 32
    size = np.linalg.norm if norm == 2 else lambda v: np.abs(v).max()
    assert max(size(v) for v in adversarial - x) <= eps + 1e-5
    assert attack.queries[fooled].max() < 400  # it stops where it has succeeded


def test_every_query_is_an_allowed_input(digits: Any) -> None:
    model, x, y = digits
    for norm, eps in ((2, 0.8), (np.inf, 0.1)):
        box, counted = black_box(model)
        PoemAttack(box, norm=norm, eps=eps, max_queries=60).generate(x[:1], y[:1])
        for rows in counted.seen:
            assert rows.min() >= 0.0
            assert rows.max() <= 1.0
            size = np.linalg.norm(rows - x[0], axis=1) if norm == 2 else np.abs(rows - x[0]).max(axis=1)
            assert size.max() <= eps + 1e-5


def test_targeted(digits: Any) -> None:
    model, x, y = digits
    wanted = (y + 1) % 10
    attack = PoemAttack(model, norm=2, eps=2.5, max_queries=1000, targeted=True)
    reached = model.predict(attack.generate(x, np.eye(10)[wanted])).argmax(axis=1) == wanted
    assert reached.mean() >= 0.75
    with pytest.raises(ValueError, match="needs the classes to reach"):
        attack.generate(x)


def test_an_input_alone_is_attacked_as_among_others(digits: Any) -> None:
    """Bit for bit, if predictions are: a matrix product may round a row otherwise among others than alone."""
    model, x, y = digits
    settings = {"norm": 2, "eps": 0.7, "max_queries": 120, "batch_size": 1}
    together = PoemAttack(model, seed=3, **settings)
    both = together.generate(x[:2], y[:2])
    alone = PoemAttack(model, seed=4, **settings)
    np.testing.assert_array_equal(alone.generate(x[1:2], y[1:2])[0], both[1])
    assert alone.queries[0] == together.queries[1]


def test_what_is_adversarial_already_is_left_alone(digits: Any) -> None:
    model, x, y = digits
    attack = PoemAttack(model, eps=0.1, max_queries=50)
    np.testing.assert_array_equal(attack.generate(x, (y + 1) % 10), x)
    assert set(attack.queries) == {1}
    assert attack.generate(x[:0]).shape == (0, 64)


@pytest.mark.parametrize("queries", [1, 2, 5, 19, 20])
def test_few_queries(digits: Any, queries: int) -> None:
    model, x, y = digits
    box, counted = black_box(model)
    attack = PoemAttack(box, norm=2, eps=0.01, max_queries=queries)
    assert attack.generate(x[:2], y[:2]).shape == (2, 64)
    assert counted.rows == attack.queries.sum() <= 2 * queries


def test_images_keep_their_shape(digits: Any) -> None:
    model, x, y = digits

    def predict(images: np.ndarray) -> np.ndarray:
        assert images.shape[1:] == (8, 8, 1)
        assert images.dtype == np.float32
        return 5.0 + 3.0 * np.log(model.predict(images.reshape(-1, 64)))  # no probabilities

    box = BlackBoxClassifier(predict, (8, 8, 1), 10, clip_values=CLIP)
    attack = PoemAttack(box, norm=2, eps=2.0, max_queries=300)
    adversarial = attack.generate(x.reshape(-1, 8, 8, 1)[:4], y[:4])
    assert adversarial.shape == (4, 8, 8, 1)
    assert (box.predict(adversarial).argmax(axis=1) != y[:4]).mean() >= 0.5


def test_the_neighbourhood_projects(digits: Any) -> None:
    generator = np.random.default_rng(0)
    for _ in range(20):
        low, high = -generator.random(5), generator.random(5)
        near = _Neighbourhood(low, high, 0.6)
        delta = generator.normal(size=5)
        found = near.project(delta)
        solver = scipy.optimize.minimize(
            lambda v, delta=delta: ((v - delta) ** 2).sum(), np.zeros(5), method="SLSQP",
            bounds=list(zip(low, high, strict=True)), options={"ftol": 1e-12},
            constraints={"type": "ineq", "fun": lambda v: 0.36 - v @ v},
        )  # fmt: skip
        np.testing.assert_allclose(found, solver.x, atol=1e-4)
        assert np.linalg.norm(found) <= 0.6 + 1e-12


def test_parameters_are_checked(digits: Any) -> None:
    model, x, _ = digits
    for wrong, message in (({"norm": 1}, "norm"), ({"eps": 0.0}, "eps"), ({"max_queries": 0}, "max_queries")):
        with pytest.raises(ValueError, match=f"{message} must be"):
            PoemAttack(model, **wrong)
    with pytest.raises(EstimatorError):
        PoemAttack(object())
    attack = PoemAttack(model)
    attack.set_params(eps=0.5)
    assert attack.eps == 0.5
    with pytest.raises(TypeError, match="not mask"):
        attack.generate(x, mask=None)
