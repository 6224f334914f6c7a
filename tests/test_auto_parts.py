"""Parts of `auto`: samples asked again, units, rounding, the two steps, and what it says in the end."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import poem_cma as pc
from poem_cma import problems
from poem_cma.auto import subspace
from poem_cma.auto.scale import followed
from poem_cma.auto.state import REPLAY, STEP
from poem_cma.problems import gaussian


def drive(opt: pc.Optimizer, F: Any) -> Counter[int]:
    """Run to the end; how often each xi was asked."""
    asked: Counter[int] = Counter()
    while (probe := opt.ask()) is not None:
        asked[probe.numbers[0]] += 1
        opt.tell(probe, [float(F(x, probe.numbers[0])) for x in probe.points])
    return asked


def linear(d: int, loss: Any, noise: float = 0.3) -> tuple[Any, Any]:
    """A dense regression with the given loss of the residual; F, and the distance from the solution."""
    goal = np.random.default_rng(3).normal(size=d)

    def F(x: np.ndarray, n: int) -> float:
        rng = np.random.default_rng(n)
        a = rng.normal(size=d)
        return float(loss(a @ (x - goal) - noise * rng.normal()))

    return F, lambda x: float(np.linalg.norm(x - goal) / np.linalg.norm(goal))


# Samples asked again


@pytest.mark.parametrize("loss", [np.abs, lambda r: 0.5 * r**2, lambda r: np.logaddexp(0.0, r) - 0.4 * r])
def test_samples_of_a_linear_model_are_asked_again(loss: Any) -> None:
    d = 40
    F, _ = linear(d, loss)
    opt = pc.Optimizer(np.zeros(d), budget=8000, seed=0)
    drive(opt, F)
    s = opt._state
    assert s.ridges
    assert s.replayed > 4 * s.kept  # several passes: a replay is cheap
    assert s.beside <= 1e-4 * s.along  # what is left is the curvature within a difference


def test_asking_again_pays_where_walks_are_dear() -> None:
    d = 60
    F, distance = linear(d, np.abs)
    ends = []
    for method in (pc.methods.auto(), pc.methods.auto(replay=False)):
        ends.append([])
        for seed in range(3):
            opt = pc.Optimizer(np.zeros(d), method=method, budget=10_000, seed=seed)
            drive(opt, lambda x, n, seed=seed: F(x, 10**6 * seed + n))
            ends[-1].append(distance(opt.result().x))
    assert max(ends[0]) < 0.7 * min(ends[1])


def test_samples_of_another_kind_are_not_asked_again() -> None:
    d = 20
    H = np.diag(np.linspace(1.0, 5.0, d))

    def F(x: np.ndarray, n: int) -> float:
        u = np.random.default_rng(n).normal(size=d)
        return float(0.5 * (x - 1.0) @ H @ (x - 1.0) + 3.0 * u @ x)  # the gradient turns as x moves

    opt = pc.Optimizer(np.zeros(d), budget=6000, seed=0)
    asked = drive(opt, F)
    assert not opt._state.ridges
    assert opt._state.replayed <= 9  # two looks were enough, the second after eight
    assert sum(count > 20 for count in asked.values()) == 0
    assert np.abs(opt.result().x - 1.0).max() < 1.0


def test_a_run_that_asks_again_goes_on_from_a_file(tmp_path: Any) -> None:
    F, _ = linear(12, np.abs)
    whole = pc.Optimizer(np.zeros(12), budget=3000, seed=0)
    drive(whole, F)
    opt = pc.Optimizer(np.zeros(12), budget=3000, seed=0)
    saved = 0
    while (probe := opt.ask()) is not None:
        opt.tell(probe, [F(x, probe.numbers[0]) for x in probe.points])
        if opt._state.kind == REPLAY and saved < 20:
            opt.save(tmp_path / "run")
            opt = pc.Optimizer.load(tmp_path / "run")
            saved += 1
    assert saved == 20
    assert opt.result().x.tobytes() == whole.result().x.tobytes()


# Units


@pytest.mark.parametrize("loss", [np.abs, lambda r: 0.5 * r**2])
def test_units_of_the_variables_do_not_matter(loss: Any) -> None:
    """With sizes from 1e-3 to 1e3 the run is nearly as good as with all equal; without the second ray it is not."""
    d = 20
    sizes = np.random.default_rng(0).permutation(np.geomspace(1e-3, 1e3, d))
    F, distance = linear(d, loss)

    def end(sizes: np.ndarray, **parts: bool) -> float:
        ends = []
        for seed in range(3):
            opt = pc.Optimizer(np.zeros(d), method=pc.methods.auto(**parts), budget=8000, seed=seed)
            drive(opt, lambda x, n, seed=seed: F(x * sizes, 10**6 * seed + n))
            ends.append(distance(opt.result().x * sizes))
        return max(ends)

    assert end(sizes) < max(2.0 * end(np.ones(d)), 0.1)
    assert end(sizes, units=False) > 0.5


# Rounding


def test_values_in_single_precision() -> None:
    """Half of the accuracy in double precision at least, though differences in float32 are coarse."""
    d = 20
    F, distance = linear(d, lambda r: 0.5 * r**2)
    ends = {}
    for kind in (np.float64, np.float32):
        ends[kind] = []
        for seed in range(3):
            opt = pc.Optimizer(np.zeros(d), budget=6000, seed=seed)
            drive(opt, lambda x, n, kind=kind, seed=seed: float(kind(F(x, 10**6 * seed + n))))
            assert (opt._state.eps > 1e-10) == (kind is np.float32)
            ends[kind].append(distance(opt.result().x))
    assert np.median(ends[np.float32]) < max(2.0 * np.median(ends[np.float64]), 0.1)


# The two steps


def test_bounds_that_matter_call_for_dual_averaging() -> None:
    def dual(domain: Any) -> bool:
        opt = pc.Optimizer(np.zeros(10), method=pc.methods.auto(newton=False), domain=domain, budget=2000, seed=0)
        drive(opt, lambda x, n: np.abs(x - 1.0).sum())
        return bool(opt._state.dual)

    assert dual(pc.Ball(1.0))
    assert dual(pc.Box(-1.0, 0.5))
    assert not dual(None)
    assert not dual(pc.Box(-1e6, 1e6))


def test_no_structure_costs_little() -> None:
    """Where there is nothing to learn, it is no worse than random directions alone."""
    d = 50
    F, distance = linear(d, np.abs, noise=1.0)
    ends = []
    for parts in ({}, {"walks": False, "subspace": False, "metric": False, "replay": False}):
        ends.append([])
        for seed in range(4):
            opt = pc.Optimizer(np.zeros(d), method=pc.methods.auto(**parts), budget=6000, seed=seed)
            drive(opt, lambda x, n, seed=seed: F(x, 10**6 * seed + n))
            ends[-1].append(distance(opt.result().x))
    assert np.mean(ends[0]) <= np.mean(ends[1])


# Parts that are switched off


def steps_of(d: int, F: Any, budget: int = 3000, **parts: bool) -> list[tuple[np.ndarray, list[np.ndarray]]]:
    """x and the points of every probe of a step."""
    opt = pc.Optimizer(np.zeros(d), method=pc.methods.auto(newton=False, **parts), budget=budget, seed=0)
    seen = []
    while (probe := opt.ask()) is not None:
        points = [x.copy() for x in probe.points]
        if opt._state.stage == STEP:
            seen.append((opt._state.x, points))
        opt.tell(probe, [float(F(x, probe.numbers[0])) for x in points])
    return seen


@pytest.mark.parametrize("walks", [True, False])
def test_without_a_random_base_differences_are_around_x(walks: bool) -> None:
    d = 20
    F, _ = linear(d, np.abs)

    def at_x(**parts: bool) -> int:
        bases = [(x, points[0]) for x, points in steps_of(d, F, walks=walks, replay=False, bisection=False, **parts)]
        return sum(x.tobytes() == base.tobytes() for x, base in bases)

    whole = len(steps_of(d, F, walks=walks, replay=False, bisection=False, base=False))
    assert at_x(base=False) == whole > 100
    assert at_x() == 0


def test_without_directions_a_step_takes_one() -> None:
    d = 40
    F, _ = linear(d, np.abs)
    sizes = {on: Counter(len(points) for _, points in steps_of(d, F, walks=False, directions=on)) for on in (1, 0)}
    assert set(sizes[0]) == {2}
    assert sizes[1].most_common(1)[0][0] == 5


def test_without_a_way_out_flat_samples_are_asked_everywhere() -> None:
    d = 40
    F, _ = linear(d, lambda r: max(0.0, abs(r) - 8.0))  # mostly flat
    for flat, sizes in ((False, {5}), (True, {2, 3})):
        seen = {len(points) for _, points in steps_of(d, F, walks=False, flat=flat)[:-1]}
        assert seen == sizes


def test_without_the_ray_no_step_is_long_at_first() -> None:
    """The solution is a hundred away: values along a ray say so at once, and POEM's first scale does not."""
    d = 20
    F, _ = linear(d, np.abs)
    far = {
        ray: max(float(np.linalg.norm(x)) for x, _ in steps_of(d, lambda x, n: F(x / 100.0, n), ray=ray)[:20])
        for ray in (True, False)
    }
    assert far[True] > 10.0
    assert far[False] < 1.0


