"""Test problems: losses whose least value is known, and suites of black boxes that a judge scores.

>>> from poem_cma import problems
>>> problem = problems.load("noisy-quadratic")
>>> result = problem.solve(method="poem", budget=2000, seed=0)
>>> problem.gap(result.x) < 0.5
True
>>> queue = problems.load("queue")
>>> queue.score(queue.x0, best=0.0)
1.0
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, overload

from poem_cma.problems import closed, gaussian, programs, real
from poem_cma.problems.black_box import BlackBox
from poem_cma.problems.problem import Problem
from poem_cma.problems.suites import SUITES, black_boxes, load_black_box, no_such

__all__ = ["BlackBox", "Problem", "certify", "load", "names"]

_LOSSES = "losses"

_BUILDERS: dict[str, Callable[[], Problem]] = {
    **real.REAL,
    **gaussian.GAUSSIAN,
    "max-affine": programs.max_affine,
    "cvar-portfolio": programs.cvar_portfolio,
    "noisy-quadratic": closed.noisy_quadratic,
    "unshared-quadratic": closed.unshared_quadratic,
    "box-corner": closed.box_corner,
    "ill-scaled-absolute": programs.ill_scaled_absolute,
    "ill-scaled-squared": programs.ill_scaled_squared,
}


def names(*, suite: str = "losses", real_data: bool = True) -> list[str]:
    """The problems of a suite that `load` can build.

    Parameters
    ----------
    suite : {"losses", "simulators", "policies", "rough", "noisy-bbob"}
    real_data : bool
        False leaves out the losses that need a data set.

    Examples
    --------
    >>> from poem_cma import problems
    >>> problems.names()[0], len(problems.names(real_data=False))
    ('hinge-mushrooms', 21)
    >>> problems.names(suite="policies")[:3]
    ['cartpole', 'mountain-car', 'pendulum-linear']
    """
    _check(suite)
    if suite != _LOSSES:
        return black_boxes(suite)
    return [name for name in _BUILDERS if real_data or name not in real.REAL]


@overload
def load(name: str) -> Any: ...
@overload
def load(name: str, *, suite: Literal["losses"]) -> Problem: ...
@overload
def load(name: str, *, suite: Literal["simulators", "policies", "rough", "noisy-bbob"]) -> BlackBox: ...
@overload
def load(name: str, *, suite: str | None) -> Any: ...
def load(name: str, *, suite: str | None = None) -> Problem | BlackBox:
    """Build a problem; the same name always gives the same problem.

    Parameters
    ----------
    name : str
        One of `names(suite=...)`.
    suite : {"losses", "simulators", "policies", "rough", "noisy-bbob"}, optional
        Where to look for the name. By default, in the losses and then in the other suites: no two problems have the
        same name.

    Returns
    -------
    Problem or BlackBox
        A `Problem` from the losses, a `BlackBox` from any other suite.

    Raises
    ------
    ValueError
        There is no such problem or suite.
    poem_cma.datasets.DatasetError
        The problem's data set cannot be found or fetched.
    ImportError
        The problem needs a package that is not installed.

    Examples
    --------
    >>> from poem_cma import problems
    >>> problem = problems.load("absolute-rank5-of-100")
    >>> problem.d, round(problem.optimum, 4)
    (100, 0.3989)
    >>> queue = problems.load("queue")
    >>> queue, queue.suite, queue.budgets
    (BlackBox('queue', d=6, shared=True), 'rough', (300, 1000))
    """
    if suite is not None:
        _check(suite)
    if suite == _LOSSES or (suite is None and name in _BUILDERS):
        return _builder(name)()
    return load_black_box(name, suite, others=_BUILDERS if suite is None else ())


def certify(name: str) -> tuple[float, float]:
    """Work out afresh two numbers between which the least value of one of the losses lies.

    Takes seconds on real data, where `load` has the numbers at hand, and otherwise repeats what `load` does.

    Examples
    --------
    >>> from poem_cma import problems
    >>> lower, upper = problems.certify("max-affine")
    >>> lower <= upper < lower + 1e-9
    True
    """
    build = _builder(name)
    if name in real.REAL:
        return real.enclose(name)
    problem = build()
    return problem.optimum, problem.optimum + problem.slack


def _builder(name: str) -> Callable[[], Problem]:
    if name not in _BUILDERS:
        raise ValueError(no_such("problem", name, _BUILDERS))
    return _BUILDERS[name]


def _check(suite: str) -> None:
    if suite not in (_LOSSES, *SUITES):
        raise ValueError(f"no suite {suite!r}; there are {', '.join((_LOSSES, *SUITES))}")
