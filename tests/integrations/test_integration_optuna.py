"""`PoemSampler` in real studies: storages, processes, failures, mixed spaces."""

from __future__ import annotations

import pathlib
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from inside import state_of

import poem_cma as pc
from poem_cma.integrations.points import Key, Points

optuna = pytest.importorskip("optuna", reason="Optuna is not installed: pip install 'poem-cma[optuna]'")
from poem_cma.integrations.optuna import PoemSampler, rng  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.WARNING)

suite = pytest.importorskip("optuna.testing.pytest_samplers", reason="this Optuna has no conformance suite to run")


@pytest.mark.filterwarnings(
    "ignore::optuna.exceptions.ExperimentalWarning", "ignore:Inconsistent parameter:UserWarning"
)
class TestConformance(suite.BasicSamplerTestCase, suite.SingleOnlySamplerTestCase):
    """Optuna's own tests of samplers."""

    @pytest.fixture
    def sampler(self) -> Any:
        return PoemSampler


def study(sampler: Any, **settings: Any) -> Any:
    return optuna.create_study(sampler=sampler, **settings)


def distance(trial: Any) -> float:
    a = trial.suggest_float("a", -10, 10)
    b = trial.suggest_float("b", 1e-4, 1.0, log=True)
    return abs(a - 3.0) + abs(np.log10(b) + 3.0)


@pytest.mark.parametrize("method", ["auto", "poem"])
def test_a_range_and_a_logarithmic_one(method: str) -> None:
    sampler = PoemSampler(paired=True, method=method, seed=0)
    s = study(sampler)
    s.optimize(distance, n_trials=300)
    found = sampler.recommend(s)
    assert found["a"] == pytest.approx(3.0, abs=0.4)
    assert np.log10(found["b"]) == pytest.approx(-3.0, abs=0.3)
    assert all(-10 <= t.params["a"] <= 10 and 1e-4 <= t.params["b"] <= 1.0 for t in s.trials)


def test_maximise_mirrors_minimise() -> None:
    low, high = (study(PoemSampler(paired=True, seed=3), direction=d) for d in ("minimize", "maximize"))
    low.optimize(distance, n_trials=60)
    high.optimize(lambda trial: -distance(trial), n_trials=60)
    assert [t.params for t in low.trials] == [t.params for t in high.trials]


def test_the_trials_are_the_calls_of_a_plain_run() -> None:
    """After the first trial, which finds out what the parameters are."""
    s = study(PoemSampler(paired=True, method="poem", seed=5))
    s.optimize(lambda t: (t.suggest_float("a", 0, 1) - 0.9) ** 2 + t.suggest_float("b", 0, 1), n_trials=101)
    asked: list[Any] = []

    def fun(x: np.ndarray) -> float:
        asked.append(x.tolist())
        return float((x[0] - 0.9) ** 2 + x[1])

    pc.minimize(fun, [0.5, 0.5], domain=pc.Box(0.0, 1.0), method="poem", seed=5, budget=100, evaluate=0)
    assert [[t.params["a"], t.params["b"]] for t in s.trials[1:]] == asked


def test_mixed_spaces_fall_back_for_the_rest() -> None:
    def objective(trial: Any) -> float:
        kind = trial.suggest_categorical("kind", ["good", "bad"])
        n = trial.suggest_int("n", 1, 5)
        return abs(trial.suggest_float("x", 0, 1) - 0.3) + (kind == "bad") + abs(n - 2)

    sampler = PoemSampler(paired=True, seed=0)
    s = study(sampler)
    s.optimize(objective, n_trials=150)
    assert s.best_params["kind"] == "good"
    assert s.best_params["n"] == 2
    found = sampler.recommend(s)
    assert found.keys() == {"kind", "n", "x"}
    assert (found["kind"], found["n"]) == ("good", 2)
    assert type(found["n"]) is int
    independent = optuna.samplers.RandomSampler(seed=1)
    s = study(PoemSampler(independent_sampler=independent))
    s.optimize(objective, n_trials=10)
    assert len({t.params["n"] for t in s.trials}) > 1