def test_without_averaging_the_last_iterate_is_returned() -> None:
    d = 40
    F, _ = linear(d, np.abs)
    for averaging in (True, False):
        method = pc.methods.auto(averaging=averaging, pick=False, replay=False)
        opt = pc.Optimizer(np.zeros(d), method=method, budget=3000, seed=0)
        drive(opt, F)
        returned, last = opt.result().x, opt._state.x
        assert np.allclose(returned, last, rtol=1e-12, atol=1e-12) == (not averaging)


# What it says


def test_it_says_when_nothing_better_was_found() -> None:
    result = pc.minimize(
        lambda x: float(np.abs(x).sum()), np.zeros(30), method=pc.methods.auto(newton=False), budget=4000, seed=0
    )
    assert np.abs(result.x).sum() == 0.0
    assert "better than x0" in result.message or "handed over" in result.message


@pytest.mark.parametrize("budget", [400, 2000])  # without and with calls for a comparison
def test_where_nothing_changes_over_small_distances_pairs_far_apart_take_over(budget: int) -> None:
    """A function that counts: how many of 2000 examples a linear classifier gets wrong."""
    rng = np.random.default_rng(4)
    A, w = rng.normal(size=(2000, 10)), np.ones(10)
    y = A @ w > 0.0

    def wrong(x: Any) -> float:
        return float(np.mean((A @ x > 0.0) != y))

    x0 = w + 1.5 * rng.normal(size=10)
    result = pc.minimize(wrong, x0, budget=budget, seed=0)
    assert "not at all over short ones" in result.message
    assert wrong(result.x) < 0.1 * wrong(x0)


