"""`minimize` with a store, with workers, or both: open the store, bring the optimiser to where it was, go on."""

from __future__ import annotations

import contextlib
from typing import Any

from poem_cma.methods import by_name
from poem_cma.optimizer import Optimizer, optimizer_for
from poem_cma.result import Result, Status
from poem_cma.run.loop import Driver
from poem_cma.run.randomness import make_seed
from poem_cma.run.signals import sigterm_ends_the_run, undisturbed
from poem_cma.store import NoStore, Store
from poem_cma.store.plan import describe, refuse_other_settings
from poem_cma.workers.crew import Crew
from poem_cma.workers.task import Objective
from poem_cma.workers.workers import as_workers, auto_ahead, make_place

__all__ = ["drive"]


def drive(
    fun: Any, x0: Any, *, sample: Any, budget: int, seed: int | None, vectorized: Any, workers: Any, batch: Any,
    ahead: Any, on_failure: Any, loop: Any, progress: bool, store: Any, name: str | None, final: int,
    launch: Any = None, **settings: Any,
) -> Result:  # fmt: skip
    """Open or make the store, bring the optimiser to where it was, and go on."""
    workers = as_workers(workers)
    opened = contextlib.closing(NoStore() if store is None else Store(store))
    with sigterm_ends_the_run(workers is not None), opened as kept:
        seed = kept.settings["seed"] if kept.exists and seed is None else make_seed(seed)
        objective = Objective(fun, sample, seed, vectorized, on_failure)
        method = settings["method"] = by_name(settings["method"])
        if batch == "auto":
            chosen = (1, ahead or auto_ahead(workers, method, budget))
            batch, ahead = (kept.settings["batch"], kept.settings["ahead"]) if kept.exists else chosen
        opt = optimizer_for(sample, x0, budget=budget - final, seed=seed, batch=batch, ahead=ahead, **settings)
        given, first_failure = describe(opt, name, vectorized, sample is not None), None
        if isinstance(kept, Store):
            if not kept.exists:
                kept.create(given, {"budget": budget, "final": final, "measured": 0}, launch)
                kept.snapshot(opt, None, (), {})
            refuse_other_settings(kept.path, kept.settings, given)
            loaded, first_failure = kept.load(opt.method, settings["domain"])
            opt = loaded or opt
            if (finished := _finished(kept, opt, budget, final, loop.target)) is not None:
                return finished
        else:
            kept.plan = {"budget": budget, "final": final, "measured": 0}
        crew = Crew(make_place(workers, objective, given["dimension"]), workers, steady=ahead > 0)
        try:
            return Driver(opt, crew, kept, loop, objective, first_failure).minimize(progress)
        finally:
            with undisturbed():
                crew.close()


def _finished(store: Store, opt: Optimizer, budget: int, final: int, target: float | None) -> Result | None:
    """The result of a run that is over; otherwise the store is made ready to go on."""
    plan, ended = store.plan, store.result
    if budget < plan["budget"]:
        raise ValueError(
            f"{store.path} holds a run of {plan['budget']} calls, budget={budget} is less: give at least that"
        )
    same = (plan["budget"], plan["final"]) == (budget, final)
    if ended is not None and same:
        reached = ended["status"] == Status.TARGET and target is not None and target >= ended["target"]
        if reached or ended["status"] in (Status.BUDGET, Status.CONVERGED):
            return _restored(opt, ended)
    if ended is not None or not same:
        measured = plan["measured"] + (ended["measured"] if ended is not None else 0)
        store.note(plan={"budget": budget, "final": final, "measured": measured}, result=None)
    return None


def _restored(opt: Optimizer, ended: dict[str, Any]) -> Result:
    result = opt.result(ended["status"], ended["message"])
    for name in ("fun", "fun_stderr", "nfev", "failures", "message"):
        setattr(result, name, ended[name])
    return result