def test_a_space_that_changes() -> None:
    def objective(trial: Any) -> float:
        x = trial.suggest_float("x", 0, 1)
        return x + (trial.suggest_float("y", 0, 1) if trial.number < 20 else 0.0)

    sampler = PoemSampler(paired=True, seed=0)
    s = study(sampler)
    s.optimize(objective, n_trials=80)
    assert len(s.get_trials(states=[optuna.trial.TrialState.COMPLETE])) == 80
    assert sampler.recommend(s)["x"] < 0.2


def test_grids_integers_and_logarithms_are_searched() -> None:
    def objective(trial: Any) -> float:
        x = trial.suggest_float("x", -5.0, 5.0, step=0.25)
        n, even = trial.suggest_int("n", 1, 1000, log=True), trial.suggest_int("even", 2, 40, step=2)
        return abs(x - 3.25) + abs(np.log(n / 50)) + abs(even - 30) / 10

    sampler = PoemSampler(paired=True, seed=1)
    s = study(sampler)
    s.optimize(objective, n_trials=300)
    assert all(t.params["x"] % 0.25 == 0.0 and t.params["even"] % 2 == 0 for t in s.trials)
    assert all(type(t.params["n"]) is int and 1 <= t.params["n"] <= 1000 for t in s.trials)
    found = sampler.recommend(s)
    assert found["x"] == pytest.approx(3.25, abs=0.26)
    assert 40 <= found["n"] <= 60
    assert found["even"] == 30


def test_the_trials_of_a_probe_have_the_same_categories() -> None:
    s = study(PoemSampler(paired=True, seed=0, independent_sampler=optuna.samplers.RandomSampler(seed=0)))
    s.optimize(lambda t: t.suggest_float("x", 0, 1) * (2.0 if t.suggest_categorical("k", "abcd") == "a" else 1.0), 150)
    kinds: dict[tuple[str, int], set[str]] = {}
    for trial in s.trials[1:]:
        kinds.setdefault(tuple(trial.system_attrs["poem_cma:point"][:2]), set()).add(trial.params["k"])
    assert all(len(kind) == 1 for kind in kinds.values())
    assert len(set.union(*kinds.values())) == 4


def test_failed_and_pruned_trials_are_left_out() -> None:
    def objective(trial: Any) -> float:
        value = distance(trial)
        if trial.number % 7 == 3:
            raise RuntimeError("no luck")
        if trial.number % 11 == 5:
            trial.report(1e9, 0)
            raise optuna.TrialPruned
        return float("nan") if trial.number % 13 == 6 else value

    sampler = PoemSampler(paired=True, seed=0)
    s = study(sampler)
    s.optimize(objective, n_trials=300, catch=(RuntimeError,))
    failed = len(s.get_trials(states=[optuna.trial.TrialState.FAIL]))
    assert failed > 50
    run = next(iter(sampler._runs.values()))
    sampler.recommend(s)  # takes the last one up
    pruned = len(s.get_trials(states=[optuna.trial.TrialState.PRUNED]))
    assert 0 <= failed + pruned - run.points.opt.failures < 10  # those of the probe under way are not told yet
    assert sampler.recommend(s)["a"] == pytest.approx(3.0, abs=0.6)


def test_pruned_trials_count_where_asked_for() -> None:
    def objective(trial: Any) -> float:
        trial.report(distance(trial), 1)
        raise optuna.TrialPruned

    s = study(PoemSampler(consider_pruned_trials=True, seed=0))
    s.optimize(distance, n_trials=1)
    s.optimize(objective, n_trials=20)
    run = next(iter(s.sampler._runs.values()))
    assert run.points.opt.nfev > 10
    assert run.points.opt.failures == 0


def test_enqueued_trials_are_nobodys_answer() -> None:
    s = study(PoemSampler(paired=True, seed=2))
    t = study(PoemSampler(paired=True, seed=2))
    s.optimize(distance, n_trials=10)
    t.optimize(distance, n_trials=10)
    s.enqueue_trial({"a": 9.0, "b": 0.5})
    s.optimize(distance, n_trials=21)
    t.optimize(distance, n_trials=20)
    assert [x.params for i, x in enumerate(s.trials) if i != 10] == [x.params for x in t.trials]


