"""An Optuna sampler: ``optuna.create_study(sampler=PoemSampler())``."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Sequence
from math import nan
from typing import Any

import numpy as np

from poem_cma.integrations._needs import needs
from poem_cma.integrations.points import Key
from poem_cma.run.algorithm import Method

with needs("Optuna", "optuna"):
    from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution, distribution_to_json
    from optuna.samplers import BaseSampler, TPESampler
    from optuna.search_space import IntersectionSearchSpace
    from optuna.study import Study, StudyDirection
    from optuna.trial import FrozenTrial, TrialState

    from poem_cma.integrations.optuna_space import Run, Space

__all__ = ["PoemSampler", "rng"]

#: Parameters that are searched here.
_RANGES = (FloatDistribution, IntDistribution)

#: What a trial remembers: the run it belongs to, its probe, its row there, and the number of its xi.
_ATTRIBUTE = "poem_cma:point"


class PoemSampler(BaseSampler):
    """Sample the numbers of a study with this library, and the categories with another sampler.

    Numbers are all parameters with a range: floats and ints, also those with ``log=True`` or a `step`. Every trial is
    one evaluation. Trials that are compared with each other (a probe) have the same categories. The state of the
    sampler is in the study's trials: a new process with the same study and the same arguments continues, and several
    processes may share a study. Trials that fail are left out. A trial that never ends is repeated when there is
    nothing else to do.

    Parameters
    ----------
    method : str or Method
        As in `poem_cma.minimize`.
    paired : bool
        Whether trials of one probe share their noise. Set it if the objective has no noise, or draws its noise from
        ``rng(trial)``.
    x0 : dict, optional
        The starting point; by default the middle of each range.
    batch : int
        The number of independent probes of a step. Increase it for many parallel trials.
    budget : int, optional
        The number of trials, if it is known.
    seed : int, optional
        By default it is derived from the study's name.
    consider_pruned_trials : bool
        Whether the last intermediate value of a pruned trial counts as its value, or as a failure.
    independent_sampler : BaseSampler, optional
        For the other parameters, and for all of them in the first trial; by default Optuna's TPE.

    Examples
    --------
    >>> import optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study(sampler=PoemSampler(paired=True, seed=0))
    >>> def objective(trial):
    ...     return abs(trial.suggest_float("a", 0, 10) - 7) + abs(trial.suggest_float("b", 1e-5, 1, log=True) - 0.01)
    >>> study.optimize(objective, n_trials=200)
    >>> study.best_value < 0.05
    True
    """

    def __init__(
        self,
        *,
        method: str | Method = "auto",
        paired: bool = False,
        x0: dict[str, float] | None = None,
        batch: int = 1,
        budget: int | None = None,
        seed: int | None = None,
        consider_pruned_trials: bool = False,
        independent_sampler: BaseSampler | None = None,
    ) -> None:
        self._settings: dict[str, Any] = {"method": method, "paired": paired, "batch": batch, "budget": budget}
        self._x0 = dict(x0 or {})
        self._seed = seed
        self._consider_pruned = consider_pruned_trials
        self._independent = independent_sampler or TPESampler(seed=seed)
        self._forget()

    def _forget(self) -> None:
        self._lock = threading.RLock()
        self._study: Any = None

    def _follow(self, study: Study) -> None:
        """Begin with nothing at a study that is new to this object."""
        if self._study != (study.study_name, id(study._storage)):
            self._study = (study.study_name, id(study._storage))
            self._space = IntersectionSearchSpace()
            self._runs: dict[str, Run] = {}
            self._answers: dict[str, list[tuple[Key, float]]] = {}  # by run, until they are told
            self._first_open = 0  # all trials before it are finished, and their values taken
            self._taken: set[int] = set()  # trials after it whose values are

    def __getstate__(self) -> dict[str, Any]:
        """The arguments; the rest is in the study."""
        kept = ("_settings", "_x0", "_seed", "_consider_pruned", "_independent")
        return {name: getattr(self, name) for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._forget()

    def recommend(self, study: Study) -> dict[str, Any]:
        """The point to use: an average for the numbers, which is less biased by noise than the best trial.

        Parameters that this sampler does not search have the values with the best mean in the later half of the trials.
        """
        space = self.infer_relative_search_space(study, None)
        if not space:
            raise ValueError("the study has no parameter with a range that all of its trials have had")
        with self._lock:
            self._catch_up(study)
            run = self._run(study, space)
            found = run.parameters(run.points.opt.result().x)
        return {**self._others(study, space), **found}

    def _others(self, study: Study, space: Space) -> dict[str, Any]:
        """The values of all parameters that are not in the space: those with the best mean."""
        trials = study.get_trials(deepcopy=False, states=[TrialState.COMPLETE])
        values: dict[str, list[float]] = {}
        others: dict[str, dict[str, Any]] = {}
        for trial in trials[len(trials) // 2 :]:
            params = {name: value for name, value in trial.params.items() if name not in space}
            others[repr(params)] = params
            values.setdefault(repr(params), []).append(self._value(study, trial))
        return others[min(values, key=lambda name: float(np.mean(values[name])))] if values else {}

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial | None) -> Space:
        """The parameters with a range that all trials so far have had."""
        with self._lock:
            self._follow(study)
            known = self._space.calculate(study)
        return {n: d for n, d in known.items() if isinstance(d, _RANGES) and not d.single()}

    def sample_relative(self, study: Study, trial: FrozenTrial, search_space: Space) -> dict[str, Any]:
        """The next point of the run that the search space has."""
        _one_objective(study)
        if not search_space or "fixed_params" in trial.system_attrs:
            return {}
        with self._lock:
            running = self._catch_up(study)
            run = self._run(study, search_space)
            key = run.points.fresh(running.get(run.name, ())) or run.points.again()
            if key is None:  # the run is over
                return run.parameters(run.points.opt.result().x)
            sample = run.points.sample(key)
            study._storage.set_trial_system_attr(trial._trial_id, _ATTRIBUTE, [run.name, *key, sample])
            return run.parameters(run.points.point(key))

    def sample_independent(self, study: Study, trial: FrozenTrial, name: str, distribution: BaseDistribution) -> Any:
        """By the other sampler, once for each probe; but where x0 has a value, the first trial is there."""
        _one_objective(study)
        if name in self._x0 and isinstance(distribution, _RANGES) and trial.number == 0:
            return self._x0[name]
        for other in self._same_probe(study, trial):
            if other.distributions.get(name) == distribution:
                return other.params[name]
        return self._independent.sample_independent(study, trial, name, distribution)

    def _same_probe(self, study: Study, trial: FrozenTrial) -> list[FrozenTrial]:
        """The trials that this one is compared with."""
        point = study._storage.get_trial_system_attrs(trial._trial_id).get(_ATTRIBUTE)
        if point is None:
            return []
        trials = study._storage.get_all_trials(study._study_id, deepcopy=False)
        return [t for t in trials if t.system_attrs.get(_ATTRIBUTE, [])[:2] == point[:2] and t.number != trial.number]

    def reseed_rng(self) -> None:
        """Only the other sampler has random numbers that parallel copies must not share."""
        self._independent.reseed_rng()

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """For the other sampler."""
        self._independent.before_trial(study, trial)

    def after_trial(
        self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:  # fmt: skip
        """For the other sampler."""
        self._independent.after_trial(study, trial, state, values)

    def _catch_up(self, study: Study) -> dict[str, set[Key]]:
        """Take the values of trials that have ended since the last time, in the order of their end; what is running."""
        self._follow(study)
        trials = study._storage.get_all_trials(study._study_id, deepcopy=False)
        ended: list[tuple[Any, str, Key, float]] = []
        running: dict[str, set[Key]] = {}
        for trial in trials[self._first_open :]:
            finished = trial.state.is_finished()
            point = trial.system_attrs.get(_ATTRIBUTE)
            if trial.number in self._taken or point is None:
                continue
            name, key = point[0], Key(point[1], point[2])
            if finished:
                ended.append((trial.datetime_complete, name, key, self._value(study, trial)))
                self._taken.add(trial.number)
            else:
                running.setdefault(name, set()).add(key)
        still_open = (t.number for t in trials[self._first_open :] if not t.state.is_finished())
        self._first_open = next(still_open, len(trials))
        self._taken = {number for number in self._taken if number >= self._first_open}
        for _, name, key, value in sorted(ended):
            self._answers.setdefault(name, []).append((key, value))
        for name, run in self._runs.items():
            run.tell(self._answers.pop(name, ()))
        return running

    def _run(self, study: Study, space: Space) -> Run:
        """The run of a search space, told all that is known of it."""
        seed = self._seed_for(study)
        start = [self._x0.get(name) for name in space]
        described = [[n, distribution_to_json(d)] for n, d in space.items()]
        content = json.dumps([described, start, seed, {k: repr(v) for k, v in self._settings.items()}])
        name = hashlib.sha256(content.encode()).hexdigest()[:12]
        if name not in self._runs:
            self._runs[name] = Run(name, space, start, seed, self._settings)
            self._runs[name].tell(self._answers.pop(name, ()))
        return self._runs[name]

    def _seed_for(self, study: Study) -> int:
        if self._seed is not None:
            return self._seed
        return int.from_bytes(hashlib.sha256(study.study_name.encode()).digest()[:4])

    def _value(self, study: Study, trial: FrozenTrial) -> float:
        """What the optimiser is told: to be minimised, NaN for a failure."""
        value: float | None = None
        if trial.state == TrialState.COMPLETE:
            value = trial.value
        elif trial.state == TrialState.PRUNED and self._consider_pruned and trial.intermediate_values:
            value = trial.intermediate_values[max(trial.intermediate_values)]
        if value is None:
            return nan
        return -value if study.direction == StudyDirection.MAXIMIZE else value


def _one_objective(study: Study) -> None:
    if len(study.directions) > 1:
        raise ValueError("PoemSampler has one objective to minimise or to maximise, this study has several")


def rng(trial: Any) -> np.random.Generator:
    """Random numbers for the noise of a trial; trials that are compared with each other get the same ones.

    With them in the objective and ``PoemSampler(paired=True)``, differences of values are free of most noise.

    Examples
    --------
    >>> import optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study(sampler=PoemSampler(paired=True, seed=0))
    >>> study.optimize(lambda trial: abs(trial.suggest_float("a", 0, 1) - 0.7) + rng(trial).normal(), n_trials=200)
    >>> abs(study.sampler.recommend(study)["a"] - 0.7) < 0.1
    True
    """
    if not hasattr(trial, "storage"):  # a FixedTrial, for instance
        return np.random.default_rng(trial.number)
    _ = getattr(trial, "relative_params", None)  # the sampler is asked when this is first looked at
    point = trial.storage.get_trial_system_attrs(trial._trial_id).get(_ATTRIBUTE)
    return np.random.default_rng([1, trial.number] if point is None else [0, point[3]])
