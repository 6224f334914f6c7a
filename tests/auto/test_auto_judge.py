"""The comparison of candidates on common fresh samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import poem_cma as pc
from poem_cma.auto import judge
from poem_cma.auto.judge import LIKELY, SURE, t_value


def compared(values: Callable[[int, int], float], candidates: int, most: int) -> judge.Judge:
    """A comparison to its end; `values` of a candidate and the number of a sample."""
    points = [np.array([float(k), 0.0]) for k in range(candidates)]
    j, first = judge.begin(points, most), 0
    while requests := judge.requests(j):
        told = [np.array([values(int(x[0]), first + request.sample) for x in request.points()]) for request in requests]
        first += len(requests)
        j = judge.update(j, told)
    return j


def test_it_uses_no_more_than_it_may() -> None:
    rng = np.random.default_rng(0)
    for most in (0, 3, 5, 16, 47, 200, 1001):
        for candidates in (2, 3, 7):
            calls = 0

            def value(k: int, n: int) -> float:
                nonlocal calls
                calls += 1
                return float(rng.normal())

            compared(value, candidates, most)
            assert calls <= most


@pytest.mark.parametrize("noise", [0.3, 3.0, 30.0])
def test_the_chosen_one_is_not_surely_worse_than_the_first(noise: float) -> None:
    """In 300 comparisons, none of which are easy: a worse candidate by three standard errors is not chosen."""
    rng = np.random.default_rng(1)
    for seed in range(300):
        means = rng.normal(size=4)
        draws = np.random.default_rng(seed).normal(size=(4, 400)) * noise
        j = compared(lambda k, n, m=means, e=draws: float(m[k] + e[k, n]), 4, 600)
        error = noise * np.sqrt(2.0 / np.count_nonzero(np.isfinite(j.values[j.chosen])))
        assert means[j.chosen] - means[0] < SURE * error


@pytest.mark.parametrize("domain", [None, pc.Box(-3.0, 3.0)], ids=["space", "box"])
@pytest.mark.parametrize("noise", [0.5, 5.0])
def test_no_result_is_worse_than_x0_by_three_standard_errors(noise: float, domain: Any) -> None:
    """x0 is the minimum, and all that a run can do is to leave it alone."""
    budget, d = 800, 4
    for seed in range(40):
        rng = np.random.default_rng(seed)
        result = pc.minimize(
            lambda x, rng=rng: float(np.abs(x).sum() + noise * rng.normal()),
            np.zeros(d), domain=domain, budget=budget, seed=seed, evaluate=0,
        )  # fmt: skip
        samples = 0.06 * budget / 7  # of each of at most seven candidates
        assert np.abs(result.x).sum() < SURE * noise * np.sqrt(2.0 / samples)


def test_a_candidate_that_is_better_is_chosen() -> None:
    rng = np.random.default_rng(2)
    for better in range(4):
        assert compared(lambda k, n, b=better: float(rng.normal() - 2.0 * (k == b)), 4, 400).chosen == better


def test_ties_keep_the_first() -> None:
    assert compared(lambda k, n: 1.0, 5, 300).chosen == 0
    noise = np.random.default_rng(3).normal(size=300)
    assert compared(lambda k, n: float(noise[n]), 5, 300).chosen == 0


def test_by_chance_alone_another_one_is_chosen_in_few_cases() -> None:
    """With two that are equal: one in six by a hint, fewer because the median must agree."""
    chosen = []
    for seed in range(400):
        draws = np.random.default_rng(seed).normal(size=(2, 200))
        chosen.append(compared(lambda k, n, e=draws: float(e[k, n]), 2, 200).chosen)
    assert np.mean(chosen) < 0.16 + 3.0 * np.sqrt(0.16 * 0.84 / 400)


@pytest.mark.parametrize("size", [1e3, 1e30, 1e300, -1e300])
@pytest.mark.parametrize("n", [8, 64, 500])
def test_one_outlier_decides_nothing(n: int, size: float) -> None:
    a, b = np.random.default_rng(n).normal(size=(2, n))
    a[n // 2] = size
    assert abs(t_value(a, b)) < 1.0 + 1e-2 * n**0.5


@pytest.mark.parametrize("n", [2, 3, 4, 8, 30, 300])
def test_the_t_value_is_that_of_the_textbook_as_a_normal_deviate(n: int) -> None:
    """Student's t of the paired differences, and the normal deviate with the same probability of being exceeded."""
    rng = np.random.default_rng(n)
    for scale in (1e-290, 1.0, 1e290):
        a, b = rng.normal(size=(2, n))
        expected = stats.norm.isf(stats.ttest_rel(a, b, alternative="greater").pvalue)
        assert t_value(scale * a, scale * b) == pytest.approx(expected, abs=0.03 + 0.03 * abs(expected))
        assert t_value(scale * b, scale * a) == -t_value(scale * a, scale * b)
    assert t_value(a, a) == 0.0


@pytest.mark.parametrize("n", [2, 4, 8, 100])
def test_equal_points_pass_two_and_three_standard_errors_as_rarely_with_few_samples(n: int) -> None:
    rng, tries = np.random.default_rng(n), 20_000
    found = np.array([t_value(*rng.normal(size=(2, n))) for _ in range(tries)])
    for level in (LIKELY, SURE):
        p = float(stats.norm.sf(level))
        assert np.mean(found > level) < 1.3 * p + 3.0 * np.sqrt(p / tries)


def test_failed_evaluations_count_as_worst() -> None:
    """One is lower where it succeeds, but fails three times in four: a failure is as bad as the largest difference."""
    assert compared(lambda k, n: np.nan if k == 1 and n % 4 else 1.0 - 0.5 * k, 2, 400).chosen == 0
    assert compared(lambda k, n: np.nan if k == 0 and n % 4 else 1.0 - 0.5 * (k == 0), 2, 400).chosen == 1
    assert compared(lambda k, n: np.nan, 3, 400).chosen == 0
    assert compared(lambda k, n: np.nan if k == 0 else 1.0, 2, 400).chosen == 1


def test_only_those_that_are_surely_worse_are_dropped() -> None:
    """Over 200 comparisons the best is dropped no more often than by three standard errors a round."""
    lost = 0
    for seed in range(200):
        noise = np.random.default_rng(seed).normal(size=(3, 1500))
        j = compared(lambda k, n, e=noise: float(e[k, n] + (0.0, 0.2, 5.0)[k]), 3, 1500)
        assert not j.left[2]
        lost += not j.left[0]
    assert lost <= 4


def test_evaluations_of_dropped_candidates_go_to_the_others() -> None:
    noise = np.random.default_rng(5).normal(size=(3, 700))
    j = compared(lambda k, n: float(noise[k, n] + (0.0, 0.0, 50.0)[k]), 3, 600)
    counts = np.isfinite(j.values).sum(axis=1)
    assert counts[2] == judge.FIRST
    assert counts[0] == counts[1] > 250


def test_one_that_was_dropped_is_never_chosen() -> None:
    for seed in range(200):
        rng = np.random.default_rng(seed)
        noise, means = rng.standard_t(1.5, size=(4, 500)), 0.5 * rng.normal(size=4)
        j = compared(lambda k, n, m=means, e=noise: float(m[k] + e[k, n]), 4, 900)
        assert j.left[j.chosen]


def test_equal_points_are_compared_once() -> None:
    x = np.ones(2)
    assert len(judge.begin([x, x.copy(), np.zeros(2), x], 100).points) == 2
    assert len(judge.begin([x, np.array([np.nan, 0.0])], 100).points) == 1
    assert judge.requests(judge.begin([x, x], 100)) == []
