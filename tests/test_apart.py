"""Pairs far apart, for noise that cannot be shared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import poem_cma as pc

Function = Callable[[np.ndarray], float]


def measured(f: Function, noise: float, seed: int) -> Function:
    """F with fresh noise at every call."""
    rng = np.random.default_rng(seed)
    return lambda x: f(x) + noise * rng.standard_normal()


def apart(f: Function, x0: np.ndarray, noise: float, budget: int, seed: int, method: str = "auto") -> pc.Result:
    return pc.minimize(
        measured(f, noise, 100 + seed), x0, method=method, paired=False, budget=budget, seed=seed, evaluate=0
    )


def gap(f: Function, x0: np.ndarray, noise: float, budget: int, seeds: range, method: str = "auto") -> float:
    """The median over seeds of what is left of the gap at x0; f is least where it is 0."""
    return float(np.median([f(apart(f, x0, noise, budget, seed, method).x) / f(x0) for seed in seeds]))


def bowl(x: np.ndarray) -> float:
    return 0.5 * float(((x - 0.3) ** 2 * np.geomspace(0.3, 3.0, len(x))).sum())


def test_a_noisy_bowl_is_found_to_a_hundredth_where_poem_has_hardly_begun() -> None:
    x0 = np.zeros(20)
    assert gap(bowl, x0, 0.1, 20_000, range(5)) < 0.01
    assert gap(bowl, x0, 0.1, 20_000, range(2), method="poem") > 0.05


@pytest.mark.parametrize("far", [1e-3, 1e3])
def test_the_scale_of_x_is_found(far: float) -> None:
    x0 = np.zeros(20)
    assert gap(lambda x: bowl(x / far), x0, 0.1, 10_000, range(5)) < 0.05


def test_powers_of_two_change_no_bit() -> None:
    def run(factor: float) -> bytes:
        noise = np.random.default_rng(7)
        opt = pc.Optimizer(np.zeros(6), paired=False, budget=2000, seed=3)
        while (probe := opt.ask()) is not None:
            opt.tell(probe, [factor * (bowl(x) + 0.1 * noise.standard_normal()) for x in probe.points])
        return opt.result().x.tobytes()

    assert run(1.0) == run(2.0**40) == run(2.0**-40)


def skewed(x: np.ndarray) -> float:
    """Steep on one side of the optimum, flat on the other; least at 0, where it is 0."""
    return float((np.exp(np.minimum(x, 50.0)) - x - 1.0).mean())


def test_the_distance_shrinks_where_the_function_is_lopsided() -> None:
    result = apart(skewed, np.full(10, -2.0), 0.02, 30_000, 0)
    smoothing = result.history["smoothing"]
    assert smoothing[-1] < 0.5 * smoothing.max()
    assert gap(skewed, np.full(10, -2.0), 0.02, 30_000, range(3)) < 0.01


def test_the_distance_grows_where_the_function_is_symmetric() -> None:
    smoothings = [apart(bowl, np.zeros(20), 0.1, 20_000, seed).history["smoothing"] for seed in range(3)]
    assert np.median([h[-1] / h[0] for h in smoothings]) > 1.9


def test_the_gradient_is_unbiased_on_a_plane() -> None:
    """z-scores of the sum of many estimates, in every coordinate."""
    d, slope, noise = 7, np.arange(1.0, 8.0), np.random.default_rng(1)
    opt = pc.Optimizer(np.zeros(d), paired=False, budget=30_000, seed=5)
    gradients, before = [], np.zeros(d)
    while (probe := opt.ask()) is not None:
        opt.tell(probe, [float(slope @ x) + noise.standard_normal() for x in probe.points])
        s = opt._state
        if s.t > len(gradients):
            gradients.append(s.unit * (s.s - before))
            before = s.s
    G = np.array(gradients)
    z = (G.mean(axis=0) - slope) / (G.std(axis=0) / np.sqrt(len(G)))
    assert len(G) > 1500
    assert np.abs(z).max() < 4.0


def test_failures_and_heavy_tails_do_not_stop_it() -> None:
    rng = np.random.default_rng(0)

    def unreliable(x: np.ndarray) -> float:
        return np.nan if rng.random() < 0.2 else bowl(x) + 0.05 * rng.standard_t(2.5)

    result = pc.minimize(unreliable, np.zeros(10), budget=10_000, seed=0, evaluate=0)
    assert result.failures > 1500
    assert bowl(result.x) < 0.1 * bowl(np.zeros(10))


def test_no_point_leaves_a_domain_that_is_closed() -> None:
    domain, noise = pc.Box(np.zeros(5), np.ones(5), inside=True), np.random.default_rng(0)
    opt = pc.Optimizer(np.full(5, 0.9), domain=domain, paired=False, budget=4000, seed=0)
    while (probe := opt.ask()) is not None:
        assert probe.points.min() >= 0.0
        assert probe.points.max() <= 1.0
        opt.tell(probe, [bowl(x) + 0.1 * noise.standard_normal() for x in probe.points])
    assert bowl(opt.result().x) < 0.05 * bowl(np.full(5, 0.9))


def test_the_points_of_a_pair_share_their_sample_unless_told_otherwise() -> None:
    noise = np.random.default_rng(0)
    for paired in (True, False):
        opt = pc.Optimizer(np.zeros(5), paired=paired, budget=3000, seed=0)
        numbers: list[int] = []
        while (probe := opt.ask()) is not None:
            if opt._state.run.method.name == "apart" and opt._state.stage == "step":
                first = [list(probe.numbers[:2])]
                assert (len(set(first[0])) == 1) is paired
                numbers += sorted(set(probe.numbers))
            opt.tell(probe, [bowl(x) + noise.standard_normal() for x in probe.points])
        assert len(numbers) == len(set(numbers)) > 100  # no sample is used twice


def test_a_saved_run_goes_on_bit_for_bit(tmp_path: Path) -> None:
    def value(x: np.ndarray, number: int, place: int) -> float:
        return bowl(x) + 0.1 * float(np.random.default_rng([number, place]).standard_normal())

    def run(opt: pc.Optimizer, until: int) -> pc.Optimizer:
        while opt.nfev < until and (probe := opt.ask()) is not None:
            opt.tell(probe, [value(x, n, k) for k, (x, n) in enumerate(zip(probe.points, probe.numbers, strict=True))])
        return opt

    whole = run(pc.Optimizer(np.zeros(8), budget=3000, seed=2, batch=2), 3000)
    assert whole._state.run.method.name == "apart"
    for moment in (30, 150, 1111):
        run(pc.Optimizer(np.zeros(8), budget=3000, seed=2, batch=2), moment).save(tmp_path / "run.poem")
        again = run(pc.Optimizer.load(tmp_path / "run.poem"), 3000)
        assert again.result().x.tobytes() == whole.result().x.tobytes()


def test_one_dimension_and_few_calls() -> None:
    assert gap(bowl, np.zeros(1), 0.01, 600, range(5)) < 0.2
    for budget in range(20, 60):
        assert apart(bowl, np.zeros(3), 0.1, budget, 0).nfev <= budget


def test_a_function_without_any_noise_is_solved_as_well() -> None:
    assert gap(bowl, np.zeros(10), 0.0, 10_000, range(1)) < 1e-4


def test_noise_that_vanishes_at_the_start_is_no_trap() -> None:
    def regret(x: np.ndarray) -> float:  # of a newsvendor: how much worse than stocking the right quantile of demand
        best = np.quantile(days, 0.6, axis=0)
        return float(2.0 * (x - best).sum() - 5.0 * (np.minimum(x, days) - np.minimum(best, days)).mean(axis=0).sum())

    days = np.random.default_rng(1).gamma(4.0, [5, 10, 15, 20], size=(20_000, 4))
    result = pc.minimize(
        lambda x, demand: 2.0 * x.sum() - 5.0 * np.minimum(x, demand).sum(), np.zeros(4),
        sample=lambda rng: rng.gamma(4.0, [5, 10, 15, 20]), paired=False, budget=5000, seed=0, evaluate=0,
    )  # fmt: skip
    assert regret(result.x) < 0.05 * regret(np.zeros(4))


@pytest.mark.parametrize("flat", [0.9, 0.97])
@pytest.mark.parametrize("d", [3, 30])
def test_samples_that_are_mostly_flat_are_not_taken_for_steps(flat: float, d: int) -> None:
    """The first may all be flat, at one distance, and one of the next is not, at another."""

    def rare(x: np.ndarray, xi: float) -> float:
        return 0.0 if xi < flat else float(((x - 1.0) ** 2).sum()) / (1.0 - flat)

    for seed in range(6):
        result = pc.minimize(rare, np.zeros(d), sample=lambda rng: rng.random(), budget=3000, seed=seed, evaluate=0)
        assert "far apart" not in result.message
        assert ((result.x - 1.0) ** 2).sum() < 0.1 * d


def test_it_is_rarely_worse_than_x0() -> None:
    """In 60 dimensions the first scale is far too large here: the run begins again at a smaller one, or returns x_0."""
    d = 60
    A = np.random.default_rng(0).normal(size=(500, d))
    solution = np.random.default_rng(1).normal(size=d) / np.sqrt(d)

    def error(x: np.ndarray) -> float:
        return float(np.abs(A @ (x - solution)).mean())

    worse = 0
    for seed in range(12):
        noise = np.random.default_rng(seed)

        def noisy(x: np.ndarray, i: int, noise: np.random.Generator = noise) -> float:
            return float(abs(A[i] @ (x - solution)) + noise.normal())

        result = pc.minimize(
            noisy, np.zeros(d), sample=lambda rng: int(rng.integers(500)), budget=6000, seed=seed, evaluate=0
        )
        assert error(result.x) < 1.5 * error(np.zeros(d))
        worse += error(result.x) > 1.2 * error(np.zeros(d))
        if not result.x.any():
            assert "better than x0" in result.message
    assert worse <= 1


def test_a_short_run_that_has_gone_astray_finds_back() -> None:
    """A function that rises steeply on one side leads the first long steps far away."""
    a = np.random.default_rng(1).normal(size=10)

    def lopsided(x: np.ndarray) -> float:
        return float((np.exp(np.clip(x - a, -50.0, 50.0)) - (x - a) - 1.0).sum())

    x0 = np.zeros(10)
    ends = [lopsided(apart(lopsided, x0, 0.5 * lopsided(x0), 1000, seed).x) / lopsided(x0) for seed in range(8)]
    assert np.median(ends) < 0.3
    assert max(ends) < 1.0


def test_it_looks_further_out_on_the_same_samples() -> None:
    """Slopes of other samples would say nothing of how a slope grows."""
    opt = pc.Optimizer(np.zeros(12), budget=3000, seed=0, paired=True)
    asked: list[tuple[str, int, list[int]]] = []
    rng = np.random.default_rng(0)
    while not opt.done and opt.nfev < 1500:
        probe = opt.ask()
        assert probe is not None
        asked.append((opt._state.stage, opt._state.samples, probe.numbers))
        opt.tell(probe, [float(x @ x + rng.normal()) for x in probe.points])
    looks = [numbers for stage, _, numbers in asked if stage == "look"]
    others = {number for stage, _, numbers in asked if stage not in ("look", "start", "ray") for number in numbers}
    assert len(looks) > 2
    assert all(numbers == looks[0] for numbers in looks)
    assert not others & set(looks[0])


# As far apart as noise asks for


@pytest.mark.parametrize("noise", [1e-3, 0.1])
def test_pairs_come_closer_where_there_is_little_noise(noise: float) -> None:
    """A funnel that is smoothed over a long distance has its minimum elsewhere."""
    goal = np.random.default_rng(4).normal(size=10)

    def funnel(x: np.ndarray) -> float:
        away = x - goal
        return float(np.maximum(away, -0.2 * away).sum())

    x0 = np.zeros(10)
    results = [apart(funnel, x0, noise * funnel(x0), 4000, seed) for seed in range(5)]
    assert np.median([funnel(r.x) / funnel(x0) for r in results]) < (0.05 if noise < 0.01 else 0.3)
    shortest = [r.history["smoothing"].min() / r.history["smoothing"][0] for r in results]
    assert np.median(shortest) < (0.1 if noise < 0.01 else 0.6)


def test_pairs_go_apart_again_as_slopes_vanish() -> None:
    """On a bowl nothing is gained by short pairs; near its bottom noise would drown what they see."""
    history = apart(bowl, np.zeros(20), 0.001 * bowl(np.zeros(20)), 20_000, 0).history["smoothing"]
    assert history.min() < 0.3 * history[0]
    assert history[-1] > 2.0 * history.min()


def noisy_regression(d: int, own: float, seed: int) -> tuple[Callable[..., float], Callable[..., int], Function]:
    """Absolute errors on one of many examples, with noise of each call's own; and their mean."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(300, d))
    y = A @ (rng.normal(size=d) / np.sqrt(d)) + 0.1 * rng.normal(size=300)
    noise = np.random.default_rng(100 + seed)

    def error(x: np.ndarray, i: int) -> float:
        return float(abs(A[i] @ x - y[i])) + own * noise.standard_normal()

    return error, lambda rng: int(rng.integers(300)), lambda x: float(np.abs(A @ x - y).mean())


