"""Where every run begins: `minimize`, the adapters and the command line come here with the same records."""

from __future__ import annotations

import numpy as np

from poem_cma.optimizer import Optimizer
from poem_cma.parameters.nest import structure_of
from poem_cma.result import Result
from poem_cma.run.checks import check_budget
from poem_cma.run.direct import Direct
from poem_cma.run.in_flight import without_samples
from poem_cma.run.loop import Calls, alone, perform
from poem_cma.run.measure import POINTS, check_evaluate
from poem_cma.run.oracle import Oracle
from poem_cma.run.randomness import Streams, make_seed
from poem_cma.run.settings import Place, Problem, Search, Stops
from poem_cma.run.stops import Watch

__all__ = ["calls_of", "direct", "optimizer_for", "run"]


def run(problem: Problem, search: Search, stops: Stops, place: Place) -> Result:
    """Minimise, from the records of the arguments to the result."""
    if not isinstance(problem.maximize, bool | np.bool_):
        raise TypeError(f"maximize must be True or False, not {problem.maximize!r}")
    if (form := structure_of(search.x0)) is not None:
        from poem_cma.parameters.runs import flat_run

        return flat_run(run, form, problem, search, stops, place)
    watch, calls = Watch(stops), calls_of(search)
    if place.workers is None and place.store is None:
        return perform([direct(problem, search, calls)], alone, watch, calls, place.progress)[0]
    from poem_cma.run.stored import run_elsewhere

    return run_elsewhere(problem, search, watch, place, calls)


def calls_of(search: Search) -> Calls:
    """The budget, and the part of it that measures the result."""
    budget = check_budget(search.budget)
    return Calls(int(budget), POINTS * check_evaluate(search.evaluate, budget))


def direct(problem: Problem, search: Search, calls: Calls) -> Direct:
    """A run whose calls are made where its loop runs."""
    seed = make_seed(search.seed)
    search = search._replace(seed=seed, batch=1 if search.batch == "auto" else search.batch)
    oracle = Oracle(problem.fun, problem.sample, Streams(seed), problem.vectorized, problem.on_failure)
    return Direct(optimizer_for(problem, search, calls), oracle)


def optimizer_for(problem: Problem, search: Search, calls: Calls) -> Optimizer:
    """The optimiser of a run; where there is no sampler, all samples are known to be the same."""
    settings = search._asdict()
    del settings["evaluate"]
    try:
        opt = Optimizer(**settings | {"budget": calls.budget - calls.final, "maximize": problem.maximize})
    except ValueError as error:
        if calls.final and str(error).startswith("budget is"):
            kept = f"{calls.final} of the {calls.budget} calls are kept to measure the result; evaluate=0 keeps none"
            raise ValueError(f"{error}; {kept}") from None
        raise
    if problem.sample is None:
        without_samples(opt)
    return opt
