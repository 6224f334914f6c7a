"""Runs whose parameters are a nest: the vector's run behind a change of form, and its results changed back."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from poem_cma.run.oracle import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from poem_cma.parameters.nest import Structure
    from poem_cma.result import Result

__all__ = ["flat_run", "nested", "nested_errors"]


def flat_run(
    run: Callable[..., Any],
    form: Structure,
    fun: Callable[..., Any],
    x0: Any,
    *,
    domain: Any,
    scale: Any,
    vectorized: Any = False,
    callback: Any = None,
    **settings: Any,
) -> Result:
    """`minimize` on vectors, with points in the form of x0 wherever the user meets them."""
    with nested_errors(form):
        result: Result = run(
            form.objective(fun, vectorized), form.flatten(x0), domain=form.domain(domain), scale=form.scale(scale),
            vectorized=vectorized, callback=None if callback is None else _callback(callback, form), **settings,
        )  # fmt: skip
    return nested(result, form)


def nested(result: Result, form: Structure) -> Result:
    """The same result with its points in the form."""
    return replace(result, **{name: form.unflatten(getattr(result, name)) for name in ("x", "x_last", "x_average")})


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
    from poem_cma.minimize import wants_result

    by_name = wants_result(callback)

    def call(intermediate_result: Result) -> Any:
        if by_name:
            return callback(intermediate_result=nested(intermediate_result, form))
        return callback(form.unflatten(intermediate_result.x))

    return call
