"""What the way runs are kept rests on: states are not changed once they are made, and random numbers have addresses."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from cases import CASES, Case, D, failing
from inside import algorithm_of
from runs import bits

import poem_cma as pc

rows = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def vectors(value: Any) -> Iterator[np.ndarray]:
    """All arrays in a record and in the records that it holds, but for those of its method and its domain."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple):
        for inner in value:
            yield from vectors(inner)
    elif hasattr(value, "spectrum"):
        yield value.spectrum.eigenvalues
        yield value.spectrum.vectors


def sealed(make: Callable[..., Any]) -> Callable[..., Any]:
    """The same function of an algorithm, whose states cannot be written."""

    def made(*arguments: Any, **settings: Any) -> Any:
        state = make(*arguments, **settings)
        for v in vectors(state):
            v.setflags(write=False)
        return state

    return made


def finished(case: Case, fun: Callable[[np.ndarray, int], float], ahead: int) -> pc.Result:
    opt = pc.Optimizer(np.zeros(D), method=case.method, seed=3, budget=1500, ahead=ahead)
    while flight := list(iter(opt.ask, None)):
        for probe in flight[::-1]:
            opt.tell(probe, [value(fun, x, n) for x, n in zip(probe.points, probe.numbers, strict=True)])
    return opt.result()


def value(fun: Callable[[np.ndarray, int], float], x: np.ndarray, n: int) -> float:
    try:
        return fun(x, n)
    except RuntimeError:
        return float("nan")


@pytest.mark.parametrize("fails", [False, True], ids=["", "failures"])
@pytest.mark.parametrize("ahead", [0, 3])
@rows
def test_no_state_is_written_once_it_is_made(
    case: Case, ahead: int, fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run is the same where all arrays of all states are read-only."""
    fun = failing(case.fun) if fails else case.fun
    expected = bits(finished(case, fun, ahead))
    kind = type(algorithm_of(pc.Optimizer(np.zeros(D), method=case.method, budget=1500)))
    for name in ("begin", "advance", "landed", "ahead", "told", "with_budget"):
        monkeypatch.setattr(kind, name, sealed(getattr(kind, name)))
    assert bits(finished(case, fun, ahead)) == expected


@rows
def test_random_numbers_come_from_the_seed_alone(case: Case) -> None:
    """Whatever the generators of Python and NumPy are at; and nothing is drawn from them."""
    found = []
    for other in (0, 1):
        random.seed(other)
        np.random.seed(other)  # noqa: NPY002
        before = random.getstate(), np.random.get_state()[1].tobytes()  # type: ignore[index]  # noqa: NPY002
        found.append(bits(finished(case, case.fun, 0)))
        assert before == (random.getstate(), np.random.get_state()[1].tobytes())  # type: ignore[index]  # noqa: NPY002
    assert found[0] == found[1]
