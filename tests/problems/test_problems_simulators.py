"""SimOpt's simulators as black boxes: F is a function of x and xi, seeds are shared, and judges are the means of F."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from problems import refuses_to_build_without
from scipy import integrate, special, stats

import poem_cma as pc
from poem_cma.domains.sets import Simplex
from poem_cma.problems.black_box import BlackBox
from poem_cma.problems.simulators import BLACK_BOXES, batches, exact
from poem_cma.problems.simulators.simulation import HIGHEST, Simulation, sample

NAMES = [name for name in BLACK_BOXES if not name.endswith("-own")]

#: The number of replications of each judge that is a mean.
REPLICATIONS = {"sscont-1": 20_000, "network-1": 4000, "tableallocation-1": 20_000}


@pytest.fixture(scope="module", params=NAMES)
def box(request: Any) -> BlackBox:
    pytest.importorskip("simopt", reason="the simulators need simoptlib")
    return BLACK_BOXES[request.param]()


def load(name: str) -> BlackBox:
    pytest.importorskip("simopt", reason="the simulators need simoptlib")
    return BLACK_BOXES[name]()


def inner(box: BlackBox, seed: int, share: float = 0.1) -> np.ndarray:
    """A point of the domain away from x0 and from the bounds."""
    rng = np.random.default_rng(seed)
    if isinstance(box.domain, Simplex):
        return (1.0 - share) * box.x0 + share * rng.dirichlet(np.ones(box.d))
    away = box.x0 + share * (1.0 + np.abs(box.x0)) * rng.uniform(0.5, 1.0, box.d)
    return away if box.domain is None else np.asarray(box.domain.project(away))


def draws(number: int) -> range:
    """Values of xi that no run draws."""
    return range(HIGHEST, HIGHEST + number)


def test_every_simulator_is_there_twice() -> None:
    assert len(NAMES) == 8
    assert set(BLACK_BOXES) == {name + ending for name in NAMES for ending in ("", "-own")}


def test_equal_xi_give_the_equal_value_whatever_was_evaluated_before(box: BlackBox) -> None:
    x, y = inner(box, 0, 0.5), inner(box, 1)
    first = [box.fun(x, xi) for xi in range(20)]
    box.fun(y, 17)
    assert [box.fun(x, xi) for xi in reversed(range(20))] == first[::-1]
    assert len(set(first)) > 10
    assert all(isinstance(value, float) for value in first)


def test_building_it_again_gives_the_same_problem(box: BlackBox) -> None:
    again, own = BLACK_BOXES[box.name](), BLACK_BOXES[f"{box.name}-own"]()
    x = inner(box, 2)
    assert box.judge(x) == again.judge(x) == own.judge(x)
    assert box.fun(x, 7) == again.fun(x, 7) == own.fun(x, 7)
    assert (box.shared, own.shared) == (True, False)
    np.testing.assert_array_equal(box.x0, again.x0)


def test_x0_is_in_the_domain(box: BlackBox) -> None:
    if box.domain is not None:
        np.testing.assert_allclose(box.domain.project(box.x0), box.x0, atol=1e-15)


def test_seeds_couple_points(box: BlackBox) -> None:
    x, y = inner(box, 3), inner(box, 4)
    at_x = np.array([box.fun(x, xi) for xi in draws(300)])
    at_y = np.array([box.fun(y, xi) for xi in draws(300)])
    assert np.var(at_x - at_y) < 0.6 * (np.var(at_x) + np.var(at_y))


def test_the_judge_is_the_mean_of_the_simulator(box: BlackBox) -> None:
    number = 400 if box.name == "network-1" else 2000
    x = inner(box, 5)
    values = np.array([box.fun(x, xi) for xi in draws(number)])
    error = values.std() * np.sqrt(1.0 / number + 1.0 / REPLICATIONS.get(box.name, np.inf))
    assert abs(values.mean() - box.judge(x)) < 4.0 * error


def test_xi_of_a_run_is_below_those_of_a_check() -> None:
    rng = np.random.default_rng(0)
    xi = [sample(rng) for _ in range(1000)]
    assert min(xi) >= 0
    assert max(xi) < HIGHEST
    assert len(set(xi)) == 1000


def test_a_simulation_can_be_sent_to_another_process(box: BlackBox) -> None:
    x = inner(box, 6)
    assert pickle.loads(pickle.dumps(box.fun))(x, 9) == box.fun(x, 9)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "example-1"])
def test_a_short_run_stays_in_the_domain(name: str) -> None:
    box = load(name)
    asked: list[np.ndarray] = []

    def fun(x: np.ndarray, xi: int) -> float:
        asked.append(np.array(x))
        return box.fun(x, xi)

    pc.minimize(fun, box.x0, sample=box.sample, domain=box.domain, budget=60, seed=0)
    assert 35 < len(asked) <= 60  # where x0 is the result, it is measured once
    for x in asked:
        np.testing.assert_allclose(box.domain.project(x), x, atol=1e-12)


def test_example_1_is_a_sum_of_squares_and_a_number_of_xi_alone() -> None:
    box = load("example-1")
    noise = [box.fun(np.zeros(2), xi) for xi in range(2000)]
    assert box.judge(np.array([3.0, 4.0])) == 25.0
    assert box.fun(np.array([3.0, 4.0]), 11) == pytest.approx(25.0 + noise[11])
    assert stats.kstest(noise, "norm").pvalue > 1e-3


def test_example_2_is_least_at_the_published_point() -> None:
    box = load("example-2")
    assert box.judge(np.array([1.0, 2.0, 3.0, 4.0])) == 0.0
    assert box.judge(box.x0) == 30.0


def test_the_newsvendor_orders_the_critical_quantile() -> None:
    box = load("cntnews-1")
    best = (0.5 ** (-1 / 20) - 1) ** 0.5  # P(D > best) = 1/2, as (9 - 5) / (9 - 1) = 1/2
    assert best == pytest.approx(0.1878, abs=1e-4)
    values = [box.judge(np.array([best + h])) for h in (-1e-3, 0.0, 1e-3)]
    assert values[1] == min(values)
    sold = integrate.quad(lambda t: (1 + t * t) ** -20, 0.0, best)[0]
    assert values[1] == pytest.approx(-(8.0 * sold - 4.0 * best), rel=1e-9)


def test_the_true_parameters_have_the_largest_likelihood() -> None:
    box = load("paramesti-1")
    truth = np.array([2.0, 5.0])
    assert all(box.judge(truth + h) > box.judge(truth) for h in 0.05 * np.vstack([np.eye(2), -np.eye(2)]))


@pytest.mark.parametrize("x", [(1.0, 1.0), (0.1, 0.1), (10.0, 10.0), (2.0, 5.0)])
def test_the_mean_log_likelihood_is_its_integral(x: tuple[float, float]) -> None:
    def inside(y: float) -> float:
        value = (x[0] * y - 1.0) * special.psi(2.0 * y) - special.gammaln(x[0] * y)
        return float(stats.gamma.pdf(y, 5.0) * value)

    rest = (x[1] - 1.0) * special.psi(5.0) - special.gammaln(x[1]) - 15.0
    whole = integrate.quad(inside, 0.0, 80.0, epsabs=1e-11, limit=400)[0] + rest
    assert exact.log_likelihood([2.0, 5.0], x) == pytest.approx(whole, abs=1e-7)


def test_durations_of_small_projects() -> None:
    one_after_the_other = exact.duration([(1, 2), (2, 3)])
    side_by_side = exact.duration([(1, 2)] * 3)
    assert one_after_the_other([2.0, 5.0]) == pytest.approx(7.0)
    assert side_by_side([1.0] * 3) == pytest.approx(1.0 + 1 / 2 + 1 / 3)
    both = exact.duration([(1, 2), (1, 2)])([2.0, 5.0])
    assert both == pytest.approx(2.0 + 5.0 - 1.0 / (1 / 2 + 1 / 5))  # E max = E a + E b - E min


def test_tables_are_whole_and_fit_into_the_restaurant() -> None:
    simulation = load("tableallocation-1").fun
    assert isinstance(simulation, Simulation)
    seats = np.array([2, 4, 6, 8])
    rng = np.random.default_rng(0)
    for x in rng.uniform(-3.0, 30.0, (200, 4)):
        numbers = simulation.point(x)
        np.testing.assert_array_equal(numbers, np.rint(numbers))
        assert (numbers >= 0).all()
        assert numbers @ seats <= 80
    np.testing.assert_array_equal(simulation.point(np.array([10.4, 4.6, 4.0, 2.0])), [10, 5, 4, 2])
    np.testing.assert_array_equal(simulation.point(np.array([20.0, 10.0, 8.0, 4.0])), [10, 5, 4, 2])


def streams(box: BlackBox, xi: int) -> list[Any]:
    """The generators of one replication."""
    found = [type(stream)() for stream in box.fun.streams]  # type: ignore[attr-defined]
    for i, stream in enumerate(found):
        stream.start_fixed_s_ss_sss([0, i, xi])
    return found


def of_inventory(box: BlackBox, xi: int) -> tuple[Any, ...]:
    from simopt.input_models import Poisson

    leads = Poisson()
    demand, leads.rng = streams(box, xi)
    return [demand.expovariate(0.01) for _ in range(120)], [leads.random(6.0) for _ in range(120)]


def of_network(box: BlackBox, xi: int) -> tuple[Any, ...]:
    gaps, routes, transits = streams(box, xi)
    return (
        [gaps.expovariate(1.0) for _ in range(1000)],
        [routes.random() for _ in range(1000)],
        [transits.random() for _ in range(1000)],
    )


def of_tables(box: BlackBox, xi: int) -> tuple[Any, ...]:
    from simopt.input_models import Poisson

    count, shares = Poisson(), np.cumsum(box.fun.factors["lambda"])  # type: ignore[attr-defined]
    count.rng, sizes, stays = streams(box, xi)
    number = count.random(103)
    times = np.full(200, -1.0)
    times[:number] = 60.0 * np.sort([count.rng.uniform(0.0, 5.0) for _ in range(number)])
    kinds = [np.searchsorted(shares, sizes.random() * shares[-1], side="right") for _ in range(200)]
    return times, kinds, [stays.expovariate(1.0) for _ in range(200)]


@pytest.mark.parametrize(
    ("name", "run", "numbers", "sign"),
    [
        ("sscont-1", batches.inventory, of_inventory, 1.0),
        ("network-1", batches.network, of_network, 1.0),
        ("tableallocation-1", batches.tables, of_tables, -1.0),
    ],
)
def test_many_replications_at_once_have_the_values_of_the_simulator(
    name: str, run: Callable[..., np.ndarray], numbers: Callable[..., Any], sign: float
) -> None:
    box = load(name)
    drawn = [np.array(rows).T for rows in zip(*[numbers(box, xi) for xi in range(12)], strict=True)]
    for x in (box.x0, inner(box, 7, 0.5)):
        point = box.fun.point(x)  # type: ignore[attr-defined]
        at_once = sign * run(box.fun.factors, point, *drawn)  # type: ignore[attr-defined]
        np.testing.assert_allclose(at_once, [box.fun(x, xi) for xi in range(12)], rtol=1e-9)


def test_without_simopt_names_are_listed_and_building_says_what_to_install() -> None:
    refuses_to_build_without("simopt", "simulators", names=16, name="san-1")
