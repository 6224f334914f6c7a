"""SimOpt's own solvers, run by SimOpt on its own problem objects: for the simulators alone.

A macroreplication has the random-number streams of its seed, as SimOpt lays them out. Where noise is shared, solutions
have common random numbers, which is SimOpt's default; elsewhere this is turned off.
Version 1.2.4 asks for NumPy before 2.4; with a later one its SPSA breaks down.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from poem_cma.experiments.bench.field.player import FieldPlayer
from poem_cma.experiments.bench.field.task import FieldTask
from poem_cma.problems.black_box import BlackBox

__all__ = ["PLAYERS"]


def play(task: FieldTask, module: str, kind: str) -> None:
    """One macroreplication; the last solution that the solver recommends stands."""
    generator = import_module("mrg32k3a.mrg32k3a").MRG32k3a
    exhausted = import_module("simopt.solver").BudgetExhaustedError
    solver = getattr(import_module(f"simopt.solvers.{module}"), kind)(
        fixed_factors={"crn_across_solns": task.problem.shared}
    )
    problem: Any = type(_simopt_problem(task.problem))(fixed_factors={"budget": task.budget})
    streams = problem.model.n_rngs
    solver.solution_progenitor_rngs = [generator(s_ss_sss_index=[task.seed + 3, i, 0]) for i in range(streams)]
    solver.rng_list = [generator(s_ss_sss_index=[task.seed + 3, streams + i, 0]) for i in range(3)]
    simulate = problem.simulate

    def counted(solution: Any, num_macroreps: int = 1) -> None:
        if task.nfev + num_macroreps > task.budget:
            raise exhausted
        task.nfev += num_macroreps
        simulate(solution, num_macroreps)

    problem.simulate = counted
    steps = solver.run(problem)
    task.recommend(np.array(steps["solution"].iloc[-1], dtype=float))


def _simopt_problem(problem: BlackBox) -> Any:
    return getattr(problem.fun, "problem", None)


def _in_a_box(problem: BlackBox) -> bool:
    """Whether SimOpt's solvers for continuous variables in a box are for this problem."""
    declared = _simopt_problem(problem)
    if declared is None:
        return False
    return declared.constraint_type.name in ("UNCONSTRAINED", "BOX") and declared.variable_type.name == "CONTINUOUS"


def _any(problem: BlackBox) -> bool:
    return _simopt_problem(problem) is not None


def _spsa(problem: BlackBox) -> bool:
    """SimOpt's SPSA needs the NumPy that SimOpt asks for."""
    return np.lib.NumpyVersion(np.__version__) < "2.4.0" and _in_a_box(problem)


def _player(name: str, title: str, module: str, kind: str, where: Callable[[BlackBox], bool]) -> FieldPlayer:
    return FieldPlayer(
        name, title, partial(play, module=module, kind=kind), "its defaults, by SimOpt's own machinery",
        packages=("simoptlib",), suites=("simulators",), where=where, pace=0.3e-3,
    )  # fmt: skip


PLAYERS = [
    _player("simopt-astrodf", "SimOpt ASTRO-DF", "astrodf", "ASTRODF", _in_a_box),
    _player("simopt-neldmd", "SimOpt Nelder-Mead", "neldmd", "NelderMead", _in_a_box),
    _player("simopt-spsa", "SimOpt SPSA", "spsa", "SPSA", _spsa),
    _player("simopt-rndsrch", "SimOpt random search", "randomsearch", "RandomSearch", _any),
]