def test_threads() -> None:
    sampler = PoemSampler(paired=True, batch=4, seed=0)
    s = study(sampler)
    s.optimize(distance, n_trials=200, n_jobs=4)
    points = [tuple(t.system_attrs["poem_cma:point"][:3]) for t in s.trials if "poem_cma:point" in t.system_attrs]
    assert len(points) > 190
    assert len(set(points)) > 0.9 * len(points)  # made twice only where a stage was waiting for its last points
    assert sampler.recommend(s)["a"] == pytest.approx(3.0, abs=0.6)


CHILD = """
import sys, optuna
from poem_cma.integrations.optuna import PoemSampler, rng
optuna.logging.set_verbosity(optuna.logging.ERROR)
def objective(trial):
    noise = rng(trial).normal()
    return abs(trial.suggest_float("a", -10, 10) - 3.0) + abs(trial.suggest_float("b", 0, 1) - 0.25) + noise
sampler = PoemSampler(paired=True, seed=7)
study = optuna.create_study(storage=sys.argv[1], study_name="s", sampler=sampler, load_if_exists=True)
study.optimize(objective, n_trials=int(sys.argv[2]))
"""


def children(url: str, *trials: int, together: bool = False) -> Any:
    commands = [[sys.executable, "-W", "ignore", "-c", CHILD, url, str(n)] for n in trials]
    if together:
        running = [subprocess.Popen(command) for command in commands]
        assert [child.wait(120) for child in running] == [0] * len(running)
    else:
        for command in commands:
            subprocess.run(command, check=True, timeout=120)
    return optuna.load_study(study_name="s", storage=url)


def test_a_new_process_goes_on_from_the_storage(tmp_path: pathlib.Path) -> None:
    once = children(f"sqlite:///{tmp_path}/once.db", 24)
    twice = children(f"sqlite:///{tmp_path}/twice.db", 9, 15)
    assert [t.params for t in once.trials[1:]] == [t.params for t in twice.trials[1:]]
    assert [t.value for t in once.trials[1:]] == [t.value for t in twice.trials[1:]]


def test_processes_share_a_study(tmp_path: pathlib.Path) -> None:
    shared = children(f"sqlite:///{tmp_path}/shared.db", 1)
    shared = children(f"sqlite:///{tmp_path}/shared.db", 12, 12, together=True)
    points = [tuple(t.system_attrs["poem_cma:point"][:3]) for t in shared.trials[1:]]
    assert len(points) == 24
    assert len({name for name, _, _ in points}) == 1
    assert len(set(points)) >= 12  # no more than all of one process made twice


def test_a_trial_that_never_ends_is_made_again() -> None:
    s = study(PoemSampler(paired=True, method="poem", seed=0))
    s.optimize(distance, n_trials=5)
    lost = s.ask()
    params = (lost.suggest_float("a", -10, 10), lost.suggest_float("b", 1e-4, 1.0, log=True))
    s.optimize(distance, n_trials=20)
    assert params in [(t.params["a"], t.params["b"]) for t in s.trials if t.state.is_finished()]
    run = next(iter(s.sampler._runs.values()))
    assert run.points.opt.nfev >= 20


def test_noise_is_shared_by_the_trials_of_a_probe() -> None:
    drawn: dict[int, list[float]] = {}

    def objective(trial: Any) -> float:
        noise = float(rng(trial).normal())
        value = distance(trial)
        point = trial.storage.get_trial_system_attrs(trial._trial_id).get("poem_cma:point")
        if point is not None:
            drawn.setdefault(point[1], []).append(noise)
        return value + 5.0 * noise

    sampler = PoemSampler(paired=True, method="poem", seed=0)
    s = study(sampler)
    s.optimize(objective, n_trials=301)
    assert {len(noise) for noise in drawn.values()} == {2}
    assert all(len(set(noise)) == 1 for noise in drawn.values())
    assert len({noise[0] for noise in drawn.values()}) == len(drawn)
    assert sampler.recommend(s)["a"] == pytest.approx(3.0, abs=0.6)
    assert rng(optuna.trial.FixedTrial({"a": 1.0}, number=3)).normal() == np.random.default_rng(3).normal()


