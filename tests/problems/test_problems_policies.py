"""The suite of policies: episodes are those of Gymnasium, and what a policy costs is known where it can be."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from poem_cma.problems.policies import BLACK_BOXES
from poem_cma.problems.suites import black_boxes

NAMES = list(BLACK_BOXES)
# The car is pushed where it is going, the second link against where the first is going.
SOLUTIONS = {
    "cartpole": [0.1, 0.5, 1.0, 1.0],
    "mountain-car": [0.0, 30.0, 0.0],
    "pendulum-features": [0.0, 2.1, 2.0, -11.8, -3.8, -0.2, -0.9, -9.1, -4.5],
    "acrobot": [0.0] * 4 + [1.0, 0.0] + [0.0] * 6 + [0.0] * 4 + [-1.0, 0.0],
}


def dot(w: Any, seen: Any) -> float:
    """The sum in the order of the weights, without what NumPy or Python 3.12 do to make it more exact."""
    total = w[0] * seen[0]
    for a, b in zip(w[1:], seen[1:], strict=True):
        total += a * b
    return float(total)


def cart_pole(w: Any, seen: Any) -> int:
    return int(dot(w, seen) > 0.0)


def mountain_car(w: Any, seen: Any) -> Any:
    return np.clip([w[0] * seen[0] + w[1] * seen[1] + w[2]], -1.0, 1.0)


def linear(w: Any, seen: Any) -> Any:
    return np.clip([dot(w, seen)], -2.0, 2.0)


def features(w: Any, seen: Any) -> Any:
    c, s, v = seen
    cubes = [c * c * v, s * (v / 8) ** 2, v * (v / 8) ** 2]
    return np.clip([dot(w, [c, s, v, c * s, c * v, s * v, *cubes])], -2.0, 2.0)


def network(w: Any, seen: Any) -> Any:
    y = w[40]
    for a, b, c, shift, weight in w[:40].reshape(8, 5):
        y += weight * math.tanh(dot([a, b, c], seen) + shift)
    return np.array([2.0 * math.tanh(y)])


def acrobot(w: Any, seen: Any) -> int:
    return int(np.argmax([dot(row, seen) for row in w.reshape(3, 6)]))


REFERENCES: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "cartpole": ("CartPole-v1", cart_pole),
    "mountain-car": ("MountainCarContinuous-v0", mountain_car),
    "pendulum-linear": ("Pendulum-v1", linear),
    "pendulum-features": ("Pendulum-v1", features),
    "pendulum-network": ("Pendulum-v1", network),
    "acrobot": ("Acrobot-v1", acrobot),
}


def gymnasium_return(name: str, x: Any, seed: int) -> float:
    gymnasium = pytest.importorskip("gymnasium", reason="the episodes are compared with those of Gymnasium")
    environment, policy = REFERENCES[name]
    env = gymnasium.make(environment)
    seen, _ = env.reset(seed=seed)
    total, over = 0.0, False
    while not over:
        seen, reward, terminated, truncated, _ = env.step(policy(np.asarray(x, dtype=float), seen.tolist()))
        total += float(reward)
        over = terminated or truncated
    return total


def needs_the_same_sine() -> None:
    angles = np.random.default_rng(0).uniform(-10.0, 10.0, 10_000)
    if not np.array_equal(np.sin(angles), [math.sin(a) for a in angles]):
        pytest.skip("NumPy's sine is not the C library's here: unstable episodes amplify the difference")


@pytest.mark.parametrize("name", REFERENCES)
def test_returns_are_those_of_gymnasium(name: str) -> None:
    if name.startswith(("pendulum", "acrobot")):
        needs_the_same_sine()
    box, rng = BLACK_BOXES[name](), np.random.default_rng(2)
    points = [box.x0, *(box.x0 + size * rng.standard_normal(box.d) for size in (0.3, 1.0, 1.0, 3.0, 10.0))]
    points += [np.array(SOLUTIONS[name])] if name in SOLUTIONS else []
    for x in points:
        for seed in map(int, rng.integers(2**32, size=2)):
            assert -box.fun(x, seed) == pytest.approx(gymnasium_return(name, x, seed), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "x", "seed"),
    [
        ("cartpole", [-0.3, 0.8, 1.8, 4.5], 366),  # leaves the track with the pole upright
        ("mountain-car", [0, 50, 0], 3),  # meets the wall
        ("mountain-car", [-0.5, 54.8, 0.087], 336),  # is at its greatest speed, to the left
        ("mountain-car", [0.5, 16.5, -0.24], 198),  # the same, and never arrives
        ("acrobot", [0, 0, 0, 0, -2.0, 0.6, *[0] * 10, 1.0, 1.9], 542),  # both links turn as fast as they may
        ("acrobot", [0, 0, 0, 0, 0.7, -0.6, *[0] * 10, 0.7, -0.2], 850),
    ],
)
def test_limits_are_those_of_gymnasium(name: str, x: Any, seed: int) -> None:
    if name == "acrobot":
        needs_the_same_sine()
    assert -BLACK_BOXES[name]().fun(x, seed) == pytest.approx(gymnasium_return(name, x, seed), rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_a_problem_is_what_its_record_says(name: str) -> None:
    box, again = BLACK_BOXES[name](), BLACK_BOXES[name]()
    rng = np.random.default_rng(1)
    assert (box.name, box.suite, box.domain, box.budgets) == (name, "policies", None, (300, 1000))
    assert box.shared == (not name.endswith("-own"))
    np.testing.assert_array_equal(box.x0, again.x0)
    for _ in range(3):
        x, xi = box.x0 + rng.standard_normal(box.d), box.sample(rng)
        assert type(xi) is int
        assert 0 <= xi < 2**31
        value = box.fun(x, xi)
        assert type(value) is float
        assert value == box.fun(x.tolist(), xi) == again.fun(x, xi)
    judged = box.judge(box.x0)
    assert judged == box.judge(box.x0) == again.judge(box.x0)
    assert judged == BLACK_BOXES[name.removesuffix("-own")]().judge(box.x0)
    assert box.score(box.x0, best=judged - 1.0) == 1.0


def test_the_sizes_are_those_of_the_policies() -> None:
    assert black_boxes("policies") == NAMES
    sizes = {name: BLACK_BOXES[name]().d for name in REFERENCES}
    assert list(sizes.values()) == [4, 3, 3, 9, 41, 18]
    assert all(np.any(BLACK_BOXES[name]().x0) == (name == "pendulum-network") for name in REFERENCES)


def test_richer_policies_contain_the_linear_one() -> None:
    box, rng = BLACK_BOXES["pendulum-linear"](), np.random.default_rng(4)
    unused = np.zeros(35)
    for _ in range(5):
        w, xi = 0.01 * rng.standard_normal(3), box.sample(rng)
        value = box.fun(w, xi)
        assert BLACK_BOXES["pendulum-features"]().fun(np.r_[w, np.zeros(6)], xi) == value
        # 2 tanh(5e3 tanh(1e-4 s)) is s but for a part of order s^2, here at most 0.01^2.
        small = np.r_[1e-4 * w, 0.0, 5e3]
        assert BLACK_BOXES["pendulum-network"]().fun(np.r_[small, unused, 0.0], xi) == pytest.approx(value, rel=1e-3)


def test_what_x0_costs() -> None:
    assert -10.0 < BLACK_BOXES["cartpole"]().judge(np.zeros(4)) < -9.0
    assert BLACK_BOXES["mountain-car"]().judge(np.zeros(3)) == 0.0
    assert BLACK_BOXES["acrobot"]().judge(np.zeros(18)) == 500.0
    pendulum = BLACK_BOXES["pendulum-linear"]().judge(np.zeros(3))
    assert 1000.0 < pendulum < 1400.0
    assert BLACK_BOXES["pendulum-features"]().judge(np.zeros(9)) == pendulum
    assert BLACK_BOXES["pendulum-network"]().judge(np.zeros(41)) == pendulum


@pytest.mark.parametrize(
    ("name", "worst"), [("cartpole", -499.0), ("mountain-car", -90.0), ("pendulum-features", 250.0), ("acrobot", 100.0)]
)
def test_there_are_policies_that_solve_it(name: str, worst: float) -> None:
    assert BLACK_BOXES[name]().judge(SOLUTIONS[name]) < worst


@pytest.mark.parametrize(("name", "scale"), [("cartpole", 7.0), ("acrobot", 0.01)])
def test_only_the_signs_of_scores_matter(name: str, scale: float) -> None:
    box, rng = BLACK_BOXES[name](), np.random.default_rng(3)
    for _ in range(5):
        x, xi = rng.standard_normal(box.d), box.sample(rng)
        assert box.fun(scale * x, xi) == box.fun(x, xi)


def test_the_first_of_tied_torques_is_applied() -> None:
    box, none = BLACK_BOXES["acrobot"](), np.zeros(6)
    row = np.array(SOLUTIONS["acrobot"][:6])
    for seed in range(5):
        swung = box.fun(np.r_[row, none, -row], seed)
        assert swung < 200.0
        assert box.fun(np.r_[row, row, -row], seed) == swung
        assert box.fun(np.r_[row, -row, -row], seed) == box.fun(np.r_[row, -row, none], seed) != swung


def test_weights_that_are_not_finite_give_a_value() -> None:
    for name in REFERENCES:
        box = BLACK_BOXES[name]()
        for bad in (np.inf, -np.inf, np.nan, 1e300):
            assert type(box.fun(np.full(box.d, bad), 1)) is float


def test_gymnasium_is_not_needed() -> None:
    code = (
        "import sys; sys.modules['gymnasium'] = None\n"
        "from poem_cma.problems.policies import BLACK_BOXES\n"
        "boxes = [build() for build in BLACK_BOXES.values()]\n"
        "print(*(box.fun(box.x0, 1) for box in boxes))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert [float(value) for value in done.stdout.split()] == [
        box.fun(box.x0, 1) for box in (build() for build in BLACK_BOXES.values())
    ]