@pytest.mark.parametrize("own", [1e-3, 1e-2, 0.1])
def test_a_little_noise_beside_that_of_samples_costs_little(own: float) -> None:
    """Samples are shared by the points of a pair, and what is not shared is little: it must not be taken for all."""
    ends = []
    for seed in range(5):
        error, sample, mean = noisy_regression(10, own, seed)
        result = pc.minimize(error, np.zeros(10), sample=sample, budget=4000, seed=seed, evaluate=0)
        assert "different values" in result.message
        ends.append(mean(result.x) / mean(np.zeros(10)))
    assert np.median(ends) < 0.2  # at best 0.08, and 0.1 without such noise


def test_the_noise_of_a_value_is_told_from_that_of_samples() -> None:
    for own, within in ((0.01, True), (10.0, False)):
        error, sample, _ = noisy_regression(6, own, 0)
        opt = pc.Optimizer(np.zeros(6), budget=3000, seed=0)
        rng = np.random.default_rng(0)
        drawn: dict[int, int] = {}
        while opt._state.run.method.name != "apart" or opt._state.stage == "repeat":
            probe = opt.ask()
            assert probe is not None
            opt.tell(probe, [error(x, drawn.setdefault(n, sample(rng))) for x, n in zip(probe.points, probe.numbers)])  # noqa: B905
        s = opt._state
        assert s.within == within
        assert 0.5 * own < s.noise * s.unit < 2.0 * own


