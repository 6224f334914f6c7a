"""Runs whose parameters are a nest: the vector's run behind a change of form, and its results changed back."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from poem_cma.result import Result
from poem_cma.run.oracle import EvaluationError
from poem_cma.run.settings import Place, Problem, Search, Stops
from poem_cma.run.stops import wants_result

if TYPE_CHECKING:
    from collections.abc import Iterator

    from poem_cma.parameters.nest import Structure

__all__ = ["flat", "flat_run", "nested", "nested_errors", "typed"]


def flat_run(
    run: Callable[[Problem, Search, Stops, Place], Result],
    form: Structure,
    problem: Problem,
    search: Search,
    stops: Stops,
    place: Place,
) -> Result:
    """A run on vectors, with points in the form of x0 wherever the user meets them."""
    form = typed(form, search)
    with nested_errors(form):
        result = run(*flat(form, problem, search, stops), place)
    return nested(result, form)


def typed(form: Structure, search: Search) -> Structure:
    """The form of x0, with Python's ints where the domain has integers."""
    return form.with_integers(form.domain(search.domain))


def flat(form: Structure, problem: Problem, search: Search, stops: Stops) -> tuple[Problem, Search, Stops]:
    """The same problem, search and reasons to stop on vectors."""
    x0 = search.x0
    start = replace(x0, x=form.flatten(x0.x)) if isinstance(x0, Result) else form.flatten(x0)
    return (
        problem._replace(fun=form.objective(problem.fun, problem.vectorized)),
        search._replace(x0=start, domain=form.domain(search.domain), scale=form.scale(search.scale)),
        stops if stops.callback is None else stops._replace(callback=_callback(stops.callback, form)),
    )


def nested(result: Result, form: Structure) -> Result:
    """The same result with its points in the form."""
    points = {name: form.unflatten(getattr(result, name)) for name in ("x", "x_last", "x_average")}
    shares = result.sensitivity
    return replace(result, **points, sensitivity=None if shares is None else form.with_reals().unflatten(shares))


@contextmanager
def nested_errors(form: Structure) -> Iterator[None]:
    """An `EvaluationError` carries the point, and the result so far."""
    try:
        yield
    except EvaluationError as error:
        error.x = form.unflatten_rows(error.x) if error.x.ndim == 2 else form.unflatten(error.x)
        error.result = None if error.result is None else nested(error.result, form)
        raise


def _callback(callback: Callable[..., Any], form: Structure) -> Callable[..., Any]:
    by_name = wants_result(callback)

    def call(intermediate_result: Result) -> Any:
        if by_name:
            return callback(intermediate_result=nested(intermediate_result, form))
        return callback(form.unflatten(intermediate_result.x))

    return call
