"""Test problems whose least value is known: noisy and not, smooth and not, real and made up.

>>> from poem_cma import problems
>>> problem = problems.load("noisy-quadratic")
>>> result = problem.solve(method="poem", budget=2000, seed=0)
>>> problem.gap(result.x) < 0.5
True
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches

from poem_cma.problems import closed, gaussian, programs, real
from poem_cma.problems.problem import Problem

__all__ = ["Problem", "certify", "load", "names"]

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


def names(*, real_data: bool = True) -> list[str]:
    """The problems that `load` can build.

    Parameters
    ----------
    real_data : bool
        False leaves out those that need a data set.

    Examples
    --------
    >>> from poem_cma import problems
    >>> problems.names()[0], len(problems.names(real_data=False))
    ('hinge-mushrooms', 21)
    """
    return [name for name in _BUILDERS if real_data or name not in real.REAL]


def load(name: str) -> Problem:
    """Build a problem; the same name gives the same problem, always.

    Parameters
    ----------
    name : str
        One of `names()`.

    Raises
    ------
    poem_cma.datasets.DatasetError
        The problem's data set cannot be found or fetched.

    Examples
    --------
    >>> from poem_cma import problems
    >>> problem = problems.load("absolute-rank5-of-100")
    >>> problem.d, round(problem.optimum, 4)
    (100, 0.3989)
    """
    return _builder(name)()


def certify(name: str) -> tuple[float, float]:
    """Work out afresh two numbers between which the least value lies.

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
        near = get_close_matches(name, _BUILDERS, n=3) or _BUILDERS
        raise ValueError(f"no problem {name!r}; there are {', '.join(near)}")
    return _BUILDERS[name]