def test_samples_that_fall_for_ever_set_no_scale() -> None:
    """Each of them is a hinge, which is straight beyond its kink, whatever way one goes."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(20, 8))
    y = np.sign(A @ rng.normal(size=8))
    noise = np.random.default_rng(1)

    def hinge(x: np.ndarray, i: int) -> float:
        return float(max(0.0, 1.0 - y[i] * (A[i] @ x))) + 1e-3 * noise.standard_normal()

    losses = []
    for seed in range(8):
        result = pc.minimize(
            hinge, np.zeros(8), sample=lambda rng: int(rng.integers(20)), budget=2000, seed=seed, evaluate=0
        )
        assert np.abs(result.x).max() < 1e3
        losses.append(np.maximum(0.0, 1.0 - y * (A @ result.x)).mean())
    assert np.median(losses) < 0.2  # 1 at x0; a run in twenty or so stays near it


def test_noise_of_zeros_and_ones_is_seen() -> None:
    """Half of the calls at one and the same point agree by chance."""
    for seed in range(12):
        noise = np.random.default_rng(100 + seed)
        result = pc.minimize(
            lambda x, noise=noise: float(abs(x[0] - 3.0) + abs(x[1] + 2.0) + noise.integers(2)),
            np.zeros(2), domain=pc.Box(-10.0, 10.0), budget=3000, seed=seed, evaluate=0,
        )  # fmt: skip
        assert "gave different values" in result.message
        assert abs(result.x[0] - 3.0) + abs(result.x[1] + 2.0) < 1.0


# Functions of whole numbers


@pytest.mark.parametrize("x0", [0.0, 0.3])
@pytest.mark.parametrize("power", [1, 2])
def test_a_function_of_whole_numbers_is_solved(power: int, x0: float) -> None:
    goal = np.array([3, -7, 12, 0, 5, -2, 9, 1])

    def away(x: np.ndarray) -> float:
        return float((np.abs(np.round(x) - goal) ** power).sum())

    results = [pc.minimize(away, np.full(8, x0), budget=1000, seed=seed, evaluate=0) for seed in range(5)]
    assert np.median([away(r.x) for r in results]) == 0.0
    assert all("whole numbers" in r.message for r in results)


def test_whole_orders_for_random_demand() -> None:
    """A newsvendor who orders whole units: most of what is above the least cost is gone."""
    rng = np.random.default_rng(0)
    demands = np.floor(rng.exponential(4.0, size=(4000, 6)))

    def cost(x: np.ndarray, demand: np.ndarray) -> float:
        missing = demand - np.round(x)
        return float((np.maximum(-missing, 0.0) + 3.0 * np.maximum(missing, 0.0)).sum())

    def mean(x: np.ndarray) -> float:
        return float(np.mean([cost(x, demand) for demand in demands]))

    least = mean(np.quantile(demands, 0.75, axis=0))
    x0 = np.zeros(6)
    ends = []
    for seed in range(5):
        result = pc.minimize(cost, x0, sample=lambda r: demands[r.integers(4000)], budget=5000, seed=seed, evaluate=0)
        ends.append((mean(result.x) - least) / (mean(x0) - least))
    assert np.median(ends) < 0.1
    assert max(ends) < 0.3


@pytest.mark.parametrize("offset", [1e6, 1e9])
def test_rounding_is_not_taken_for_steps(offset: float) -> None:
    """Differences that drown in rounding over short distances do not vanish over a hundred times as long ones."""
    result = pc.minimize(lambda x: offset + float(((x - 3.0) ** 2).sum()), np.zeros(5), budget=3000, seed=0, evaluate=0)
    assert "whole numbers" not in result.message
    assert np.abs(result.x - 3.0).max() < 0.1


def test_a_function_that_is_steep_on_one_side_is_not_left_biased() -> None:
    """Pairs at twice the distance have a quarter of the noise and four times the bias: they show it soon."""
    goal = np.random.default_rng(4).normal(size=4)

    def lopsided(x: np.ndarray) -> float:
        return float((np.exp(np.clip(2.0 * (x - goal), -50.0, 50.0)) - 2.0 * (x - goal) - 1.0).sum())

    x0 = np.zeros(4)
    ends = [lopsided(apart(lopsided, x0, 0.3 * lopsided(x0), 20_000, seed).x) / lopsided(x0) for seed in range(5)]
    assert np.median(ends) < 0.003


def test_tests_are_inwards_first_and_outwards_then() -> None:
    opt = pc.Optimizer(np.zeros(6), budget=4000, seed=0, paired=False)
    rng = np.random.default_rng(0)
    ratios = []
    while (probe := opt.ask()) is not None:
        s = opt._state
        if s.stage == "step" and len(probe.points) == 14:  # six pairs, and one more
            ratios.append(np.linalg.norm(probe.points[-1] - probe.points[-2]) / (2.0 * s.mu))
        opt.tell(probe, [float(((x - 1.0) ** 2).sum() + 0.1 * rng.normal()) for x in probe.points])
    assert np.allclose(ratios[:16], 0.5)
    assert np.allclose(ratios[16:], 2.0)
    assert len(ratios) > 40