def test_noise_that_is_not_shared() -> None:
    generator = np.random.default_rng(0)
    sampler = PoemSampler(seed=0)
    s = study(sampler)
    s.optimize(lambda trial: distance(trial) + float(generator.normal()), n_trials=500)
    found = sampler.recommend(s)
    assert abs(found["a"] - 3.0) < 1.5  # 3 away at the start
    assert not state_of(next(iter(sampler._runs.values())).points.opt).run.paired


def test_where_it_starts() -> None:
    s = study(PoemSampler(x0={"a": 2.0, "b": 0.1}, paired=True, seed=0))
    s.optimize(distance, n_trials=3)
    assert s.trials[0].params == {"a": 2.0, "b": 0.1}
    assert s.trials[1].params["a"] == pytest.approx(2.0, abs=2.0)
    s = study(PoemSampler(x0={"a": 99.0}, paired=True))
    with pytest.raises(ValueError, match="99"):
        s.optimize(distance, n_trials=3)


def test_a_known_number_of_trials_ends_at_the_recommendation() -> None:
    sampler = PoemSampler(paired=True, budget=100, seed=0)
    s = study(sampler)
    s.optimize(distance, n_trials=110)
    assert s.trials[-1].params == pytest.approx(sampler.recommend(s))


def test_arguments_travel_and_the_rest_is_in_the_study() -> None:
    sampler = PoemSampler(paired=True, seed=4)
    s = study(sampler)
    s.optimize(distance, n_trials=300)
    copied = pickle.loads(pickle.dumps(sampler))
    assert copied.recommend(s) == sampler.recommend(s)
    assert copied.recommend(s)["a"] == pytest.approx(3.0, abs=0.5)
    other = study(sampler)  # the same object in another study begins with nothing
    other.optimize(distance, n_trials=20)
    assert [t.params for t in other.trials[1:]] == [t.params for t in s.trials[1:20]]


def test_what_it_cannot_do() -> None:
    s = study(PoemSampler(), directions=["minimize", "maximize"])
    with pytest.raises(ValueError, match="this study has several"):
        s.optimize(lambda t: (t.suggest_float("a", 0, 1), 1.0), n_trials=1)
    with pytest.raises(ValueError, match="no parameter with a range"):
        PoemSampler().recommend(study(PoemSampler()))


def test_points_in_any_order_early_twice_and_late() -> None:
    """Two readers of the same answers come to the same state, whatever the order in which they hear of them."""

    def opt() -> pc.Optimizer:
        return pc.Optimizer(
            np.ones(3), method=pc.methods.rsnso(lipschitz=2.0, distance=2.0), batch=3, budget=400, seed=0
        )

    first, second, third = Points(opt()), Points(opt()), Points(opt())
    heard: list[tuple[Key, float]] = []
    generator = np.random.default_rng(0)
    for _ in range(20):
        keys = []
        while (key := first.fresh()) is not None:
            keys.append(key)
        failed = generator.random(len(keys)) < 0.2
        values = [
            (key, np.nan if bad else float(np.abs(first.point(key) - 0.3).sum()))
            for key, bad in zip(keys, failed, strict=True)
        ]
        for i in generator.permutation(len(values)):
            first.tell(*values[i])
            first.tell(values[i][0], 1e9)  # a second value for the same point does not count
        heard += values
        for i in generator.permutation(len(values)):  # one who listens all the time, and asks nothing itself
            third.tell(*values[i])
        third.settle()
    for i in generator.permutation(len(heard)):
        second.tell(*heard[i])
    second.settle()
    assert any(key.probe & 1 for key, _ in heard)  # base values that were asked again
    assert second.opt.nfev == third.opt.nfev == first.opt.nfev
    assert second.opt.result().x.tobytes() == third.opt.result().x.tobytes() == first.opt.result().x.tobytes()
    assert second.fresh() == first.fresh()


def test_the_point_that_waits_longest_comes_first() -> None:
    points = Points(pc.Optimizer(np.ones(3), method="poem", batch=2, budget=100, seed=0))
    keys = [points.fresh() for _ in range(4)]
    assert points.fresh() is None
    assert [points.again() for _ in range(5)] == [*keys, keys[0]]
    points.tell(keys[1], 1.0)
    assert [points.again() for _ in range(3)] == [keys[2], keys[3], keys[0]]
