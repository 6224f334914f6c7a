"""Runs with a store, with workers, or both: open the store, bring the optimiser to where it was, go on."""

from __future__ import annotations

import contextlib
import logging
from typing import Any

import numpy as np

from poem_cma.estimate import Estimate
from poem_cma.methods import by_name
from poem_cma.optimizer import Optimizer
from poem_cma.result import Result, Status
from poem_cma.run.dispatch import Dispatch
from poem_cma.run.front import optimizer_for
from poem_cma.run.in_flight import between_stages, budget_of, change_budget
from poem_cma.run.loop import Calls, alone, perform
from poem_cma.run.randomness import make_seed
from poem_cma.run.settings import Place, Problem, Search
from poem_cma.run.signals import sigterm_ends_the_run, undisturbed
from poem_cma.run.stops import Watch
from poem_cma.store import NoStore, Store
from poem_cma.store.plan import describe, refuse_other_settings
from poem_cma.workers.crew import Crew
from poem_cma.workers.task import Objective
from poem_cma.workers.workers import Workers, as_workers, auto_ahead, make_place

__all__ = ["run_elsewhere"]

log = logging.getLogger("poem_cma")


def run_elsewhere(problem: Problem, search: Search, watch: Watch, place: Place, calls: Calls) -> Result:
    """Open or make the store, bring the optimiser to where it was, and go on."""
    workers = as_workers(place.workers)
    opened = contextlib.closing(NoStore() if place.store is None else Store(place.store))
    with sigterm_ends_the_run(workers is not None), opened as store:
        search, seed = _completed(search, store, workers)
        objective = Objective(problem.fun, problem.sample, seed, problem.vectorized, problem.on_failure)
        opt, failure, budget = optimizer_for(problem, search, calls), None, None
        if isinstance(store, Store):
            opt, failure = _restored(store, opt, problem, search, place, calls)
            if _finished(store, opt, calls, watch.target):
                return _result(opt, store.result)
            budget = _go_on(store, opt, failure, calls)
        crew = Crew(make_place(workers, objective, len(opt.result().x)), workers, steady=search.ahead > 0)
        try:
            dispatch = Dispatch(opt, crew, store, objective, failure, budget)
            [result] = perform([dispatch], alone, watch, calls, place.progress)
            if result.status != Status.INTERRUPTED:
                dispatch.snapshot(result=_document(result, opt, watch.target))
            return result
        finally:
            with undisturbed():
                crew.close()


def _completed(search: Search, store: Store | NoStore, workers: Workers | None) -> tuple[Search, int]:
    """The search with what was left open, the seed and how many steps are asked ahead; and the seed."""
    method = by_name(search.method)
    seed = store.settings["seed"] if store.exists and search.seed is None else make_seed(search.seed)
    search = search._replace(seed=seed, method=method)
    if search.batch != "auto":
        return search, seed
    if store.exists:
        return search._replace(batch=store.settings["batch"], ahead=store.settings["ahead"]), seed
    search = search._replace(batch=1, ahead=search.ahead or auto_ahead(workers, method, search.budget))
    if workers is not None:
        how = f"{search.ahead} steps are asked ahead" if search.ahead else "they share the evaluations of each step"
        log.info("workers: %s; %s", workers.executor, how)
    return search, seed


def _restored(
    store: Store, opt: Optimizer, problem: Problem, search: Search, place: Place, calls: Calls
) -> tuple[Optimizer, str | None]:
    """The optimiser where it was, and the first failure so far; in a new store it is at the beginning."""
    given = describe(opt, place.name, problem.vectorized, problem.sample is not None)
    if not store.exists:
        store.create(given, _plan(calls, 0), place.launch)
        store.snapshot(opt, None, (), {})
    refuse_other_settings(store.path, store.settings, given)
    loaded, failure = store.load(opt.method, search.domain)
    return loaded or opt, failure


def _plan(calls: Calls, measured: int) -> dict[str, int]:
    """What a store says of the budget; `measured` are the calls that measured results before the search went on."""
    return calls._asdict() | {"measured": measured}


def _finished(store: Store, opt: Optimizer, calls: Calls, target: float | None) -> bool:
    """Whether the run is over, and is not asked to go on."""
    plan, ended = store.plan, store.result
    if calls.budget < plan["budget"]:
        raise ValueError(
            f"{store.path} holds a run of {plan['budget']} calls, budget={calls.budget} is less: give at least that"
        )
    if ended is None or calls != (plan["budget"], plan["final"]):
        return False
    reached = ended["status"] == Status.TARGET and target is not None and target >= ended["target"]
    return reached or (opt.done and ended["status"] in Status.ENDS)


def _go_on(store: Store, opt: Optimizer, failure: str | None, calls: Calls) -> float | None:
    """Note in the store that the run goes on; the budget that its search has to take up, if it cannot yet.

    A result that was measured has cost calls, which the search has not any more. Where a larger budget leaves it
    nothing, it stays at its end, and so does the result.
    """
    ended = store.result is not None
    plan = _plan(calls, len(store.measured) if ended else store.plan["measured"])
    budget = max(calls.budget - calls.final - plan["measured"], opt.nfev)
    change = budget > budget_of(opt) if opt.done else budget != budget_of(opt)
    if change and between_stages(opt) and not store.replaying:
        change_budget(opt, budget)
        store.snapshot(opt, failure, (), {}, plan=plan, result=None)  # all or nothing
        return None
    if ended or plan != store.plan:
        store.note(plan=plan, result=None)
    return budget if change else None


def _document(result: Result, opt: Optimizer, target: float | None) -> dict[str, Any]:
    """What of a result is kept as JSON; the rest follows from the state."""
    names = ("status", "message", "fun", "fun_stderr", "value", "gain", "nfev", "failures")
    x = result.x.tolist() if len(result.x) <= 10_000 else None
    is_x0 = bool(np.array_equal(result.x, opt.start))
    return {name: getattr(result, name) for name in names} | {"target": target, "x": x, "is_x0": is_x0}


def _result(opt: Optimizer, ended: Any) -> Result:
    """The result of a run that is over, as it was returned."""
    result = opt.result(ended["status"], ended["message"])
    for name in ("nfev", "failures", "message"):
        setattr(result, name, ended[name])
    result.value, result.gain = Estimate(*ended["value"]), Estimate(*ended["gain"])
    if ended.get("is_x0"):  # the search may have ended at a point that was measured to be worse
        result.x = opt.start.copy()
    return result
