"""A function that fails from its first evaluation on: its own exception reaches the user, and soon."""

from __future__ import annotations

import traceback
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import poem_cma as pc


class Broken:
    """Raises as a typo does, and counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, x: np.ndarray) -> float:
        self.calls += 1
        return float(x.summ())  # type: ignore[attr-defined]


def typo(x: np.ndarray) -> float:
    return float(x.summ())  # type: ignore[attr-defined]


@pytest.mark.parametrize("method", ["auto", "poem", "poem-cma"])
@pytest.mark.parametrize("vectorized", [False, True, "rows"])
def test_the_users_exception_comes_after_three_evaluations(method: str, vectorized: Any) -> None:
    fun = Broken()
    with pytest.raises(AttributeError, match="summ") as caught:
        pc.minimize(fun, np.ones(3), budget=300, seed=0, method=method, vectorized=vectorized)
    assert fun.calls <= 3
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert frames[-1].filename == __file__
    assert frames[-1].line is not None
    assert frames[-1].line.startswith("return float(x.summ())")


def test_a_run_with_a_store_or_threads_raises_it_too(tmp_path: Any) -> None:
    with pytest.raises(AttributeError, match="summ"):
        pc.minimize(Broken(), np.ones(3), budget=300, seed=0, store=tmp_path / "run.db")
    with ThreadPoolExecutor(2) as threads, pytest.raises(AttributeError, match="summ"):
        pc.minimize(Broken(), np.ones(3), budget=300, seed=0, workers=threads)


def test_a_run_that_goes_on_remembers_that_numbers_were_returned(tmp_path: Any) -> None:
    """Its first evaluations after an interruption may all raise: they are dropped like others."""
    calls = 0

    def fun(x: np.ndarray) -> float:
        nonlocal calls
        calls += 1
        if calls == 10:
            raise KeyboardInterrupt
        if 10 < calls <= 16:
            raise ValueError("a bad moment")
        return float(np.abs(x).sum())

    settings: dict[str, Any] = {"method": "poem", "budget": 300, "seed": 0, "store": tmp_path / "run.db"}
    assert pc.minimize(fun, np.ones(3), **settings).status == 4
    result = pc.minimize(fun, np.ones(3), **settings)
    assert (result.failures, result.nfev) == (6, 300)


def test_a_process_sends_its_traceback() -> None:
    with pytest.raises(AttributeError, match="summ") as caught:
        pc.minimize(typo, np.ones(3), budget=300, seed=0, workers=1)
    shown = "".join(traceback.format_exception(caught.value))
    assert "in typo" in shown
    assert "return float(x.summ())" in shown


class TwoPartsError(Exception):
    """Cannot be pickled: it is made of two arguments, and keeps one."""

    def __init__(self, what: str, where: int) -> None:
        super().__init__(f"{what} at {where}")


def unpicklable(x: np.ndarray) -> float:
    raise TwoPartsError("no solution", 7)


def test_an_exception_that_cannot_be_sent_is_told_by_its_text_and_traceback() -> None:
    with pytest.raises(RuntimeError, match="TwoPartsError: no solution at 7") as caught:
        pc.minimize(unpicklable, np.ones(3), budget=300, seed=0, workers=1)
    assert "in unpicklable" in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("failing", [(1,), (1, 2), (2, 3, 4, 5), (1, 2, 4, 5, 6)])
def test_failures_beside_numbers_are_dropped_and_counted(failing: tuple[int, ...]) -> None:
    calls = 0

    def fun(x: np.ndarray) -> float:
        nonlocal calls
        calls += 1
        if calls in failing:
            raise ValueError("bad luck")
        return float(((x - 1.0) ** 2).sum())

    result = pc.minimize(fun, np.zeros(3), budget=300, seed=0)
    assert result.failures == len(failing)
    assert "the first: fun raised ValueError: bad luck" in result.message


@pytest.mark.parametrize("value", ["3.2", b"3.2", None, [1.0, 2.0], np.ones(3), 1 + 2j, np.array("3.2")])
def test_something_that_is_no_number_is_refused_by_its_type(value: Any) -> None:
    with pytest.raises(TypeError, match="fun must return a number, but returned"):
        pc.minimize(lambda x: value, np.ones(3), budget=300, seed=0)


@pytest.mark.parametrize("vectorized", [True, "rows"])
def test_rows_of_text_are_refused(vectorized: Any) -> None:
    with pytest.raises(TypeError, match="must return numbers, but returned text"):
        pc.minimize(lambda X: ["3.2"] * len(X), np.ones(3), budget=300, seed=0, vectorized=vectorized)


def test_the_users_error_stands_first() -> None:
    with pytest.raises(pc.EvaluationError) as caught:
        pc.minimize(typo, np.ones(3), budget=300, seed=0, on_failure="raise")
    assert str(caught.value).startswith("fun raised AttributeError: ")