def test_it_says_when_the_scale_was_still_growing() -> None:
    result = pc.minimize(lambda x: float(-x.sum()), np.zeros(5), budget=3000, seed=0)  # no minimum at all
    assert "still moving further away" in result.message


def test_the_effective_dimension_is_estimated() -> None:
    d, rng = 60, np.random.default_rng(0)
    for rank in (1, 4, 60):
        U = np.linalg.qr(rng.normal(size=(d, rank)))[0]
        result = pc.minimize(
            lambda X, z, U=U: np.abs((X - 1.0) @ U @ z), np.zeros(d), sample=lambda r, k=rank: r.normal(size=k),
            budget=12_000, seed=0, vectorized=True,
        )  # fmt: skip
        assert result.history["effective_dimension"][-1] == pytest.approx(rank, rel=0.5)


@pytest.mark.parametrize(("name", "subspace"), [("squared-rank20-of-100", 20), ("squared-full-rank-100", 0)])
@pytest.mark.parametrize("seed", [1, 600])
def test_the_rank_of_the_gradients_is_judged_by_more_than_the_first(name: str, subspace: int, seed: int) -> None:
    """With seed 600 the first eight gradients of rank 20 look as if they filled the 100 dimensions."""
    history = problems.load(name).solve(budget=20_000, seed=seed, evaluate=0).history
    assert history["subspace"][-1] == subspace
    assert np.median(history["directions"][-5:]) == (1 if subspace else 100)  # old samples, or walks


