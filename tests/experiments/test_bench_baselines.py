"""The baselines written here against literal transcriptions that share no code with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bench_helpers import BALL, Book, play

from poem_cma import problems
from poem_cma.experiments.bench.peers.baselines import directions, gains, play_adamm, play_sgd
from poem_cma.experiments.bench.peers.first_order import play as play_dog
from poem_cma.experiments.bench.player import Player
from poem_cma.experiments.bench.task import Task
from poem_cma.run.randomness import Stream, Streams


class Samples:
    """xi number 0, 1, 2, ... of a seed, drawn here."""

    def __init__(self, problem: Any, seed: int) -> None:
        self.problem, self.streams, self.n = problem, Streams(seed), -1

    def next(self) -> Any:
        self.n += 1
        return self.problem.sample(self.streams.at(Stream.SAMPLES, self.n))


def value(problem: Any, x: Any, xi: Any) -> float:
    return float(problem.fun(x[None], xi)[0])


def in_ball(x: Any) -> Any:
    return x / max(1.0, float(np.sqrt(x @ x)))


@pytest.mark.parametrize("ball", [False, True])
def test_zo_sgd(ball: bool) -> None:
    book, seed, T, mu, step = Book(5, domain=BALL if ball else None), 7, 60, 0.05, 2.0
    task = Task(book.problem, 2 * T, seed)
    size = step / task.slope_size(mu)
    play(Player("p", "p", play_sgd), task, {"step": step, "decay": "sqrt", "smoothing": mu})

    rng, samples, x = np.random.default_rng([seed, 11]), Samples(book.problem, seed), np.zeros(5)
    for t in range(1, T + 1):
        u = rng.standard_normal(5)
        u = u / np.sqrt(u @ u)
        xi = samples.next()
        slope = (value(book.problem, x + mu * u, xi) - value(book.problem, x - mu * u, xi)) / (2 * mu)
        x = x - size / np.sqrt(t) * 5 * slope * u
        x = in_ball(x) if ball else x
    np.testing.assert_allclose(task._point, x, rtol=1e-9, atol=1e-12)


def test_sgd_with_several_directions() -> None:
    book, seed, q, mu, step = Book(6), 8, 3, 0.02, 1.5
    task = Task(book.problem, 4 * 50 + 3, seed)
    size = step / task.slope_size(mu) * np.sqrt(q)
    setting = {"step": step, "decay": "linear", "smoothing": mu, "directions_a_step": q}
    assert play(Player("p", "p", play_sgd), task, setting)["nfev"] == 200

    rng, samples, x = np.random.default_rng([seed, 11]), Samples(book.problem, seed), np.zeros(6)
    for t in range(50):
        V = directions(rng, 6, q)
        xi = samples.next()
        base = value(book.problem, x, xi)
        g = sum(6 / q * (value(book.problem, x + mu * v, xi) - base) / mu * v for v in V)
        x = x - size * (1 - t / 50) / np.sqrt(50) * g
    np.testing.assert_allclose(task._point, x, rtol=1e-9, atol=1e-12)


def test_directions_are_orthonormal_and_uniform() -> None:
    rng = np.random.default_rng(1)
    V = np.array([directions(rng, 5, 3) for _ in range(4000)])
    np.testing.assert_allclose(V @ V.transpose(0, 2, 1), np.broadcast_to(np.eye(3), (4000, 3, 3)), atol=1e-12)
    for j in range(3):
        assert np.abs(V[:, j].mean(axis=0)).max() < 4.0 * np.sqrt(0.2 / 4000)
        moment = V[:, j].T @ V[:, j] / 4000
        assert np.abs(moment - np.eye(5) / 5).max() < 4.0 * np.sqrt(3.0 / 35.0 / 4000)


@pytest.mark.parametrize("ball", [False, True])
def test_zo_adamm(ball: bool) -> None:
    book, seed, T, mu, step, b1, b2 = Book(4, domain=BALL if ball else None), 9, 80, 0.01, 3.0, 0.9, 0.3
    task = Task(book.problem, 2 * T, seed)
    play(
        Player("p", "p", play_adamm), task,
        {"step": step, "decay": "sqrt", "smoothing": mu, "beta1": b1, "beta2": b2},
    )  # fmt: skip

    rng, samples = np.random.default_rng([seed, 11]), Samples(book.problem, seed)
    x, m, v, vhat = np.zeros(4), np.zeros(4), np.zeros(4), np.zeros(4)
    for t in range(1, T + 1):
        u = rng.standard_normal(4)
        u = u / np.sqrt(u @ u)
        xi = samples.next()
        g = 4 * (value(book.problem, x + mu * u, xi) - value(book.problem, x - mu * u, xi)) / (2 * mu) * u
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g * g
        vhat = np.maximum(vhat, v)
        x = x - step / 2.0 / np.sqrt(t) * m / np.sqrt(vhat)
        x = nearest_in_metric(x, np.sqrt(vhat)) if ball else x
    np.testing.assert_allclose(task._point, x, rtol=1e-6, atol=1e-9)


def nearest_in_metric(x: Any, w: Any) -> Any:
    """The z of the unit ball with the least sum of w (z - x)^2, by bisection for the multiplier."""
    if x @ x <= 1.0:
        return x
    low, high = 0.0, 1e12
    for _ in range(300):
        lam = np.sqrt(low * high) if low > 0.0 else high * 1e-6
        z = w * x / (w + lam)
        low, high = (lam, high) if z @ z > 1.0 else (low, lam)
    return z


def test_dog_with_true_gradients() -> None:
    book, seed = Book(4, domain=BALL), 10
    task = Task(book.problem, 5 * 40, seed)
    assert play(Player("p", "p", play_dog), task, {"cost": "calls"})["nfev"] == 200

    samples, x, G, r = Samples(book.problem, seed), np.zeros(4), 0.0, 0.01
    points = []
    for _ in range(40):
        g = x - 1.0 + samples.next()
        G += g @ g
        x = in_ball(x - r / np.sqrt(G) * g)
        r = max(r, np.sqrt(x @ x))
        points.append(x)
    # The polynomial-decay average of order 8 weighs point t by t (t + 1) ... (t + 7) / 8!, up to a factor.
    weights = np.array([np.prod([t + i for i in range(1, 9)], dtype=float) for t in range(40)])
    np.testing.assert_allclose(task._point, weights @ np.array(points) / weights.sum(), rtol=1e-9)


def test_gains() -> None:
    sqrt, linear = gains("sqrt", 1000), gains("linear", 1000)
    assert sqrt[0] == 1.0
    assert linear[-1] == pytest.approx(linear[0] / 1000)
    assert sqrt.sum() / linear.sum() == pytest.approx(4.0, rel=0.05)  # of like size: how far both can go


def test_the_size_of_slopes() -> None:
    """On a linear function it is sqrt(d) times the length of the slope, up to the draw of 50 directions."""
    problem = problems.load("noisy-quadratic")
    size = Task(problem, 100, 0).slope_size(1e-4)
    gradients = [problem.gradient(problem.x0, problem.sample(np.random.default_rng(j))) for j in range(200)]
    expected = np.sqrt(problem.d * np.mean([g @ g for g in gradients]))
    assert 0.6 < size / expected < 1.5