@pytest.mark.parametrize(("kind", "d", "rank"), [("squared", 200, 10), ("absolute", 300, 8), ("squared", 150, 15)])
def test_directions_in_which_gradients_live_are_learned_at_once(kind: str, d: int, rank: int) -> None:
    history = gaussian.build(kind, d, rank).solve(budget=20_000, seed=0, evaluate=0).history
    late = history["nfev"] > 6000
    assert (history["subspace"][late] >= rank).all()
    fresh = late & (history["nfev"] < 15_000)  # later on old samples are asked again, along one direction
    assert np.median(history["directions"][fresh]) == 0.0  # beside these directions: two in one step of eight
    assert 0.1 < np.mean(history["directions"][fresh] == 2.0) < 0.15


def test_directions_that_never_end_are_not_learned_for_ever() -> None:
    """Gradients seem to be of low rank, and are not: their energy falls off, but none of it can be left out."""
    d, rng = 100, np.random.default_rng(0)
    A = np.linalg.qr(rng.normal(size=(d, d)))[0] / np.arange(1.0, d + 1.0)
    opt = pc.Optimizer(np.zeros(d), budget=20_000, seed=0)
    while (probe := opt.ask()) is not None:
        a = A @ np.random.default_rng(probe.numbers[0]).normal(size=d)
        opt.tell(probe, np.abs((probe.points - 1.0) @ a))
    assert opt._state.dimension < 10.0
    assert not opt._state.use_subspace
    assert opt._state.trial_calls < 0.15 * 20_000


def test_a_subspace_must_come_in_time() -> None:
    """18,250 calls are a thousand steps in 17 directions; along random ones, 22 steps tell as much as four of those."""
    opt = pc.Optimizer(np.zeros(100), budget=20_000)
    assert subspace.in_time(opt._state._replace(t=22 / 4 * 1000 / 3 - 1), 17.0, 18_250.0)
    assert not subspace.in_time(opt._state._replace(t=22 / 4 * 1000 / 3 + 1), 17.0, 18_250.0)


def test_the_scale_follows_only_what_is_more_than_chance() -> None:
    assert followed(1.0, 0.5, radial=0.9, radial_squares=1.0) == 1.0
    assert followed(1.0, 0.5, radial=1.1, radial_squares=1.0) == 0.5
    assert followed(1.0, 2.0, radial=-0.9, radial_squares=1.0) == 1.0
    assert followed(1.0, 2.0, radial=-1.1, radial_squares=1.0) == 2.0
    assert followed(1.0, 9.0, radial=-1.1, radial_squares=1.0) == 4.0
    assert followed(1.0, 0.5, radial=-5.0, radial_squares=1.0) == 1.0


@pytest.mark.parametrize("seed", range(6))
def test_a_variable_that_proves_steep_does_not_set_the_others_free(seed: int) -> None:
    """Far out a fourth power is steeper by orders of magnitude: all other variables then seem flat beside it."""
    xs = np.random.default_rng(3).normal(size=3)

    def fourth(x: np.ndarray, e: np.ndarray) -> float:
        return float(((x - xs) ** 4).sum() + 10.0 * e @ x)

    x = pc.minimize(fourth, np.zeros(3), sample=lambda r: r.normal(size=3), budget=600, seed=seed, evaluate=0).x
    assert ((x - xs) ** 4).sum() < 0.05 * (xs**4).sum()
